/* tree.c — see tree.h. */
#include "tree.h"

#include <string.h>

#include "fold.h"
#include "ids.h"
#include "index.h"
#include "ledger.h"
#include "os.h"
#include "site.h"

enum { NODES_LIMIT = (1 << INDEX_ID_BITS) - 1, WORDS_LIMIT = (1 << INDEX_ID_BITS) - 1 };

static struct series nodes = {
    .type = SNAP_NODE, .record_size = sizeof(struct snap_node), .first_bits = 10, .limit = NODES_LIMIT};
static struct series words = {
    .type = SNAP_SEGMENT, .record_size = sizeof(uint32_t), .first_bits = 12, .limit = WORDS_LIMIT};

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

static struct ids *free_nodes; /* NULL: there never were any */
static const void *segment_record(uint32_t id) { return series_at(&words, id); }
static const void *node_record(uint32_t id) { return series_at(&nodes, id); }

static struct index segment_index = {.equal = segment_equal, .hash = segment_hash, .record = segment_record};
static struct index node_index = {.equal = node_equal, .hash = node_hash, .record = node_record};

/* Segments that are free, by their length: each has the id of the next in its first frame's place. The upper bits
 * count, so that a head which was taken and put back meanwhile is not taken for the same. */
static uint64_t free_segments[TREE_SEGMENT_MAX + 1];
#define FREE_ID ((1u << INDEX_ID_BITS) - 1)

static void put_free(uint32_t id) {
    uint32_t *segment = series_at(&words, id);
    uint64_t *head = &free_segments[segment[0]], seen = os_load(head), now;
    do {
        __atomic_store_n(&segment[1], (uint32_t)seen & FREE_ID, __ATOMIC_RELAXED);
        now = ((seen | FREE_ID) + 1) | id;
    } while (!__atomic_compare_exchange_n(head, &seen, now, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

/* One with room for so many frames, or TREE_NONE. */
static uint32_t take_free_of(uint32_t count) {
    uint64_t *head = &free_segments[count], seen = __atomic_load_n(head, __ATOMIC_ACQUIRE), now;
    do {
        if (!(seen & FREE_ID)) return TREE_NONE;
        const uint32_t *segment = series_at(&words, (uint32_t)seen & FREE_ID);
        now = ((seen | FREE_ID) + 1) | (__atomic_load_n(&segment[1], __ATOMIC_RELAXED) & FREE_ID);
    } while (!__atomic_compare_exchange_n(head, &seen, now, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return (uint32_t)seen & FREE_ID;
}

static bool segments_were_freed;

/* The same; of a longer one the rest, which must be long enough to be one, stays free. */
static uint32_t take_free(uint32_t count) {
    if (!__atomic_load_n(&segments_were_freed, __ATOMIC_RELAXED) || !ledger_is_ours()) return TREE_NONE;
    uint32_t id = take_free_of(count);
    for (uint32_t length = count + 2; id == TREE_NONE && length <= TREE_SEGMENT_MAX; length++) {
        id = take_free_of(length);
        if (id == TREE_NONE) continue;
        *(uint32_t *)series_at(&words, id + 1 + count) = length - count - 1;
        put_free(id + 1 + count);
    }
    return id;
}

static uint32_t segment_of(const uint32_t *frames, uint32_t count) {
    struct run run = {frames, count};
    uint32_t hash = hash_frames(frames, count), id = index_find(&segment_index, hash, &run);
    if (likely(id != INDEX_NONE)) return id;
    id = take_free(count);
    if (id == TREE_NONE && !site_memory_full(SITE_SEGMENTS)) id = series_take_run(&words, count + 1);
    uint32_t *segment = series_at(&words, id);
    if (!segment) {
        fold_want();
        return TREE_NONE;
    }
    segment[0] = count;
    for (uint32_t i = 0; i < count; i++)
        __atomic_store_n(&segment[1 + i], frames[i], __ATOMIC_RELAXED); /* take_free_of */
    uint32_t there = index_insert(&segment_index, hash, &run, id);
    if (there != id) put_free(id);
    return there;
}

static uint32_t new_node(void) {
    struct ids *free = ids_known(&free_nodes);
    uint32_t id = free && ledger_is_ours() ? ids_take(free, TREE_ROOT + 1) : IDS_NONE;
    if (id == IDS_NONE && !site_memory_full(SITE_STACKS)) return series_take(&nodes);
    if (id == IDS_NONE || fold_is_due(ids_count(free), os_load(&nodes.next))) fold_want();
    return id == IDS_NONE ? TREE_NONE : id;
}

uint32_t tree_node(uint32_t parent, const uint32_t *frames, uint32_t count) {
    uint32_t segment = segment_of(frames, count);
    if (unlikely(segment == TREE_NONE)) return TREE_NONE;
    struct snap_node wanted = {.parent = parent, .segment = segment};
    uint32_t hash = hash_node(parent, segment), id = index_find(&node_index, hash, &wanted);
    if (likely(id != INDEX_NONE)) return id;
    id = new_node();
    struct snap_node *node = series_at(&nodes, id);
    if (!node) return TREE_NONE;
    *node = wanted;
    uint32_t there = index_insert(&node_index, hash, &wanted, id);
    if (there != id && ids_known(&free_nodes)) ids_add(free_nodes, id);
    return there;
}

struct snap_node *tree_at(uint32_t node) {
    return series_at(&nodes, node);
}

const uint32_t *tree_segment(uint32_t segment) { return series_at(&words, segment); }

/* --- making room --- */

static struct ids *hidden_nodes, *hidden_segments, *used_segments;

static bool make_sets(void) {
    return ids_made(&free_nodes) && ids_made(&hidden_nodes) && ids_made(&hidden_segments) && ids_made(&used_segments);
}

static bool hold(void) {
    if (!index_hold(&node_index)) return false;
    if (index_hold(&segment_index)) return true;
    index_let_go(&node_index);
    return false;
}

static void let_go(void) {
    index_let_go(&segment_index);
    index_let_go(&node_index);
}

static void use_segment(uint32_t node) { ids_mark(used_segments, tree_at(node)->segment); }

static void find_used_segments(const struct ids *nodes_in_use) {
    ids_clear(used_segments);
    for (uint32_t node = ids_next(nodes_in_use, 0); node != IDS_NONE; node = ids_next(nodes_in_use, node + 1))
        use_segment(node);
}

bool tree_hide(const struct ids *stay) {
    if (!make_sets() || !hold()) return false;
    index_prune(&node_index, stay, hidden_nodes);
    find_used_segments(stay);
    index_prune(&segment_index, used_segments, hidden_segments);
    let_go();
    return true;
}

/* What has a twin by now stays hidden, and is made free by the next one who gives away after its last use. */
static void show(struct index *index, struct series *records, struct ids *hidden) {
    for (uint32_t id = ids_next(hidden, 0); id != IDS_NONE; id = ids_next(hidden, id + 1)) {
        const uint32_t *segment = series_at(records, id);
        struct run run = {segment + 1, segment[0]};
        const void *key = index == &segment_index ? (const void *)&run : segment;
        if (index_insert(index, index->hash(id), key, id) == id) ids_remove(hidden, id);
    }
}

/* A stack that was in the making when the others were hidden may have a segment that is hidden. */
bool tree_give_away(const struct ids *stay) {
    if (!hold()) return false;
    find_used_segments(stay);
    index_each(&node_index, use_segment);
    for (uint32_t node = ids_next(hidden_nodes, 0); node != IDS_NONE; node = ids_next(hidden_nodes, node + 1))
        if (!ids_has(stay, node)) {
            ids_remove(hidden_nodes, node);
            ids_add(free_nodes, node);
        }
    for (uint32_t id = ids_next(hidden_segments, 0); id != IDS_NONE; id = ids_next(hidden_segments, id + 1))
        if (!ids_has(used_segments, id)) {
            ids_remove(hidden_segments, id);
            put_free(id);
        }
    __atomic_store_n(&segments_were_freed, true, __ATOMIC_RELAXED);
    let_go();
    show(&node_index, &nodes, hidden_nodes);
    show(&segment_index, &words, hidden_segments);
    return true;
}

uint64_t tree_node_bytes(void) { return os_load(&nodes.next) * sizeof(struct snap_node) + index_bytes(&node_index); }

uint64_t tree_segment_bytes(void) { return os_load(&words.next) * sizeof(uint32_t) + index_bytes(&segment_index); }

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
    free_nodes = hidden_nodes = hidden_segments = used_segments = NULL;
    memset(free_segments, 0, sizeof free_segments);
    segments_were_freed = false;
}
