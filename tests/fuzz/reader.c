/* reader.c — fuzz target: for any bytes, these end without harm: the reader, the parts of resident memory, the groups,
 * the call stacks, the decisions, the search for leaks, memory over time, and the writer. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tools/views/history.h"
#include "tools/views/calltree.h"
#include "tools/reader/cuda_image.h"
#include "tools/decisions/decisions.h"
#include "tools/views/estimate.h"
#include "tools/views/groups.h"
#include "tools/leaks/leaks.h"
#include "tools/reader/image_load.h"
#include "tools/views/resident.h"
#include "tools/leaks/series.h"
#include "tools/views/stacks.h"
#include "tools/subject/writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Takes the place of libc's nanosleep, and returns at once. The loader waits between its attempts to read a ledger that
 * changes. Nobody changes the ledgers of this target, so it would wait in vain for nearly all of the time. */
int nanosleep(const struct timespec *duration, struct timespec *left) { return (void)duration, (void)left, 0; }

/* Down the hottest path, as the report does. */
static void use_tree(const struct image *image) {
    struct calltree tree;
    struct branches roots = {0}, next;
    uint64_t *bytes = calloc(image->node_count + 1, sizeof *bytes);
    for (size_t i = 0; bytes && i < image->total_count; i++)
        if (image->totals[i].stack < image->node_count) bytes[image->totals[i].stack] += image->totals[i].alloc_bytes;
    int result = calltree_begin(&tree, image, bytes, NULL);
    if (result == 0) result = calltree_expand(&tree, NULL, &roots);
    for (int depth = 0; result == 0 && roots.count && depth < 100; depth++) {
        result = calltree_expand(&tree, &roots.list[0], &next);
        calltree_clear(&roots);
        if (result == 0) roots = next;
    }
    calltree_clear(&roots);
    calltree_end(&tree);
}

static void use_stacks(const struct image *image) {
    uint32_t frames[64];
    uint8_t *marks = calloc(image->frame_count + 1, 1), *marked = marks ? stack_marked(image, marks) : NULL;
    for (uint32_t node = 0; node < image->node_count && node < 1000; node++) {
        size_t count = stack_frames(image, node, frames, 64);
        for (size_t i = 0; i < count; i++) {
            const struct snap_frame *frame = stack_frame(image, frames[i]);
            const struct snap_code *code = frame ? stack_frame_code(image, frame) : NULL;
            if (code) image_string(image, code->name);
            if (frame) stack_frame_module(image, frame);
        }
    }
    free(stack_hashes(image));
    free(stack_python_hashes(image));
    free(marks);
    free(marked);
    use_tree(image);
}

static void use_decisions(const struct image *image, FILE *nowhere) {
    struct decisions decisions;
    if (decisions_load(&decisions, image) == 0) decisions_print(&decisions, image, nowhere);
    decisions_clear(&decisions);
}

static void use_leaks(const struct image *image) {
    static struct leak_sites sites;
    struct leaks leaks;
    leak_sites_begin(&sites);
    if (leak_sites_read(&sites, image) == 0 && series_unpack(&sites, image) == 0) {
        if (leaks_find(&leaks, &sites, image, LEAKS_FLOOR) == 0)
            for (uint32_t i = 0; i < sites.run_count && i < 10; i++) leaks_run(&leaks, i);
        leaks_clear(&leaks);
    }
    leak_sites_end(&sites);
}

static void use_cuda(const struct image *image) {
    struct image view = cuda_view(image);
    struct groups groups;
    groups_begin(&groups, BY_SITE, 1);
    if (view.totals) groups_add(&groups, &view, 0);
    groups_end(&groups);
    cuda_view_end(&view);
    free(cuda_shares(image));
    for (size_t i = 0; i < image->cuda.device_count; i++) cuda_gap(&image->cuda.devices[i]);
}

static void use_history(const struct image *image) {
    struct history history;
    uint64_t columns[64];
    if (history_make(&history, image) == 0 && history_has_curve(&history)) {
        history_columns(&history, columns, 64);
        history_line(&history, 64);
    }
    for (size_t i = 0; i < history.mark_count; i++) {
        history_words(&history, &history.marks[i]);
        history_detail(&history.marks[i]);
    }
    history_clear(&history);
}

static void use(struct image *image) {
    use_history(image);
    use_leaks(image);
    struct resident resident;
    use_cuda(image);
    if (resident_split(&resident, image) == 0) resident_clear(&resident);
    if (estimate_stacks(image) == 0 && image->variances)
        for (int measure = 0; measure < MEASURES; measure++) estimate_sum(image, (enum measure)measure);
    for (int view = 0; view < VIEWS; view++) {
        struct groups groups;
        groups_begin(&groups, (enum view)view, 1 + view % 2);
        groups_add(&groups, image, 0);
        groups_sort_by_growth(&groups, 10);
        groups_end(&groups);
    }
    use_stacks(image);
    FILE *nowhere = fopen("/dev/null", "w");
    if (nowhere) {
        use_decisions(image, nowhere);
        writer_snapshot(image, nowhere);
        fclose(nowhere);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int live = 0; live < 2; live++) {
        struct image image;
        struct source source;
        source_buffer(&source, data, size);
        if (image_load(&image, &source, live) == 0) use(&image);
        image_clear(&image);
    }
    return 0;
}
