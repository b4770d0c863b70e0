/* tree.c — see tree.h. */
#include "preload/stacks/tree.h"

#include <string.h>

#include "preload/base/ids.h"
#include "preload/base/index.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/series.h"
#include "preload/shared/os.h"
#include "preload/ledger/budget.h"
#include "preload/base/forked.h"

static struct series words = {.type = SNAP_RUN,
                              .record_size = sizeof(uint32_t),
                              .first_bits = 12,
                              .limit = (1 << INDEX_ID_BITS) - 1}; /* `edges` has a run by the id of its first word */

static uint32_t *tree_word_at(uint32_t id) { return series_at(&words, id); }

/* The word of a frame. Another thread may set SNAP_RUN_END in it at any time. */
static inline uint32_t frame_word(const uint32_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }

/* --- finding runs --- */

/* A run is found by its first frame and the place outside of that frame. */
struct edge {
    uint32_t outer, frame;
};

static struct edge edge_of(uint32_t run) {
    const uint32_t *word = tree_word_at(run);
    return (struct edge){word[SNAP_RUN_OUTER], frame_word(&word[SNAP_RUN_HEAD]) & SNAP_RUN_FRAME};
}

static bool run_equal(uint32_t run, const void *key) {
    const struct edge *wanted = key, edge = edge_of(run);
    return edge.outer == wanted->outer && edge.frame == wanted->frame;
}

static uint32_t hash_edge(const struct edge *edge) {
    uint64_t h = ((uint64_t)edge->outer << 32 | edge->frame) * 0x9E3779B97F4A7C15u;
    h ^= h >> 32;
    h *= 0xD6E8FEB86659FD93u;
    return (uint32_t)(h >> 32);
}

static uint32_t run_hash(uint32_t run) {
    struct edge edge = edge_of(run);
    return hash_edge(&edge);
}

static const void *run_record(uint32_t run) { return tree_word_at(run); }

static struct index edges = {.equal = run_equal, .hash = run_hash, .record = run_record, .may_grow = budget_has};

/* --- words that are free --- */

static bool words_were_freed, words_are_joined;
static int64_t free_words;

static void count_free_words(int64_t more) { __atomic_fetch_add(&free_words, more, __ATOMIC_RELAXED); }

static bool words_are_short(void) {
    int64_t free = __atomic_load_n(&free_words, __ATOMIC_RELAXED);
    enum { A_STACK = 8 }; /* words of an average stack */
    bool few = budget_is_short(free > 0 ? (uint64_t)free / A_STACK : 0, os_load(&words.next) / A_STACK);
    return few && budget_is_full(BUDGET_SOON);
}

/* Free pieces of `words` are in lists, one list for each length. The last list, LONG, has all longer pieces. The first
 * word of a piece is its length. The second word is the id of the next piece in the list. The upper bits of a
 * list's head are a counter, against ABA: between a read and a compare-and-swap, a piece may be taken and put back. */
#define IS_FREE ((uint32_t)1 << 31)
enum { RUN_MAX = SNAP_RUN_HEAD + SNAP_RUN_MOST, LONG = RUN_MAX + 2, LONGEST = 256 };
static uint64_t free_runs[LONG + 1];
#define FREE_ID ((1u << INDEX_ID_BITS) - 1)

static uint32_t free_length(const uint32_t *word) { return word[0] & ~IS_FREE; }

static void put_free(uint32_t id, uint32_t length) {
    uint32_t *word = tree_word_at(id);
    uint64_t *head = &free_runs[length < LONG ? length : LONG], seen = os_load(head), now;
    count_free_words(length);
    __atomic_store_n(&word[0], IS_FREE | length, __ATOMIC_RELAXED);
    do {
        __atomic_store_n(&word[1], (uint32_t)seen & FREE_ID, __ATOMIC_RELAXED);
        now = ((seen | FREE_ID) + 1) | id;
    } while (!__atomic_compare_exchange_n(head, &seen, now, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

/* Takes a piece out of a list, and returns its id; TREE_NONE: the list is empty. */
static uint32_t take_free_of(uint32_t list) {
    uint64_t *head = &free_runs[list], seen = __atomic_load_n(head, __ATOMIC_ACQUIRE), now;
    do {
        if (!(seen & FREE_ID)) return TREE_NONE;
        const uint32_t *word = tree_word_at((uint32_t)seen & FREE_ID);
        now = ((seen | FREE_ID) + 1) | (__atomic_load_n(&word[1], __ATOMIC_RELAXED) & FREE_ID);
    } while (!__atomic_compare_exchange_n(head, &seen, now, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    uint32_t id = (uint32_t)seen & FREE_ID;
    count_free_words(-(int64_t)free_length(tree_word_at(id)));
    return id;
}

/* Takes all pieces out of a list, and returns the id of the first; 0: there was none. Until the pieces are put back,
 * other threads find the list empty. */
static uint32_t take_all_of(uint32_t list) {
    uint64_t *head = &free_runs[list], seen = __atomic_load_n(head, __ATOMIC_ACQUIRE), now;
    do now = ((seen | FREE_ID) + 1);
    while (!__atomic_compare_exchange_n(head, &seen, now, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return (uint32_t)seen & FREE_ID;
}

/* Takes `length` free words. If no piece has this length, cuts a longer piece. The rest of that piece stays free, so it
 * must be long enough for the head of a free piece. */
static uint32_t take_free(uint32_t length) {
    if (!__atomic_load_n(&words_were_freed, __ATOMIC_RELAXED) || !ledger_is_ours()) return TREE_NONE;
    uint32_t id = take_free_of(length);
    for (uint32_t list = length + 2; id == TREE_NONE && list <= LONG; list++) {
        id = take_free_of(list);
        if (id != TREE_NONE) put_free(id + length, free_length(tree_word_at(id)) - length);
    }
    return id;
}

/* --- making runs --- */

/* Whether the budget `of` has memory left. While free words are being joined, stacks may take some of the memory that
 * is reserved for runs without a frame (BUDGET_ENDS). */
static bool may_take(enum budget of) {
    return !budget_is_full(__atomic_load_n(&words_are_joined, __ATOMIC_RELAXED) ? BUDGET_ENDS : of);
}

static uint32_t new_run(uint32_t length, enum budget of) {
    uint32_t id = take_free(length);
    if (id == TREE_NONE && may_take(of)) return series_take_run(&words, length);
    if (id == TREE_NONE || words_are_short()) budget_want();
    return id;
}

/* Adds a run of `count` frames. If another thread has just added a run with the same start, returns that run.
 * INDEX_NONE: there is no memory. */
static uint32_t add_run(const struct edge *edge, uint32_t hash, const uint32_t *frames, uint32_t count,
                        enum budget of) {
    uint32_t id = new_run(SNAP_RUN_HEAD + count, of), *word = tree_word_at(id);
    if (!word) return index_find(&edges, hash, edge);
    __atomic_store_n(&word[SNAP_RUN_OUTER], edge->outer, __ATOMIC_RELAXED);
    /* The store is atomic, because take_free_of in another thread may still read this word. */
    __atomic_store_n(&word[SNAP_RUN_SITE], 0, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < count; i++) word[SNAP_RUN_HEAD + i] = frames[i];
    word[SNAP_RUN_HEAD] |= SNAP_RUN_FIRST;
    word[SNAP_RUN_HEAD + count - 1] |= SNAP_RUN_LAST;
    uint32_t there = index_insert(&edges, hash, edge, id);
    if (there != id) put_free(id, SNAP_RUN_HEAD + count);
    return there;
}

/* Adds one run with as many of the frames as memory allows, at most SNAP_RUN_MOST. Returns its id; INDEX_NONE: there is
 * no memory. */
static uint32_t add_frames(const struct edge *edge, uint32_t hash, const uint32_t *frames, uint32_t count) {
    enum { FEW = 8 };
    uint32_t most = count < SNAP_RUN_MOST ? count : SNAP_RUN_MOST, run;
    do run = add_run(edge, hash, frames, most, BUDGET_STACKS);
    while (unlikely(run == INDEX_NONE) && most > FEW && (most /= 2));
    return run;
}

static uint32_t first_place(uint32_t run) { return run == INDEX_NONE ? TREE_NONE : run + SNAP_RUN_HEAD; }

uint32_t tree_step(uint32_t at, const uint32_t *frames, uint32_t count) {
    const uint32_t *word = tree_word_at(at);
    if (!(frame_word(word) & SNAP_RUN_LAST) && (frame_word(word + 1) & SNAP_RUN_FRAME) == frames[0]) return at + 1;
    struct edge edge = {at, frames[0]};
    uint32_t hash = hash_edge(&edge), run = index_find(&edges, hash, &edge);
    if (run == INDEX_NONE) run = add_frames(&edge, hash, frames, count);
    return first_place(run);
}

uint32_t tree_stack_known(uint32_t place) {
    const struct edge edge = {place, SNAP_RUN_FRAME};
    uint32_t word = frame_word(tree_word_at(place));
    if (!(word & (SNAP_RUN_LAST | SNAP_RUN_END))) return TREE_NONE;
    if (word & SNAP_RUN_LAST) return place;
    return first_place(index_find(&edges, hash_edge(&edge), &edge));
}

/* Only the innermost place of a run can have a site. If `place` is not the innermost place of its run, this function
 * makes a second place for the same stack: a run without a frame. Some memory is reserved for such runs (BUDGET_ENDS).
 * When memory is short, the events of a new stack are counted at an outer place, and that place may need such a run to
 * get a site. */
uint32_t tree_stack(uint32_t place) {
    const struct edge edge = {place, SNAP_RUN_FRAME};
    uint32_t stack = tree_stack_known(place);
    if (likely(stack != TREE_NONE)) return stack;
    stack = first_place(add_run(&edge, hash_edge(&edge), &edge.frame, 1, BUDGET_ENDS));
    if (stack != TREE_NONE) __atomic_fetch_or(tree_word_at(place), SNAP_RUN_END, __ATOMIC_RELAXED);
    return stack;
}

uint32_t tree_frame(uint32_t place) { return frame_word(tree_word_at(place)) & SNAP_RUN_FRAME; }

/* The id of the run that contains a place other than the root. */
static uint32_t run_of(uint32_t place) {
    for (const uint32_t *word = tree_word_at(place); !(frame_word(word) & SNAP_RUN_FIRST); word--) place--;
    return place - SNAP_RUN_HEAD;
}

uint32_t tree_first(uint32_t place) { return first_place(run_of(place)); }

uint32_t tree_outside(uint32_t place) { return tree_word_at(run_of(place))[SNAP_RUN_OUTER]; }

uint32_t tree_outer(uint32_t place) {
    const uint32_t *word = tree_word_at(place);
    return frame_word(word) & SNAP_RUN_FIRST ? tree_word_at(place - SNAP_RUN_HEAD)[SNAP_RUN_OUTER] : place - 1;
}

/* The root's site is the word after the root. */
uint32_t *tree_site(uint32_t stack) {
    return tree_word_at(stack == TREE_ROOT ? TREE_ROOT + 1 : run_of(stack) + SNAP_RUN_SITE);
}

/* --- giving words back --- */

static struct ids *used, *hidden;

bool tree_make_ready(void) { return ids_made(&used) && ids_made(&hidden); }

void tree_use(uint32_t stack) {
    while (stack != TREE_ROOT) {
        uint32_t run = run_of(stack);
        if (!ids_mark(used, run)) return;
        stack = tree_word_at(run)[SNAP_RUN_OUTER];
    }
}

void tree_forget_uses(void) { ids_clear(used); }

static enum progress done_if(bool done) { return done ? PROGRESS_DONE : PROGRESS_MORE; }

enum progress tree_hide(struct tree_walk *walk) {
    if (!index_hold(&edges)) return PROGRESS_LATER;
    bool done = index_prune(&edges, used, hidden, &walk->index);
    index_let_go(&edges);
    return done_if(done);
}

enum { IDS_AT_A_TIME = 256 };

static enum progress each_hidden(void (*each)(uint32_t id), struct tree_walk *walk) {
    for (int i = 0; i < IDS_AT_A_TIME; i++, walk->at++) {
        walk->at = ids_next(hidden, walk->at);
        if (walk->at == IDS_NONE) return PROGRESS_DONE;
        each(walk->at);
    }
    return PROGRESS_MORE;
}

/* Takes all free pieces out of their lists and marks them as hidden, so that neighbours can be joined. Otherwise long
 * pieces that were cut would never become long again. */
static enum progress take_all_free(struct tree_walk *walk) {
    __atomic_store_n(&words_are_joined, true, __ATOMIC_RELAXED);
    for (int i = 0; i < IDS_AT_A_TIME; i++) {
        while (!walk->at && walk->length < LONG) walk->at = take_all_of(++walk->length);
        if (!walk->at) return PROGRESS_DONE;
        const uint32_t *word = tree_word_at(walk->at);
        ids_mark(hidden, walk->at);
        count_free_words(-(int64_t)free_length(word));
        walk->at = __atomic_load_n(&word[1], __ATOMIC_RELAXED) & FREE_ID;
    }
    return PROGRESS_MORE;
}

static bool is_unused(uint32_t id) { return ids_has(hidden, id) && !ids_has(used, id); }

static bool is_beside(uint32_t id, uint32_t next) {
    return series_slot(&words, id).segment == series_slot(&words, next).segment;
}

/* The length of a run or of a free piece. */
static uint32_t length_of(uint32_t id) {
    const uint32_t *word = tree_word_at(id);
    uint32_t length = SNAP_RUN_HEAD;
    if (word[0] & IS_FREE) return free_length(word);
    while (!(frame_word(&word[length++]) & SNAP_RUN_LAST))
        ;
    return length;
}

/* Frees a run together with unused neighbours that follow it in memory. */
static void free_unused_run(uint32_t id) {
    if (!is_unused(id)) return;
    uint32_t length = length_of(id);
    ids_remove(hidden, id);
    for (uint32_t next; next = id + length, is_unused(next) && is_beside(id, next);) {
        uint32_t more = length_of(next);
        if (length + more > LONGEST) break;
        ids_remove(hidden, next);
        length += more;
    }
    put_free(id, length);
}

static enum progress free_unused_runs(struct tree_walk *walk) {
    enum progress progress = each_hidden(free_unused_run, walk);
    __atomic_store_n(&words_were_freed, true, __ATOMIC_RELAXED);
    if (progress == PROGRESS_DONE) __atomic_store_n(&words_are_joined, false, __ATOMIC_RELAXED);
    return progress;
}

/* Lets look-ups find the run again. If another run with the same start was added meanwhile, this run stays hidden until
 * it is not in use any more and a later fold frees it. */
static void show_run(uint32_t id) {
    struct edge edge = edge_of(id);
    if (index_insert(&edges, hash_edge(&edge), &edge, id) == id) ids_remove(hidden, id);
}

static enum progress show_runs(struct tree_walk *walk) { return each_hidden(show_run, walk); }

enum progress tree_give_away(struct tree_walk *walk) {
    static enum progress (*const each[])(struct tree_walk *) = {take_all_free, free_unused_runs, show_runs};
    enum progress progress = each[walk->step](walk);
    if (progress != PROGRESS_DONE) return progress;
    *walk = (struct tree_walk){.step = walk->step + 1};
    return walk->step < sizeof each / sizeof *each ? PROGRESS_MORE : PROGRESS_DONE;
}

uint64_t tree_ids(void) { return os_load(&words.next) * BUDGET_IDS / words.limit; }

uint64_t tree_bytes(void) { return os_load(&words.next) * sizeof(uint32_t) + index_bytes(&edges); }

bool tree_begin(void) {
    if (series_take_run(&words, 2) != TREE_ROOT || !index_begin(&edges)) return false;
    *tree_word_at(TREE_ROOT) = SNAP_RUN_FIRST | SNAP_RUN_LAST | SNAP_RUN_FRAME;
    return true;
}

static void tree_abandon(void) {
    series_reset(&words);
    index_reset(&edges);
    used = hidden = NULL;
    memset(free_runs, 0, sizeof free_runs);
    free_words = 0;
    words_were_freed = words_are_joined = false;
}
FORKED(tree_abandon);
