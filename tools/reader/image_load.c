/* image_load.c — see image_load.h. */
#include "tools/reader/image_load.h"
#include "tools/reader/origin_stacks.h"
#include "tools/reader/counters.h"
#include "tools/reader/cuda_image.h"
#include "tools/reader/cupti_image.h"
#include "tools/reader/history_image.h"
#include "tools/reader/misuse_image.h"
#include "tools/reader/nvml_image.h"
#include "tools/image/order.h"
#include "tools/reader/packed.h"
#include "tools/reader/picture.h"
#include "tools/reader/reader.h"
#include "tools/image/runs.h"
#include "tools/reader/slots.h"
#include "tools/reader/trace_lines.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LIVE_TRIES = 4, FOLD_TRIES = 12, FOLD_WAITS = 100, FOLD_WAIT_NS = 10 * 1000 * 1000 };

#define TABLE(reader, type, field, count)                                                                              \
    reader_table((reader), (type), sizeof *(reader)->image->field, (void **)&(reader)->image->field,                   \
                 &(reader)->image->count)

static int load_stacks(struct reader *reader) {
    struct image *image = reader->image;
    if (TABLE(reader, SNAP_FRAME, frames, frame_count) < 0 || TABLE(reader, SNAP_CODE, codes, code_count) < 0 ||
        TABLE(reader, SNAP_RUN, words, word_count) < 0)
        return -1;
    if (image->word_count) return runs_unfold(image) < 0 ? reader_memory(reader) : 0;
    free(image->words);
    image->words = NULL;
    if (TABLE(reader, SNAP_NODE, nodes, node_count) < 0 || TABLE(reader, SNAP_SEGMENT, words, word_count) < 0)
        return -1;
    return order_nodes(image) < 0 ? reader_memory(reader) : 0;
}

/* Loads the tables that are only shown to people:
 * - call stacks
 * - origins and records of misuse, which refer to call stacks
 * - memory over time
 * - the series: the earlier readings in a snapshot of `memstow leaks` */
static int load_to_show(struct reader *reader) {
    if (slots_load_origins(reader) < 0 || cuda_image_lend(reader) < 0 || origin_stacks_lend(reader) < 0 ||
        misuse_image_lend(reader) < 0 || load_stacks(reader) < 0)
        return -1;
    misuse_image_take_back(reader);
    origin_stacks_take_back(reader);
    return history_image_load(reader) < 0 || TABLE(reader, SNAP_SERIES, series, series_size) < 0 ? -1 : 0;
}

static int load_tables(struct reader *reader) {
    size_t strings;
    if ((reader->figures ? cuda_image_lend(reader) : load_to_show(reader)) < 0) return -1;
    if (cuda_image_load(reader) < 0 || cupti_image_load(reader) < 0 || nvml_image_load(reader) < 0) return -1;
    if (reader_table(reader, SNAP_STRINGS, 1, (void **)&reader->image->strings, &strings) < 0) return -1;
    reader->image->strings_size = strings;
    if (TABLE(reader, SNAP_PROCESS, facts, fact_count) < 0 || TABLE(reader, SNAP_MODULE, modules, module_count) < 0 ||
        TABLE(reader, SNAP_TAG, tags, tag_count) < 0 || TABLE(reader, SNAP_OWNER, owners, owner_count) < 0 ||
        TABLE(reader, SNAP_THREAD, threads, thread_count) < 0 || TABLE(reader, SNAP_REGION, regions, region_count) < 0)
        return -1;
    image_sort_owners(reader->image);
    image_adopt(reader->image);
    for (size_t i = 0; i < reader->image->thread_count; i++)
        reader->image->threads[i].name[sizeof reader->image->threads[i].name - 1] = 0;
    if (trace_lines_load(reader) < 0) return -1;
    return slots_load(reader);
}

/* Reads the list of sections again, after the counters were read. A running process registers sites, modules and
 * strings before it counts at them, so the new sections have everything that the counters refer to. *steady becomes
 * false if chunks were added meanwhile, or if the file is now larger than the part of it that was mapped. */
static int image_load_rescan(struct reader *reader, bool *steady) {
    uint64_t chunks = counters_chunks(reader), size = 0;
    free(reader->sections);
    reader->sections = NULL;
    reader->section_count = reader->section_capacity = 0;
    if (source_read(reader->source, offsetof(struct snap_header, size), &size, sizeof size) < 0)
        return reader_damaged(reader, 0, "its header vanished");
    *steady = size <= reader->source->size;
    if (*steady) reader->image->header.size = size;
    if (reader_scan(reader) < 0) return -1;
    *steady = *steady && counters_chunks(reader) == chunks;
    return 0;
}

static uint32_t fold_sequence(const struct reader *reader) {
    uint32_t sequence = 0;
    source_read(reader->source, offsetof(struct snap_header, fold_sequence), &sequence, sizeof sequence);
    return sequence;
}

/* Waits until no fold is in progress, before anything is read. A fold gives the ids of stacks without live blocks to
 * other stacks, a group of ids at a time. fold_sequence grows before and after each group, and is odd in between. So
 * this function waits while fold_sequence is odd. It also waits if fold_sequence has changed since the last look,
 * because more groups may follow soon.
 * - `seen`: fold_sequence at the last try to read the file. Only if `seen` is even, the first look is compared with it.
 * - *waits: the pauses that are left. They are limited, because the process may be stopped. */
static void wait_for_fold(const struct reader *reader, uint32_t seen, int *waits) {
    const struct timespec pause = {.tv_nsec = FOLD_WAIT_NS};
    uint32_t now = fold_sequence(reader);
    if (seen & 1) seen = now;
    for (; (now & 1 || now != seen) && (*waits)-- > 0; now = fold_sequence(reader)) {
        seen = now;
        nanosleep(&pause, NULL);
    }
}

/* Whether a fold was in progress when the reading began, or happened during the reading. In both cases figures may be
 * counted at wrong sites. If the process was killed during a fold, totals of sites without live blocks may be missing
 * or belong to the wrong site. */
static bool folds_meanwhile(const struct reader *reader) {
    uint32_t before = reader->image->header.fold_sequence;
    return before & 1 || (reader->live && fold_sequence(reader) != before);
}

/* Marks all figures as possibly wrong, because a fold happened or a wide counter was missing. While the process is
 * alive, the ledger is then read again, and this image is used only if no further try is left. */
static void mark_inexact(struct image *image) {
    for (size_t i = 0; i < image->total_count; i++) image->totals[i].flags |= TOTAL_INEXACT;
}

static int load_ledger(struct reader *reader, bool *steady) {
    if (counters_find_wide(reader) < 0 || counters_tally(reader) < 0 ||
        (reader->live && image_load_rescan(reader, steady) < 0))
        return -1;
    if (!reader->figures && picture_load(reader) < 0) return -1;
    if (counters_name_sites(reader) < 0 || load_tables(reader) < 0) return -1;
    counters_link_blocks(reader);
    if (!reader->figures && counters_sum_threads(reader) < 0) return -1;
    if (!folds_meanwhile(reader) && !reader->wide.missing) return 0;
    mark_inexact(reader->image);
    *steady = !reader->live;
    return 0;
}

static int load_once(struct reader *reader, bool *steady) {
    struct image *image = reader->image;
    if (reader_header(&image->header, reader->source, image->error, sizeof image->error) < 0 || reader_scan(reader) < 0)
        return -1;
    int result = image->header.kind == SNAP_LEDGER ? load_ledger(reader, steady)
                 : packed_load(reader) < 0         ? -1
                                                   : load_tables(reader);
    if (result < 0) return -1;
    image_sum(image);
    image_sum_rss(image);
    return 0;
}

static void keep_error_only(struct image *image) {
    struct image failed = {0};
    memcpy(failed.error, image->error, sizeof failed.error);
    image_clear(image);
    *image = failed;
}

static int load_steadily(struct image *image, struct source *source, bool live, bool figures) {
    int tries = LIVE_TRIES, folds = FOLD_TRIES, waits = FOLD_WAITS;
    uint32_t seen = 1;
    for (;;) {
        memset(image, 0, sizeof *image);
        struct reader reader = {.image = image, .source = source, .live = live, .figures = figures};
        bool steady = true;
        if (live) wait_for_fold(&reader, seen, &waits);
        int result = load_once(&reader, &steady);
        bool grew = live && image->header.size > source->size; /* the file has grown since it was mapped */
        int *left = folds_meanwhile(&reader) ? &folds : &tries;
        free(reader.sections);
        free(reader.site_of);
        free(reader.slots);
        seen = image->header.fold_sequence;
        if (result < 0) keep_error_only(image);
        if ((result < 0 && !grew) || (result == 0 && steady) || --*left == 0) {
            image->running = live && result == 0;
            return result;
        }
        image_clear(image);
        if (source_refresh(source) < 0) return reader_damaged(&reader, 0, "it could not be mapped again");
    }
}

int image_load(struct image *image, struct source *source, bool live) {
    return load_steadily(image, source, live, false);
}

int image_load_figures(struct image *image, struct source *source, bool live) {
    return load_steadily(image, source, live, true);
}
