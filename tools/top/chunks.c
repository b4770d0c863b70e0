/* chunks.c — see chunks.h.
 *
 * The process counts an event in a chunk, and then raises the chunk's mark. A look reads all marks before any counter.
 * So if a look misses an event, the mark has changed at the next look, which reads the chunk. Chunks with index 0 need
 * no mark, because they are read at each look. */
#include "tools/top/chunks.h"
#include "tools/base/list.h"

#include <stdlib.h>
#include <string.h>

void chunks_clear(struct sampling *sampling) {
    free(sampling->chunks);
    free(sampling->by_index);
    free(sampling->index_first);
    free(sampling->dirty);
    sampling->chunks = NULL;
    sampling->by_index = NULL;
    sampling->index_first = NULL;
    sampling->dirty = NULL;
    sampling->chunk_count = sampling->chunk_capacity = sampling->index_count = sampling->used_count = 0;
    if (sampling->threads) memset(sampling->threads, 0, sampling->thread_capacity * sizeof *sampling->threads);
}

/* --- finding the chunks --- */

/* Reads the thread and the index of a chunk. If its sites are newer than the list of sections, leaves the chunk for the
 * next look. */
static int chunk_head(struct sampling *sampling, struct sampling_chunk *chunk) {
    uint32_t head[2]; /* thread and index */
    if (source_read(&sampling->source, chunk->at.offset, head, sizeof head) < 0)
        return reader_truncated(&sampling->reader, chunk->at.offset);
    if (head[1] > UINT32_MAX / SNAP_CHUNK_SITES)
        return reader_damaged(&sampling->reader, chunk->at.offset, "counters of an impossible site");
    if (head[1] > sampling_records(sampling, SNAP_SITE) / SNAP_CHUNK_SITES) return 0;
    chunk->at.thread = head[0];
    chunk->at.index = head[1];
    return 0;
}

/* Adds the chunks that are not known yet. Reads the head of each chunk whose thread is not known yet. */
static int chunks_note(struct sampling *sampling) {
    size_t number = 0;
    for (size_t i = 0; i < sampling->reader.section_count; i++) {
        const struct section *section = &sampling->reader.sections[i];
        if (section->head.type != SNAP_COUNTERS) continue;
        for (uint64_t k = 0; k < section->head.count; k++, number++) {
            if (number == sampling->chunk_count) {
                if (!LIST_GROW(sampling->chunks, sampling->chunk_count, sampling->chunk_capacity))
                    return reader_memory(&sampling->reader);
                sampling->chunks[sampling->chunk_count++] =
                    (struct sampling_chunk){.at = counters_chunk_at(section, k)};
            }
            struct sampling_chunk *chunk = &sampling->chunks[number];
            if (!chunk->at.thread && chunk_head(sampling, chunk) < 0) return -1;
        }
    }
    return 0;
}

/* Whether chunks got other numbers since the last look. A chunk's number counts the chunks before it in the ledger. The
 * count of a section may be too low for a moment, although a later section has chunks: a thread has taken the last
 * chunk of the section, and not raised the count yet. When it raises the count, the chunks of the later section get
 * other numbers. */
static bool chunks_moved(const struct sampling *sampling) {
    size_t number = 0;
    for (size_t i = 0; i < sampling->reader.section_count; i++) {
        const struct section *section = &sampling->reader.sections[i];
        if (section->head.type != SNAP_COUNTERS) continue;
        if (number < sampling->chunk_count && section->head.count &&
            sampling->chunks[number].at.offset != section->data)
            return true;
        number += section->head.count;
    }
    return false;
}

static int index_sort(struct sampling *sampling, size_t used, size_t indices) {
    uint32_t *by_index = malloc((used + 1) * sizeof *by_index);
    size_t *first = calloc(indices + 2, sizeof *first);
    uint8_t *dirty = calloc(indices + 1, 1);
    if (!by_index || !first || !dirty) {
        free(by_index);
        free(first);
        free(dirty);
        return reader_memory(&sampling->reader);
    }
    for (size_t i = 0; i < sampling->chunk_count; i++)
        if (sampling->chunks[i].at.thread) first[sampling->chunks[i].at.index + 2]++;
    for (size_t i = 2; i < indices + 2; i++) first[i] += first[i - 1];
    for (size_t i = 0; i < sampling->chunk_count; i++)
        if (sampling->chunks[i].at.thread) by_index[first[sampling->chunks[i].at.index + 1]++] = (uint32_t)i;
    free(sampling->by_index);
    free(sampling->index_first);
    free(sampling->dirty);
    sampling->by_index = by_index;
    sampling->index_first = first;
    sampling->dirty = dirty;
    sampling->index_count = indices;
    sampling->used_count = used;
    return 0;
}

static int chunks_index(struct sampling *sampling) {
    size_t used = 0, indices = 0;
    for (size_t i = 0; i < sampling->chunk_count; i++) {
        const struct counters_chunk *chunk = &sampling->chunks[i].at;
        if (!chunk->thread) continue;
        used++;
        if (chunk->index >= indices) indices = (size_t)chunk->index + 1;
    }
    return used == sampling->used_count ? 0 : index_sort(sampling, used, indices);
}

/* --- finding the chunks that changed --- */

static int chunk_look(struct sampling *sampling, struct sampling_chunk *chunk, bool whatever) {
    bool tells = counters_chunk_tells(&chunk->at);
    uint64_t mark = 0;
    if (tells && counters_mark(&sampling->reader, &chunk->at, &mark) < 0) return -1;
    if (tells && chunk->known && mark == chunk->mark && !whatever) return 0;
    chunk->mark = mark;
    chunk->known = true;
    sampling->dirty[chunk->at.index] = 1;
    return 0;
}

/* Whether marks may be missing: a process that was killed may have counted an event, but not written the mark. */
static bool marks_may_lack(const struct sampling *sampling) {
    return sampling->state != SAMPLING_RUNS || sampling->exec_waits;
}

/* --- reading the chunks that changed --- */

static int threads_grow(struct sampling *sampling, uint32_t slot) {
    size_t old = sampling->thread_capacity;
    if (slot < old) return 0;
    if (slot > UINT16_MAX) return reader_damaged(&sampling->reader, 0, "counters of an impossible thread");
    if (!list_grow(&sampling->threads, sizeof *sampling->threads, old, slot + 1 - old, &sampling->thread_capacity))
        return reader_memory(&sampling->reader);
    memset(sampling->threads + old, 0, (sampling->thread_capacity - old) * sizeof *sampling->threads);
    return 0;
}

static int thread_take(struct sampling *sampling, struct sampling_chunk *chunk, struct snap_counter now) {
    struct snap_counter *sum = &chunk->sum;
    uint32_t slot = chunk->at.thread - 1;
    if (threads_grow(sampling, slot) < 0) return -1;
    struct snap_counter *thread = &sampling->threads[slot];
    thread->alloc_bytes += now.alloc_bytes - sum->alloc_bytes;
    thread->alloc_blocks += now.alloc_blocks - sum->alloc_blocks;
    thread->free_bytes += now.free_bytes - sum->free_bytes;
    thread->free_blocks += now.free_blocks - sum->free_blocks;
    *sum = now;
    return 0;
}

static int index_read(struct sampling *sampling, size_t index, struct counters_chunk *chunks,
                      struct snap_counter *sums) {
    size_t first = sampling->index_first[index], count = sampling->index_first[index + 1] - first;
    const uint32_t *by_index = sampling->by_index + first;
    struct counters_sites sites;
    for (size_t i = 0; i < count; i++) chunks[i] = sampling->chunks[by_index[i]].at;
    if (count == 0) return 0;
    if (counters_settle(&sampling->reader, chunks, count, &sites, sums) < 0) return -1;
    for (size_t i = 0; i < count; i++)
        if (thread_take(sampling, &sampling->chunks[by_index[i]], sums[i]) < 0) return -1;
    return sampling_take(sampling, (uint32_t)index, &sites);
}

static int dirty_read(struct sampling *sampling) {
    struct counters_chunk *chunks = malloc((sampling->used_count + 1) * sizeof *chunks);
    struct snap_counter *sums = malloc((sampling->used_count + 1) * sizeof *sums);
    int result = chunks && sums ? 0 : reader_memory(&sampling->reader);
    for (size_t i = 0; result == 0 && i < sampling->index_count; i++)
        if (sampling->dirty[i]) result = index_read(sampling, i, chunks, sums);
    free(chunks);
    free(sums);
    return result;
}

int chunks_look(struct sampling *sampling) {
    if (chunks_moved(sampling)) chunks_clear(sampling);
    bool whatever = marks_may_lack(sampling);
    if (chunks_note(sampling) < 0 || chunks_index(sampling) < 0) return -1;
    if (sampling->dirty) memset(sampling->dirty, 0, sampling->index_count);
    for (size_t i = 0; i < sampling->chunk_count; i++)
        if (sampling->chunks[i].at.thread && chunk_look(sampling, &sampling->chunks[i], whatever) < 0) return -1;
    return dirty_read(sampling);
}
