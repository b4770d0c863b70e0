/* cupti_image.c — see cupti_image.h. */
#include "tools/reader/cupti_image.h"
#include "tools/reader/reader.h"
#include "tools/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOURCES_NAMED = 3, NOT_INITIALIZED = 15, ANOTHER_SUBSCRIBER = 39, UNKNOWN_ERROR = 999 };

/* --- loading CUPTI's records --- */

static int load_head(struct reader *reader) {
    struct cupti_image *cupti = &reader->image->cupti;
    struct snap_cupti *heads = NULL;
    size_t count;
    int result = reader_table(reader, SNAP_CUPTI, sizeof *heads, (void **)&heads, &count);
    if (result == 0 && count) {
        cupti->asked = true;
        cupti->head = heads[0];
        cupti->head.call[sizeof cupti->head.call - 1] = 0;
        cupti->head.library[sizeof cupti->head.library - 1] = 0;
        cupti->head.other[sizeof cupti->head.other - 1] = 0;
    }
    free(heads);
    return result;
}

int cupti_image_load(struct reader *reader) {
    struct cupti_image *cupti = &reader->image->cupti;
    size_t count, kept = 0;
    if (load_head(reader) < 0 ||
        reader_table(reader, SNAP_CUPTI_BLOCK, sizeof *cupti->blocks, (void **)&cupti->blocks, &count) < 0)
        return -1;
    if (count > SNAP_CUPTI_BLOCKS) count = SNAP_CUPTI_BLOCKS;
    for (size_t i = 0; i < count; i++) {
        if (cupti->blocks[i].state < SNAP_CUPTI_ONLY_CUPTI || cupti->blocks[i].state > SNAP_CUPTI_SIZES) continue;
        cupti->blocks[kept] = cupti->blocks[i];
        cupti->blocks[kept].source[sizeof cupti->blocks->source - 1] = 0;
        kept++;
    }
    cupti->block_count = kept;
    return 0;
}

/* --- blocks that only CUPTI saw, by library --- */

static struct cupti_source *source_of(struct cupti_source *sources, size_t *count, const char *path) {
    for (size_t i = 0; i < *count; i++)
        if (strcmp(sources[i].path, path) == 0) return &sources[i];
    sources[*count].path = path;
    return &sources[(*count)++];
}

static int cupti_image_by_bytes(const void *left, const void *right) {
    const struct cupti_source *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return strcmp(a->path, b->path);
}

struct cupti_source *cupti_sources(const struct cupti_image *cupti, size_t *count) {
    struct cupti_source *sources = calloc(cupti->block_count + 1, sizeof *sources);
    *count = 0;
    for (size_t i = 0; sources && i < cupti->block_count; i++) {
        const struct snap_cupti_block *block = &cupti->blocks[i];
        if (block->state != SNAP_CUPTI_ONLY_CUPTI) continue;
        struct cupti_source *source = source_of(sources, count, block->source);
        source->blocks++;
        source->bytes += block->bytes;
    }
    if (sources) qsort(sources, *count, sizeof *sources, cupti_image_by_bytes);
    return sources;
}

/* --- the sentence about the comparison --- */

__attribute__((format(printf, 2, 3))) static void add(char text[CUPTI_SENTENCE], const char *format, ...) {
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, CUPTI_SENTENCE - used, format, arguments);
    va_end(arguments);
}

static void add_sum(char text[CUPTI_SENTENCE], const struct snap_cupti_sum *sum, const char *what) {
    if (!sum->blocks) return;
    add(text, "%s %s, %s %s", text[strlen(text) - 1] == ':' ? "" : ";", text_block_count(sum->blocks).s,
        text_size(sum->bytes).s, what);
}

static void add_sources(char text[CUPTI_SENTENCE], const struct cupti_image *cupti) {
    size_t count;
    struct cupti_source *sources = cupti_sources(cupti, &count);
    for (size_t i = 0; sources && i < count && i < SOURCES_NAMED; i++)
        add(text, "%s %s from %s", i ? "," : "", text_size(sources[i].bytes).s,
            *sources[i].path ? text_fit(text_base_name(sources[i].path), 60).s : "an unknown place");
    if (count > SOURCES_NAMED) add(text, " and %zu more", count - SOURCES_NAMED);
    free(sources);
}

static void add_lost(char text[CUPTI_SENTENCE], const struct snap_cupti *head) {
    if (head->no_calls) add(text, "; without physical memory, which CUPTI does not report (error %u)", head->no_calls);
    if (head->no_pools) add(text, "; without pools, which CUPTI does not report (error %u)", head->no_pools);
    if (head->unknown)
        add(text, "; %s records of a kind or layout that is not known (the first: %u)", text_count(head->unknown).s,
            head->unknown_kind);
    uint64_t lost = head->dropped + head->unread;
    if (lost) add(text, "; %s of CUPTI's records were lost, so the result is not certain", text_count(lost).s);
}

static bool cupti_image_differs(const struct snap_cupti *head) {
    return head->only_cupti.blocks || head->only_ledger.blocks || head->sizes.blocks || head->addresses_other.blocks ||
           head->pools_other;
}

static void add_comparison(char text[CUPTI_SENTENCE], const struct cupti_image *cupti) {
    const struct snap_cupti *head = &cupti->head;
    if (cupti_image_differs(head)) {
        add(text, "differs from the ledger:");
        add_sum(text, &head->only_cupti, "that only CUPTI saw:");
        if (head->only_cupti.blocks) add_sources(text, cupti);
        add_sum(text, &head->only_ledger, "that CUPTI did not see");
        add_sum(text, &head->sizes, "of another size in the ledger");
        if (head->addresses_other.blocks)
            add(text, "%s %s mappings or reserved addresses", text[strlen(text) - 1] == ':' ? "" : ";",
                text_count(head->addresses_other.blocks).s);
        if (head->pools_other)
            add(text, "%s %s pool%s in use", text[strlen(text) - 1] == ':' ? "" : ";", text_count(head->pools_other).s,
                head->pools_other == 1 ? " or its bytes" : "s or their bytes");
        add_sum(text, &head->same, "the same in both");
    } else {
        add(text, "agrees with the ledger: %s, %s", text_block_count(head->same.blocks).s,
            text_size(head->same.bytes).s);
    }
    add_lost(text, head);
}

/* Says that the ledger comes from CUPTI's records. If the process ended without its exit handlers, also says from which
 * time on records may be missing, because CUPTI had not delivered them. */
static void add_source(char text[CUPTI_SENTENCE], const struct image *image) {
    const struct snap_cupti *head = &image->cupti.head;
    uint64_t began = image->header.start_ns, since = head->read_ns > began ? head->read_ns - began : 0;
    bool live = image->running || image->header.kind == SNAP_SNAPSHOT;
    add(text, "is where this ledger comes from: %s records", text_count(head->records).s);
    if (head->state == SNAP_CUPTI_SOURCE && !live)
        add(text,
            "; CUDA calls after %s may be missing: CUPTI was last asked for records then, and the program "
            "ended without its exit handlers",
            text_duration(since).s);
    else if (head->state == SNAP_CUPTI_SOURCE)
        add(text, ", up to %s after the start", text_duration(since).s);
    add_lost(text, head);
}

static const char *cupti_image_reason(uint32_t result) {
    if (result == ANOTHER_SUBSCRIBER) return ": another profiler has CUPTI";
    return result == UNKNOWN_ERROR || result == NOT_INITIALIZED
               ? ": there is no driver, or the driver refuses this process"
               : "";
}

static void add_refusal(char text[CUPTI_SENTENCE], const char *nothing, const struct snap_cupti *head) {
    add(text, "%s: %s returned %u%s", nothing, text_fit(head->call, 40).s, head->result,
        cupti_image_reason(head->result));
    if (*head->other) add(text, ", %s", text_fit(head->other, 64).s);
}

const char *cupti_sentence(const struct image *image, char text[CUPTI_SENTENCE]) {
    const struct cupti_image *cupti = &image->cupti;
    const struct snap_cupti *head = &cupti->head;
    const char *nothing = image->header.flags & SNAP_FROM_CUPTI ? "no source" : "not compared";
    *text = 0;
    if (!cupti->asked)
        add(text, "%s: CUDA did not begin, or its driver does not load the library that CUDA_INJECTION64_PATH names",
            nothing);
    else if (head->state == SNAP_CUPTI_SOURCE || head->state == SNAP_CUPTI_ENDED)
        add_source(text, image);
    else if (head->state == SNAP_CUPTI_COMPARED)
        add_comparison(text, cupti);
    else if (head->state == SNAP_CUPTI_LISTENING)
        add(text, "%s: the program has not run its exit handlers", nothing);
    else if (head->state == SNAP_CUPTI_NOT_FOUND)
        add(text, "%s: no libcupti.so was found for the program's CUDA", nothing);
    else if (head->state == SNAP_CUPTI_TOO_OLD)
        add(text, "%s: CUPTI's version is %u, and CUDA 11.2's (15) or a later one is needed", nothing, head->version);
    else
        add_refusal(text, nothing, head);
    return text;
}
