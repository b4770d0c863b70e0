/* tree.c — see tree.h. */
#include "tree.h"

#include <string.h>

#include "index.h"
#include "ledger.h"
#include "os.h"
#include "site.h"

enum { NODES_LIMIT = (1 << INDEX_ID_BITS) - 1, WORDS_LIMIT = (1 << INDEX_ID_BITS) - 1 };

static struct series nodes = {
    .type = SNAP_NODE, .record_size = sizeof(struct snap_node), .first_capacity = 1024, .limit = NODES_LIMIT};
static struct series words = {
    .type = SNAP_SEGMENT, .record_size = sizeof(uint32_t), .first_capacity = 4096, .limit = WORDS_LIMIT};

struct run {
    const uint32_t *frames;
    uint32_t count;
};

static uint32_t mixed(uint64_t h) {
    h ^= h >> 32;
    h *= 0xD6E8FEB86659FD93u;
    return (uint32_t)(h >> 32);
}

static uint32_t hash_frames(const uint32_t *frames, uint32_t count) {
    uint64_t h = count;
    for (uint32_t i = 0; i < count; i++) h = (h ^ frames[i]) * 0x9E3779B97F4A7C15u + (h >> 29);
    return mixed(h);
}

static bool segment_equal(uint32_t id, const void *key) {
    const struct run *run = key;
    const uint32_t *segment = series_at(&words, id);
    return segment[0] == run->count && !memcmp(segment + 1, run->frames, run->count * sizeof *run->frames);
}

static uint32_t segment_hash(uint32_t id) {
    const uint32_t *segment = series_at(&words, id);
    return hash_frames(segment + 1, segment[0]);
}

static uint32_t hash_node(uint32_t parent, uint32_t segment) {
    return mixed(((uint64_t)parent << 32 | segment) * 0x9E3779B97F4A7C15u);
}

static bool node_equal(uint32_t id, const void *key) {
    const struct snap_node *node = series_at(&nodes, id), *wanted = key;
    return node->parent == wanted->parent && node->segment == wanted->segment;
}

static uint32_t node_hash(uint32_t id) {
    const struct snap_node *node = series_at(&nodes, id);
    return hash_node(node->parent, node->segment);
}

static struct index segment_index = {.equal = segment_equal, .hash = segment_hash};
static struct index node_index = {.equal = node_equal, .hash = node_hash};

static uint32_t segment_of(const uint32_t *frames, uint32_t count) {
    struct run run = {frames, count};
    uint32_t hash = hash_frames(frames, count), id = index_find(&segment_index, hash, &run);
    if (likely(id != INDEX_NONE)) return id;
    if (site_memory_full()) return TREE_NONE;
    id = series_take_run(&words, count + 1);
    uint32_t *segment = series_at(&words, id);
    if (!segment) return TREE_NONE;
    segment[0] = count;
    memcpy(segment + 1, frames, count * sizeof *frames);
    return index_insert(&segment_index, hash, &run, id);
}

uint32_t tree_node(uint32_t parent, const uint32_t *frames, uint32_t count) {
    uint32_t segment = segment_of(frames, count);
    if (unlikely(segment == TREE_NONE)) return TREE_NONE;
    struct snap_node wanted = {.parent = parent, .segment = segment};
    uint32_t hash = hash_node(parent, segment), id = index_find(&node_index, hash, &wanted);
    if (likely(id != INDEX_NONE)) return id;
    if (site_memory_full()) return TREE_NONE;
    id = series_take(&nodes);
    struct snap_node *node = series_at(&nodes, id);
    if (!node) return TREE_NONE;
    *node = wanted;
    return index_insert(&node_index, hash, &wanted, id);
}

struct snap_node *tree_at(uint32_t node) {
    return series_at(&nodes, node);
}

const uint32_t *tree_segment(uint32_t segment) { return series_at(&words, segment); }

uint64_t tree_bytes(void) {
    return os_load(&nodes.next) * sizeof(struct snap_node) + os_load(&words.next) * sizeof(uint32_t) +
           index_bytes(&segment_index) + index_bytes(&node_index);
}

/* Ids from 1 on: word 0 is the empty segment, node 0 the empty stack. */
bool tree_begin(void) {
    return series_take(&words) == 0 && series_take(&nodes) == TREE_ROOT && index_begin(&segment_index) &&
           index_begin(&node_index);
}

void tree_abandon(void) {
    series_reset(&nodes);
    series_reset(&words);
    index_reset(&segment_index);
    index_reset(&node_index);
}
