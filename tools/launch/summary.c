/* summary.c — see summary.h. The files of a run are found by its run id. The first process has a file for each program
 * that it became by exec. */
#include "tools/launch/summary.h"
#include "tools/views/at_peak.h"
#include "tools/views/history.h"
#include "tools/reader/cupti_image.h"
#include "tools/image/image.h"
#include "tools/reader/last_word.h"
#include "tools/image/lost.h"
#include "tools/reader/misuse_image.h"
#include "tools/proc/process.h"
#include "tools/reader/image_load.h"
#include "tools/reader/reader.h"
#include "tools/base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The program that had the most live bytes at its end, among all programs of the run. */
struct biggest {
    uint64_t live_bytes;
    uint32_t pid;
    char name[32], file[512];
};

struct tree {
    size_t files, unreadable;
    uint64_t live_bytes, live_blocks, allocated_bytes, lost;
    struct image main; /* the image of the last program that the run's first process became */
    char main_file[512];
    bool found;
    struct biggest biggest;
};

static bool of_this_run(const struct summary *summary, const struct source *source) {
    struct snap_header header;
    char error[160];
    return reader_header(&header, source, error, sizeof error) == 0 && header.kind == SNAP_LEDGER &&
           memcmp(header.run_id, summary->run_id, sizeof header.run_id) == 0;
}

static bool is_main(const struct summary *summary, const struct tree *tree, const struct snap_header *header) {
    if (header->pid != (uint32_t)summary->launch->pid) return false;
    return !tree->found || header->start_ns >= tree->main.header.start_ns;
}

/* Adds the live bytes of a program. The memory of a program that was replaced by exec is gone, and is not added. */
static void add_live(struct tree *tree, const struct image *image, const char *name) {
    uint64_t live = image->host.live_bytes + image->mapped.live_bytes;
    if (image->header.state == SNAP_EXECED) return;
    tree->live_bytes += live;
    tree->live_blocks += image->host.live_blocks + image->mapped.live_blocks;
    if (live <= tree->biggest.live_bytes) return;
    tree->biggest.live_bytes = live;
    tree->biggest.pid = image->header.pid;
    snprintf(tree->biggest.name, sizeof tree->biggest.name, "%s", image->header.name);
    snprintf(tree->biggest.file, sizeof tree->biggest.file, "%s", name);
}

static void take_file(const struct summary *summary, struct tree *tree, struct source *source, const char *name) {
    struct image image;
    if (image_load(&image, source, false) < 0) {
        tree->unreadable++;
        return;
    }
    tree->files++;
    tree->allocated_bytes += image.host.alloc_bytes + image.mapped.alloc_bytes;
    add_live(tree, &image, name);
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

static void ledger_look_at(const struct summary *summary, struct tree *tree, int directory, const char *name) {
    struct source source;
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || source_file(&source, fd) < 0) return;
    if (of_this_run(summary, &source)) take_file(summary, tree, &source, name);
    source_close(&source);
}

static void ledgers_collect(const struct summary *summary, struct tree *tree) {
    DIR *directory = opendir(summary->directory);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));)
        if (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN)
            ledger_look_at(summary, tree, dirfd(directory), entry->d_name);
    closedir(directory);
}

static void print_end(const struct summary *summary) {
    int status = summary->launch->status;
    struct text elapsed = text_duration(summary->launch->elapsed_ns);
    fprintf(stderr, "memstow: %s ", text_fit(summary->command, 40).s);
    if (WIFSIGNALED(status))
        fprintf(stderr, "was killed by %s", last_word_signal(WTERMSIG(status)).s);
    else
        fprintf(stderr, "exited with %d", WEXITSTATUS(status));
    fprintf(stderr, " after %s\n", elapsed.s);
}

static void print_figure(const char *name, uint64_t bytes, uint64_t blocks) {
    fprintf(stderr, "  %-14s %12s in %s\n", name, text_size(bytes).s, text_block_count(blocks).s);
}

/* Prints the totals of a ledger that libmemstow_cupti.so kept. Such a ledger has memory of CUDA devices only. */
static void print_cuda_totals(const struct image *image) {
    const struct sum *device = &image->cuda.device;
    fprintf(stderr, "  %-14s %12s\n", "peak", text_size(image->cuda.head.peak).s);
    print_figure("live at end", device->live_bytes, device->live_blocks);
    print_figure("allocated", device->alloc_bytes, device->alloc_blocks);
}

static void print_totals(const struct image *image) {
    if (image->header.flags & SNAP_FROM_CUPTI) {
        print_cuda_totals(image);
        return;
    }
    const struct sum *host = &image->host, *mapped = &image->mapped;
    fprintf(stderr, "  %-14s %12s\n", "peak", text_peak(image_peak(image), host->alloc_bytes + mapped->alloc_bytes).s);
    print_figure("live at end", host->live_bytes + mapped->live_bytes, host->live_blocks + mapped->live_blocks);
    if (mapped->live_blocks) {
        print_figure("  of it heap", host->live_bytes, host->live_blocks);
        print_figure("  of it mapped", mapped->live_bytes, mapped->live_blocks);
    }
    if (image->cuda.used) print_figure("  CUDA devices", image->cuda.device.live_bytes, image->cuda.device.live_blocks);
    print_figure("allocated", host->alloc_bytes + mapped->alloc_bytes, host->alloc_blocks + mapped->alloc_blocks);
}

/* Prints the curve of live memory. */
static void print_history(const struct image *image) {
    enum { COLUMNS = 48 };
    struct history history;
    if (history_make(&history, image) == 0 && history_has_curve(&history))
        fprintf(stderr, "  %-14s %s\n", "over time", history_line(&history, COLUMNS).s);
    history_clear(&history);
}

/* Prints the directory of a file of the run, with a slash at its end. If the user typed the directory, it is printed as
 * typed. */
static void print_directory(const struct summary *summary, const char *file) {
    char cwd[4096];
    const char *directory = summary->directory;
    bool here = getcwd(cwd, sizeof cwd) && strcmp(cwd, directory) == 0;
    if (summary->given && strchr(summary->given, '/'))
        fprintf(stderr, "%.*s", (int)(summary->file - summary->given), text_fit(summary->given, 1000).s);
    else if (summary->given || here)
        fputs(process_parse(file) ? "./" : "", stderr); /* a plain number would be read as a pid */
    else
        fprintf(stderr, "%s%s", TEXT_SAFE(directory), strcmp(directory, "/") != 0 ? "/" : "");
}

/* Prints the command that reports on a file of the run. If the user typed memstow's path, the command has this path. */
static void print_command(const struct summary *summary, const char *option, const char *file) {
    bool by_path = strchr(program_invocation_name, '/');
    fprintf(stderr, "%s report %s", by_path ? TEXT_SAFE(program_invocation_name) : "memstow", option);
    print_directory(summary, file);
    fprintf(stderr, "%s\n", TEXT_SAFE(file));
}

static void print_tree(const struct summary *summary, const struct tree *tree) {
    const struct biggest *biggest = &tree->biggest;
    if (tree->files <= 1) return;
    if (tree->files == 2)
        fputs("  both programs", stderr);
    else
        fprintf(stderr, "  all %zu programs", tree->files);
    fprintf(stderr, ": %s live at end, %s allocated\n", text_size(tree->live_bytes).s,
            text_size(tree->allocated_bytes).s);
    fprintf(stderr, "  more files     %zu", tree->files - 1);
    if (summary->file) fprintf(stderr, ": %s.*", text_fit(summary->file, 50).s);
    fputc('\n', stderr);
    if (!biggest->live_bytes || strcmp(biggest->file, tree->main_file) == 0) return;
    fprintf(stderr, "  most live      %12s in %s (pid %u):\n%17s", text_size(biggest->live_bytes).s,
            text_fit(biggest->name, 24).s, biggest->pid, "");
    print_command(summary, "", biggest->file);
}

static void print_sentence(const char *name, const char *text) {
    fprintf(stderr, "  %-14s ", name);
    text_wrap(stderr, text, 17, 17);
}

/* Whether the first process became another program by exec, and the ledger of that program could not be made. The name
 * of the process's last ledger shows this: it ends in .x<number of the exec>. The library gives a ledger such a name
 * just before it makes the ledger of the next program. */
static bool next_failed(const struct tree *tree) {
    const struct snap_header *header = &tree->main.header;
    char suffix[16];
    snprintf(suffix, sizeof suffix, ".x%" PRIu32, header->exec_generation);
    size_t length = strlen(tree->main_file), end = strlen(suffix);
    return header->state == SNAP_EXECED && length > end && strcmp(tree->main_file + length - end, suffix) == 0;
}

static void print_stepped_aside(const struct summary *summary, const struct tree *tree) {
    char text[2200];
    if (!summary->file || strcmp(summary->file, tree->main_file) == 0 || next_failed(tree)) return;
    snprintf(text, sizeof text, "another process was writing %s: the ledger of this one is %s",
             text_fit(summary->file, 200).s, text_fit(tree->main_file, 200).s);
    print_sentence("note", text);
}

/* Notes that the last program that has a ledger was replaced (exec) by a program that has none. */
static void print_gone_on(const struct tree *tree) {
    if (tree->main.header.state != SNAP_EXECED) return;
    print_sentence("note",
                   next_failed(tree)
                       ? "it went on as another program (exec) whose ledger could not be written (is the disk full?): "
                         "the figures are from before that"
                       : "it went on as another program (exec) that is not tracked: the figures are from before that");
}

static void print_since_freed(const struct summary *summary, struct tree *tree) {
    at_peak_choose(&tree->main);
    if (!at_peak_since_freed(&tree->main)) return;
    fputs("  since freed    what it held at its peak:\n                 ", stderr);
    print_command(summary, "--peak ", tree->main_file);
}

/* Notes that resident memory could not be measured, because the process ended by the exit system call itself. */
static void print_raw_exit(const struct image *image) {
    char text[1100];
    snprintf(text, sizeof text, "it %s: resident memory could not be measured", last_word_of_untold(&image->header).s);
    if (last_word_is_untold(image) && image->header.ended == SNAP_ENDED_EXITED &&
        !(image->header.flags & SNAP_FROM_CUPTI))
        print_sentence("note", text);
}

static void print_note(const struct image *image) {
    const char *note = image_fact(image, SNAP_FACT_NOTE);
    if (*note) print_sentence("note", note);
}

static void print_lost(const struct image *image) {
    for (size_t i = 0; i < SNAP_LOST_KINDS; i++)
        if (image->header.lost[i] && lost_kind(i)) {
            fprintf(stderr, "  lost           %s: %s\n", lost_kind(i)->text, text_count(image->header.lost[i]).s);
            return; /* the report shows all */
        }
}

static void print_misuse(const struct image *image) {
    char text[1100];
    const struct snap_misuse *first = image->misuses;
    if (!image->misuse_count) return;
    size_t more = image->misuse_count - 1;
    int used =
        snprintf(text, sizeof text, "block at %#llx: %s", (unsigned long long)first->address, misuse_words(first));
    if (more) snprintf(text + used, sizeof text - (size_t)used, ", and %zu more", more);
    print_sentence("misused", text);
}

static void print_cupti(const struct summary *summary, const struct image *image) {
    char text[CUPTI_SENTENCE];
    if (!summary->verify && !(image->header.flags & SNAP_FROM_CUPTI)) return;
    if (summary->injection_given_up)
        print_sentence("CUPTI",
                       "not compared: CUDA_INJECTION64_PATH names another library already, which was left alone");
    else
        print_sentence("CUPTI", cupti_sentence(image, text));
}

static void print_main(const struct summary *summary, struct tree *tree) {
    print_totals(&tree->main);
    print_history(&tree->main);
    print_tree(summary, tree);
    print_stepped_aside(summary, tree);
    print_gone_on(tree);
    print_raw_exit(&tree->main);
    print_note(&tree->main);
    print_misuse(&tree->main);
    print_cupti(summary, &tree->main);
    print_lost(&tree->main);
    if (tree->unreadable)
        fprintf(stderr, "  %zu file%s of this run cannot be read\n", tree->unreadable,
                tree->unreadable == 1 ? "" : "s");
    print_since_freed(summary, tree);
    fputs("  next           ", stderr);
    print_command(summary, "", tree->main_file);
}

void summary_print(const struct summary *summary) {
    static struct tree tree;
    ledgers_collect(summary, &tree);
    print_end(summary);
    if (tree.found)
        print_main(summary, &tree);
    else if (summary->from_cupti)
        fputs("  no ledger was found: CUDA did not begin, or its driver does not load the\n"
              "  library that CUDA_INJECTION64_PATH names, or the file could not be written\n",
              stderr);
    else if (!summary->expected_none)
        fputs("  no ledger was found: libmemstow.so was not loaded, or could not write the file\n", stderr);
    image_clear(&tree.main);
}
