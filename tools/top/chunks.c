/* chunks.c — see chunks.h.
 *
 * A chunk has a word for the counter of each site. A counter that has outgrown its word is wide: it lies in another
 * section, and the word has its address. A look reads counters of both kinds. A wide counter always belongs to the same
 * word, so a table can say which chunk it belongs to. */
#include "tools/top/chunks.h"
#include "tools/base/list.h"

#include <stdlib.h>
#include <string.h>

enum { WIDE_BLOCK = 128, COUNTER_WORDS = sizeof(struct snap_counter) / sizeof(uint64_t) };

void chunks_clear(struct sampling *sampling) {
    free(sampling->chunks);
    free(sampling->by_index);
    free(sampling->index_first);
    free(sampling->dirty);
    free(sampling->wide_seen);
    free(sampling->wide_index);
    sampling->chunks = NULL;
    sampling->by_index = NULL;
    sampling->index_first = NULL;
    sampling->dirty = NULL;
    sampling->wide_seen = NULL;
    sampling->wide_index = NULL;
    sampling->chunk_count = sampling->chunk_capacity = sampling->index_count = sampling->used_count = 0;
    sampling->wide_count = 0;
    if (sampling->threads) memset(sampling->threads, 0, sampling->thread_capacity * sizeof *sampling->threads);
}

/* --- finding the chunks --- */

/* Bytes of the source, in memory or copied to `space`. NULL: the source does not have them. */
static const void *bytes_at(const struct sampling *sampling, uint64_t offset, void *space, size_t length) {
    const void *there = source_bytes(&sampling->source, offset, length);
    if (there && (uintptr_t)there % sizeof(uint64_t) == 0) return there;
    return source_read(&sampling->source, offset, space, length) == 0 ? space : NULL;
}

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

/* Adds the chunks of the sections that are not known yet. Reads the heads of these chunks, and of known chunks that had
 * no thread so far. */
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
                    (struct sampling_chunk){.at.offset = section->data + k * section->head.record_size};
            }
            struct sampling_chunk *chunk = &sampling->chunks[number];
            if (!chunk->at.thread && chunk_head(sampling, chunk) < 0) return -1;
        }
    }
    return 0;
}

/* Whether chunks got other numbers since the last look. This happens only if the process lacked memory: otherwise it
 * fills a section before it begins the next one. */
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

/* The number of the wide counter at an address of the process. SIZE_MAX: it is not in a known section. */
static size_t wide_number(const struct sampling *sampling, uint64_t address) {
    size_t base = 0;
    for (size_t i = 0; i < sampling->reader.wide.count; i++) {
        const struct wide_section *wide = &sampling->reader.wide.sections[i];
        uint64_t number = (address - wide->address) / wide->section.head.record_size;
        if (address >= wide->address && number < wide->section.capacity) return base + (size_t)number;
        base += (wide->section.capacity + WIDE_BLOCK - 1) / WIDE_BLOCK * WIDE_BLOCK; /* no block spans two sections */
    }
    return SIZE_MAX;
}

static void wide_note(struct sampling *sampling, const struct sampling_chunk *chunk, const uint64_t *words) {
    for (size_t i = 0; i < SNAP_CHUNK_SITES; i++) {
        if (!(words[i] & SNAP_WIDE_BIT)) continue;
        size_t number = wide_number(sampling, words[i] ^ SNAP_WIDE_BIT);
        if (number < sampling->wide_count) sampling->wide_index[number] = chunk->at.index + 1;
    }
}

static int chunk_look(struct sampling *sampling, struct sampling_chunk *chunk) {
    uint64_t space[SNAP_CHUNK_SITES];
    uint64_t offset = chunk->at.offset + offsetof(struct snap_chunk, words);
    const uint64_t *words = bytes_at(sampling, offset, space, sizeof space);
    if (!words) return reader_truncated(&sampling->reader, offset);
    struct changes_sum sum = changes_of_chunk(words);
    if (changes_same(sum, chunk->seen)) return 0;
    chunk->seen = sum;
    sampling->dirty[chunk->at.index] = 1;
    wide_note(sampling, chunk, words);
    return 0;
}

static int wide_grow(struct sampling *sampling) {
    size_t count = 0;
    for (size_t i = 0; i < sampling->reader.wide.count; i++)
        count += (sampling->reader.wide.sections[i].section.capacity + WIDE_BLOCK - 1) / WIDE_BLOCK * WIDE_BLOCK;
    if (count <= sampling->wide_count) return 0;
    uint64_t *seen = reallocarray(sampling->wide_seen, count / WIDE_BLOCK, sizeof *seen);
    if (seen) sampling->wide_seen = seen;
    uint32_t *index = reallocarray(sampling->wide_index, count, sizeof *index);
    if (index) sampling->wide_index = index;
    if (!seen || !index) return reader_memory(&sampling->reader);
    memset(seen + sampling->wide_count / WIDE_BLOCK, 0, (count - sampling->wide_count) / WIDE_BLOCK * sizeof *seen);
    memset(index + sampling->wide_count, 0, (count - sampling->wide_count) * sizeof *index);
    sampling->wide_count = count;
    return 0;
}

static void wide_dirty(struct sampling *sampling, size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++) {
        uint32_t index = sampling->wide_index[i];
        if (index && index <= sampling->index_count) sampling->dirty[index - 1] = 1;
    }
}

static int wide_look(struct sampling *sampling, const struct section *section, size_t base) {
    uint64_t space[WIDE_BLOCK * COUNTER_WORDS];
    if (section->head.record_size != sizeof(struct snap_counter))
        return reader_damaged(&sampling->reader, section->data, "wide counters of another size");
    for (uint64_t done = 0; done < section->head.count; done += WIDE_BLOCK) {
        size_t count = section->capacity - done < WIDE_BLOCK ? (size_t)(section->capacity - done) : WIDE_BLOCK;
        uint64_t offset = section->data + done * sizeof(struct snap_counter);
        const uint64_t *words = bytes_at(sampling, offset, space, count * sizeof(struct snap_counter));
        if (!words) return reader_truncated(&sampling->reader, offset);
        uint64_t sum = changes_of_wide(words, count * COUNTER_WORDS), *seen;
        seen = &sampling->wide_seen[(base + (size_t)done) / WIDE_BLOCK];
        if (sum == *seen) continue;
        *seen = sum;
        wide_dirty(sampling, base + (size_t)done, count);
    }
    return 0;
}

static int wide_look_all(struct sampling *sampling) {
    size_t base = 0;
    for (size_t i = 0; i < sampling->reader.wide.count; i++) {
        const struct section *section = &sampling->reader.wide.sections[i].section;
        if (wide_look(sampling, section, base) < 0) return -1;
        base += (section->capacity + WIDE_BLOCK - 1) / WIDE_BLOCK * WIDE_BLOCK;
    }
    return 0;
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

static int thread_take(struct sampling *sampling, struct sampling_chunk *chunk) {
    struct snap_counter now, *sum = &chunk->sum;
    uint32_t slot = chunk->at.thread - 1;
    if (threads_grow(sampling, slot) < 0 || counters_sum_chunk(&sampling->reader, &chunk->at, &now) < 0) return -1;
    struct snap_counter *thread = &sampling->threads[slot];
    thread->alloc_bytes += now.alloc_bytes - sum->alloc_bytes;
    thread->alloc_blocks += now.alloc_blocks - sum->alloc_blocks;
    thread->free_bytes += now.free_bytes - sum->free_bytes;
    thread->free_blocks += now.free_blocks - sum->free_blocks;
    *sum = now;
    return 0;
}

static int index_read(struct sampling *sampling, size_t index, struct counters_chunk *chunks) {
    size_t first = sampling->index_first[index], end = sampling->index_first[index + 1];
    struct counters_sites sites;
    for (size_t i = first; i < end; i++) {
        struct sampling_chunk *chunk = &sampling->chunks[sampling->by_index[i]];
        chunks[i - first] = chunk->at;
        if (thread_take(sampling, chunk) < 0) return -1;
    }
    if (end == first) return 0;
    if (counters_settle(&sampling->reader, chunks, end - first, &sites) < 0) return -1;
    return sampling_take(sampling, (uint32_t)index, &sites);
}

static int dirty_read(struct sampling *sampling) {
    struct counters_chunk *chunks = malloc((sampling->used_count + 1) * sizeof *chunks);
    int result = chunks ? 0 : reader_memory(&sampling->reader);
    for (size_t i = 0; result == 0 && i < sampling->index_count; i++)
        if (sampling->dirty[i]) result = index_read(sampling, i, chunks);
    free(chunks);
    return result;
}

int chunks_look(struct sampling *sampling) {
    if (chunks_moved(sampling)) chunks_clear(sampling);
    if (chunks_note(sampling) < 0 || chunks_index(sampling) < 0 || wide_grow(sampling) < 0) return -1;
    if (sampling->dirty) memset(sampling->dirty, 0, sampling->index_count);
    for (size_t i = 0; i < sampling->chunk_count; i++)
        if (sampling->chunks[i].at.thread && chunk_look(sampling, &sampling->chunks[i]) < 0) return -1;
    if (wide_look_all(sampling) < 0) return -1;
    return dirty_read(sampling);
}
