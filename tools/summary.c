/* summary.c — what `memstow run` says at the end; see summary.h.
 * The files of a run are known by its run id; those of the first process are one for each program it became. */
#include "summary.h"
#include "image.h"
#include "lost.h"
#include "reader.h"
#include "text.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct tree {
    size_t files, unreadable;
    uint64_t live_bytes, live_blocks, allocated_bytes, lost;
    struct image main; /* the last program of the first process */
    char main_file[512];
    bool found;
};

static bool of_this_run(const struct summary *summary, const struct source *source) {
    struct snap_header header;
    char error[160];
    return reader_header(&header, source, error, sizeof error) == 0 && header.kind == SNAP_LEDGER &&
           memcmp(header.run_id, summary->run_id, sizeof header.run_id) == 0;
}

static bool is_main(const struct summary *summary, const struct tree *tree, const struct snap_header *header) {
    if (header->pid != (uint32_t)summary->launch->pid) return false;
    return !tree->found || header->exec_generation >= tree->main.header.exec_generation;
}

static void take_file(const struct summary *summary, struct tree *tree, struct source *source, const char *name) {
    struct image image;
    if (reader_load(&image, source, false) < 0) {
        tree->unreadable++;
        return;
    }
    tree->files++;
    tree->allocated_bytes += image.host.alloc_bytes + image.mapped.alloc_bytes;
    /* What a program held when it was replaced by exec is gone. */
    if (image.header.state != SNAP_EXECED) {
        tree->live_bytes += image.host.live_bytes + image.mapped.live_bytes;
        tree->live_blocks += image.host.live_blocks + image.mapped.live_blocks;
    }
    tree->lost += lost_any(&image);
    if (!is_main(summary, tree, &image.header)) {
        image_clear(&image);
        return;
    }
    image_clear(&tree->main);
    tree->main = image;
    tree->found = true;
    snprintf(tree->main_file, sizeof tree->main_file, "%s", name);
}

static void look_at(const struct summary *summary, struct tree *tree, int directory, const char *name) {
    struct source source;
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || source_file(&source, fd) < 0) return;
    if (of_this_run(summary, &source)) take_file(summary, tree, &source, name);
    source_close(&source);
}

static void collect(const struct summary *summary, struct tree *tree) {
    DIR *directory = opendir(summary->directory);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));)
        if (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN)
            look_at(summary, tree, dirfd(directory), entry->d_name);
    closedir(directory);
}

static void print_end(const struct summary *summary) {
    int status = summary->launch->status;
    struct text elapsed = text_duration(summary->launch->elapsed_ns);
    fprintf(stderr, "memstow: %s ", text_fit(summary->command, 40).s);
    if (WIFSIGNALED(status))
        fprintf(stderr, "was killed by SIG%s", sigabbrev_np(WTERMSIG(status)) ? sigabbrev_np(WTERMSIG(status)) : "?");
    else
        fprintf(stderr, "exited with %d", WEXITSTATUS(status));
    fprintf(stderr, " after %s\n", elapsed.s);
}

static void print_class(const char *name, const struct sum *sum) {
    fprintf(stderr, "  %-13s %12s in %s blocks\n", name, text_size(sum->live_bytes).s, text_count(sum->live_blocks).s);
}

static void print_lost(const struct image *image) {
    for (size_t i = 0; i < SNAP_LOST_KINDS; i++)
        if (image->header.lost[i] && lost_kind(i)) {
            fprintf(stderr, "  lost          %s: %s\n", lost_kind(i)->text, text_count(image->header.lost[i]).s);
            return; /* the report has them all */
        }
}

static void print_main(const struct summary *summary, const struct tree *tree) {
    const struct image *image = &tree->main;
    fprintf(stderr, "  %-13s %12s\n", "peak", text_size(image_peak(image)).s);
    print_class("live at end", &image->host);
    if (image->mapped.live_bytes) print_class("  mapped", &image->mapped);
    fprintf(stderr, "  %-13s %12s in %s blocks\n", "allocated",
            text_size(image->host.alloc_bytes + image->mapped.alloc_bytes).s,
            text_count(image->host.alloc_blocks + image->mapped.alloc_blocks).s);
    if (tree->files > 1)
        fprintf(stderr, "  all %zu programs: %s live at end, %s allocated\n", tree->files,
                text_size(tree->live_bytes).s, text_size(tree->allocated_bytes).s);
    if (*image_fact(image, SNAP_FACT_NOTE))
        fprintf(stderr, "  note          %s\n", text_fit(image_fact(image, SNAP_FACT_NOTE), 64).s);
    print_lost(image);
    if (tree->unreadable) fprintf(stderr, "  %zu files of this run cannot be read\n", tree->unreadable);
    char cwd[4096];
    bool here = getcwd(cwd, sizeof cwd) && strcmp(cwd, summary->directory) == 0;
    fprintf(stderr, "  next          memstow report %s%s%s\n", here ? "" : summary->directory,
            here || strcmp(summary->directory, "/") == 0 ? "" : "/", TEXT_SAFE(tree->main_file));
}

void summary_print(const struct summary *summary) {
    static struct tree tree;
    collect(summary, &tree);
    print_end(summary);
    if (tree.found)
        print_main(summary, &tree);
    else if (!summary->expected_none)
        fputs("  no ledger of it was found: it could not be preloaded, or the file not written\n", stderr);
    image_clear(&tree.main);
}
