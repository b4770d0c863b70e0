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

static struct index segment_index = {
    .equal = segment_equal, .hash = segment_hash, .record = segment_record, .may_grow = site_has_memory};
static struct index node_index = {
    .equal = node_equal, .hash = node_hash, .record = node_record, .may_grow = site_has_memory};

static bool segments_were_freed, segments_are_joined;
static int64_t free_words; /* in segments that are free */

static void count_free_words(int64_t more) { __atomic_fetch_add(&free_words, more, __ATOMIC_RELAXED); }

static bool words_are_short(void) {
    int64_t free = __atomic_load_n(&free_words, __ATOMIC_RELAXED);
    return fold_is_short(free > 0 ? (uint64_t)free : 0, os_load(&words.next)) && site_memory_full(SITE_SOON);
}

/* Segments that are free, by their length: each has the id of the next in its first frame's place. The upper bits
 * count, so that a head which was taken and put back meanwhile is not taken for the same. From LONG on any length may
 * be cut to any that is wanted. */
enum { LONG = TREE_SEGMENT_MAX + 2, LONGEST = 256 };
static uint64_t free_segments[LONG + 1];
#define FREE_ID ((1u << INDEX_ID_BITS) - 1)

static void put_free(uint32_t id) {
    uint32_t *segment = series_at(&words, id);
    uint64_t *head = &free_segments[segment[0] < LONG ? segment[0] : LONG], seen = os_load(head), now;
    count_free_words(1 + (int64_t)segment[0]);
    do {
        __atomic_store_n(&segment[1], (uint32_t)seen & FREE_ID, __ATOMIC_RELAXED);
        now = ((seen | FREE_ID) + 1) | id;
    } while (!__atomic_compare_exchange_n(head, &seen, now, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

/* One of that length, or TREE_NONE. */
static uint32_t take_free_of(uint32_t length) {
    uint64_t *head = &free_segments[length], seen = __atomic_load_n(head, __ATOMIC_ACQUIRE), now;
    do {
        if (!(seen & FREE_ID)) return TREE_NONE;
        const uint32_t *segment = series_at(&words, (uint32_t)seen & FREE_ID);
        now = ((seen | FREE_ID) + 1) | (__atomic_load_n(&segment[1], __ATOMIC_RELAXED) & FREE_ID);
    } while (!__atomic_compare_exchange_n(head, &seen, now, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    count_free_words(-1 - (int64_t)*tree_segment((uint32_t)seen & FREE_ID));
    return (uint32_t)seen & FREE_ID;
}

/* All of them: others find none there meanwhile. */
static uint32_t take_all_of(uint32_t length) {
    uint64_t *head = &free_segments[length], seen = __atomic_load_n(head, __ATOMIC_ACQUIRE), now;
    do now = ((seen | FREE_ID) + 1);
    while (!__atomic_compare_exchange_n(head, &seen, now, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return (uint32_t)seen & FREE_ID;
}

/* The same; of a longer one the rest, which must be long enough to be one, stays free. */
static uint32_t take_free(uint32_t count) {
    if (!__atomic_load_n(&segments_were_freed, __ATOMIC_RELAXED) || !ledger_is_ours()) return TREE_NONE;
    uint32_t id = take_free_of(count);
    for (uint32_t length = count + 2; id == TREE_NONE && length <= LONG; length++) {
        id = take_free_of(length);
        if (id == TREE_NONE) continue;
        *(uint32_t *)series_at(&words, id + 1 + count) = *tree_segment(id) - count - 1;
        put_free(id + 1 + count);
    }
    return id;
}

/* While those that are free are being joined, a few more than there is memory for may be made. */
static bool no_more_segments(void) {
    return site_memory_full(SITE_SEGMENTS) && !__atomic_load_n(&segments_are_joined, __ATOMIC_RELAXED);
}

static uint32_t new_segment(uint32_t count) {
    uint32_t id = take_free(count);
    if (id == TREE_NONE && !no_more_segments()) return series_take_run(&words, count + 1);
    if (id == TREE_NONE || words_are_short()) fold_want();
    return id;
}

static uint32_t segment_of(const uint32_t *frames, uint32_t count) {
    struct run run = {frames, count};
    uint32_t hash = hash_frames(frames, count), id = index_find(&segment_index, hash, &run);
    if (likely(id != INDEX_NONE)) return id;
    id = new_segment(count);
    uint32_t *segment = series_at(&words, id);
    if (!segment) return TREE_NONE;
    segment[0] = count;
    for (uint32_t i = 0; i < count; i++)
        __atomic_store_n(&segment[1 + i], frames[i], __ATOMIC_RELAXED); /* take_free_of */
    uint32_t there = index_insert(&segment_index, hash, &run, id);
    if (there != id) put_free(id);
    return there;
}

static bool nodes_are_short(const struct ids *free) {
    return fold_is_short(ids_count(free), os_load(&nodes.next)) && site_memory_full(SITE_SOON);
}

static uint32_t new_node(void) {
    struct ids *free = ids_known(&free_nodes);
    uint32_t id = free && ledger_is_ours() ? ids_take(free, TREE_ROOT + 1) : IDS_NONE;
    if (id == IDS_NONE && !site_memory_full(SITE_STACKS)) return series_take(&nodes);
    if (id == IDS_NONE || nodes_are_short(free)) fold_want();
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

static struct ids *used_nodes, *used_segments, *hidden_nodes, *hidden_segments;

bool tree_make_ready(void) {
    return ids_made(&free_nodes) && ids_made(&used_nodes) && ids_made(&used_segments) && ids_made(&hidden_nodes) &&
           ids_made(&hidden_segments);
}

void tree_use(uint32_t node) {
    for (; node != TREE_ROOT && ids_mark(used_nodes, node); node = tree_at(node)->parent)
        ids_mark(used_segments, tree_at(node)->segment);
}

void tree_forget_uses(void) {
    ids_clear(used_nodes);
    ids_clear(used_segments);
}

typedef enum progress step(struct tree_walk *walk);

/* One after the other. */
static enum progress steps(step *const each[], uint32_t count, struct tree_walk *walk) {
    enum progress progress = each[walk->step](walk);
    if (progress != PROGRESS_DONE) return progress;
    *walk = (struct tree_walk){.step = walk->step + 1};
    return walk->step < count ? PROGRESS_MORE : PROGRESS_DONE;
}

static enum progress done_if(bool done) { return done ? PROGRESS_DONE : PROGRESS_MORE; }

static enum progress hide(struct index *index, const struct ids *used, struct ids *hidden, struct tree_walk *walk) {
    if (!index_hold(index)) return PROGRESS_LATER;
    bool done = index_prune(index, used, hidden, &walk->index);
    index_let_go(index);
    return done_if(done);
}

static enum progress hide_nodes(struct tree_walk *walk) { return hide(&node_index, used_nodes, hidden_nodes, walk); }

static enum progress hide_segments(struct tree_walk *walk) {
    return hide(&segment_index, used_segments, hidden_segments, walk);
}

enum progress tree_hide(struct tree_walk *walk) {
    static step *const each[] = {hide_nodes, hide_segments};
    return steps(each, sizeof each / sizeof *each, walk);
}

static void use_segment(uint32_t node) {
    if (!ids_has(used_nodes, node)) ids_mark(used_segments, tree_at(node)->segment);
}

/* A stack that was in the making when the others were hidden may have a segment that is hidden. */
static enum progress use_segments(struct tree_walk *walk) {
    if (!index_hold(&node_index)) return PROGRESS_LATER;
    bool done = index_each(&node_index, use_segment, &walk->index);
    index_let_go(&node_index);
    return done_if(done);
}

static enum progress free_unused_nodes(struct tree_walk *walk) {
    return done_if(ids_move(hidden_nodes, used_nodes, free_nodes, &walk->at));
}

enum { IDS_AT_A_TIME = 256 };

static enum progress each_hidden(struct ids *hidden, void (*each)(uint32_t id), struct tree_walk *walk) {
    for (int i = 0; i < IDS_AT_A_TIME; i++, walk->at++) {
        walk->at = ids_next(hidden, walk->at);
        if (walk->at == IDS_NONE) return PROGRESS_DONE;
        each(walk->at);
    }
    return PROGRESS_MORE;
}

/* Those that are free already are looked at again, so that neighbours can be joined: without that, what long ones were
 * cut into would never be a long one again. */
static enum progress take_free_segments(struct tree_walk *walk) {
    __atomic_store_n(&segments_are_joined, true, __ATOMIC_RELAXED);
    for (int i = 0; i < IDS_AT_A_TIME; i++) {
        while (!walk->at && walk->length < LONG) walk->at = take_all_of(++walk->length);
        if (!walk->at) return PROGRESS_DONE;
        const uint32_t *segment = tree_segment(walk->at);
        ids_mark(hidden_segments, walk->at);
        count_free_words(-1 - (int64_t)segment[0]);
        walk->at = __atomic_load_n(&segment[1], __ATOMIC_RELAXED) & FREE_ID;
    }
    return PROGRESS_MORE;
}

static bool is_unused(uint32_t id) { return ids_has(hidden_segments, id) && !ids_has(used_segments, id); }

static bool is_beside(uint32_t id, uint32_t next) {
    return series_place(&words, id).segment == series_place(&words, next).segment;
}

/* Together with those that follow it in memory. */
static void free_unused_segment(uint32_t id) {
    uint32_t *segment = series_at(&words, id), next;
    if (!is_unused(id)) return;
    ids_remove(hidden_segments, id);
    while (next = id + 1 + segment[0], is_unused(next) && is_beside(id, next)) {
        uint32_t length = segment[0] + 1 + *tree_segment(next);
        if (length > LONGEST) break;
        ids_remove(hidden_segments, next);
        segment[0] = length;
    }
    put_free(id);
}

static enum progress free_unused_segments(struct tree_walk *walk) {
    enum progress progress = each_hidden(hidden_segments, free_unused_segment, walk);
    __atomic_store_n(&segments_were_freed, true, __ATOMIC_RELAXED);
    if (progress == PROGRESS_DONE) __atomic_store_n(&segments_are_joined, false, __ATOMIC_RELAXED);
    return progress;
}

/* What has a twin by now stays hidden, and is made free by the next one who gives away after its last use. */
static void show_node(uint32_t id) {
    if (index_insert(&node_index, node_hash(id), tree_at(id), id) == id) ids_remove(hidden_nodes, id);
}

static void show_segment(uint32_t id) {
    const uint32_t *segment = tree_segment(id);
    struct run run = {segment + 1, segment[0]};
    if (index_insert(&segment_index, segment_hash(id), &run, id) == id) ids_remove(hidden_segments, id);
}

static enum progress show_nodes(struct tree_walk *walk) { return each_hidden(hidden_nodes, show_node, walk); }

static enum progress show_segments(struct tree_walk *walk) { return each_hidden(hidden_segments, show_segment, walk); }

enum progress tree_give_away(struct tree_walk *walk) {
    static step *const each[] = {use_segments,         free_unused_nodes, take_free_segments,
                                 free_unused_segments, show_nodes,        show_segments};
    return steps(each, sizeof each / sizeof *each, walk);
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
    free_nodes = used_nodes = used_segments = hidden_nodes = hidden_segments = NULL;
    memset(free_segments, 0, sizeof free_segments);
    free_words = 0;
    segments_were_freed = segments_are_joined = false;
}
