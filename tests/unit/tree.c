// Call stacks and their ids. A stack is read back as it was inserted. Equal stacks get the same id, also from many
// threads at once while the tables grow. The memory for the tables is limited.
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

#include "preload/count/account.h"
#include "preload/ledger/ledger.h"
#include "preload/count/site.h"
#include "preload/stacks/tree.h"

enum { STACKS = 20000, DEPTH = 40, FRAMES = 500, THREADS = 4 };

static void begin(uint64_t memory) {
    struct ledger_identity who = {.name = "unit", .exe = "unit", .command = "unit"};
    cr_assert(ledger_begin(&who));
    account_begin();
    site_begin(SNAP_STACKS_FULL, memory, "unit");
}

/* Writes the frames of stack number `i`, and returns their number. The stack shares its outer frames with its
 * neighbours. */
static uint32_t stack(uint32_t i, uint32_t *frames) {
    uint32_t depth = 1 + i * 7 % DEPTH;
    for (uint32_t k = 0; k < depth; k++) frames[k] = (i / (1u << (k < 16 ? 16 - k : 0)) * 31 + k * 17) % FRAMES;
    frames[depth - 1] = i % FRAMES;
    return depth;
}

/* Inserts a stack as memo.c does. */
static uint32_t insert(const uint32_t *frames, uint32_t depth) {
    uint32_t place = TREE_ROOT;
    for (uint32_t k = 0; k < depth && place != TREE_NONE; k++) place = tree_step(place, frames + k, depth - k);
    return place == TREE_NONE ? TREE_NONE : tree_stack(place);
}

static void expect(uint32_t stack, const uint32_t *frames, uint32_t depth) {
    for (uint32_t place = stack; place != TREE_ROOT; place = tree_outer(place)) {
        if (place == stack && tree_frame(place) == SNAP_RUN_FRAME) continue;
        cr_assert_gt(depth, 0);
        cr_assert_eq(tree_frame(place), frames[--depth]);
    }
    cr_assert_eq(depth, 0);
}

Test(tree, gives_back_what_was_put_in) {
    static uint32_t places[STACKS];
    uint32_t frames[DEPTH];
    begin(UINT64_MAX);
    for (uint32_t i = 0; i < STACKS; i++) places[i] = insert(frames, stack(i, frames));
    uint64_t bytes = tree_bytes();
    for (uint32_t i = 0; i < STACKS; i++) {
        uint32_t depth = stack(i, frames);
        expect(places[i], frames, depth);
        cr_assert_eq(insert(frames, depth), places[i], "stack %u has a place", i);
    }
    cr_assert_eq(tree_bytes(), bytes, "known stacks take nothing");
}

static uint32_t found[THREADS][STACKS];
static pthread_barrier_t start;

static void *insert_all(void *thread) {
    uint32_t frames[DEPTH], *mine = found[(size_t)thread];
    pthread_barrier_wait(&start);
    for (uint32_t i = 0; i < STACKS; i++) mine[i] = insert(frames, stack(i, frames));
    return NULL;
}

Test(tree, threads_agree) {
    pthread_t threads[THREADS];
    uint32_t frames[DEPTH];
    begin(UINT64_MAX);
    pthread_barrier_init(&start, NULL, THREADS);
    for (size_t t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, insert_all, (void *)t);
    for (size_t t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    uint32_t twins = 0;
    for (uint32_t i = 0; i < STACKS; i++)
        for (size_t t = 0; t < THREADS; t++) {
            expect(found[t][i], frames, stack(i, frames));
            twins += found[t][i] != found[0][i];
        }
    cr_assert_leq(twins, 16, "a stack may have two places only where an index grew at that instant");
}

static void hide(void) {
    struct tree_walk walk = {0};
    for (enum progress progress = PROGRESS_MORE; progress != PROGRESS_DONE;) progress = tree_hide(&walk);
}

static void give_away(void) {
    struct tree_walk walk = {0};
    for (enum progress progress = PROGRESS_MORE; progress != PROGRESS_DONE;) progress = tree_give_away(&walk);
}

/* One of three stacks stays. The others are no longer found, and new stacks get their memory. */
Test(tree, gives_hidden_stacks_to_others) {
    static uint32_t places[STACKS];
    uint32_t frames[DEPTH + 1];
    begin(UINT64_MAX);
    cr_assert(tree_make_ready());
    for (uint32_t i = 0; i < STACKS; i++) places[i] = insert(frames, stack(i, frames));
    for (uint32_t i = 0; i < STACKS; i += 3) tree_use(places[i]);
    uint64_t bytes = tree_bytes();
    hide();
    for (uint32_t i = 0; i < STACKS; i++) expect(places[i], frames, stack(i, frames));
    for (uint32_t i = 0; i < STACKS; i += 3) cr_assert_eq(insert(frames, stack(i, frames)), places[i]);
    give_away();
    uint32_t made = 0;
    for (; made < STACKS && tree_bytes() == bytes; made++) {
        uint32_t depth = stack(made, frames);
        frames[depth++] = FRAMES + made % 7;
        expect(insert(frames, depth), frames, depth);
    }
    cr_assert_gt(made, STACKS / 10, "new stacks take the place of old ones");
    for (uint32_t i = 0; i < STACKS; i += 3) {
        expect(places[i], frames, stack(i, frames));
        cr_assert_eq(insert(frames, stack(i, frames)), places[i]);
    }
}

static uint32_t any_frame(unsigned *seed) { return (uint32_t)rand_r(seed) % FRAMES; }

/* Short stacks replace long ones, and long stacks replace short ones. After many rounds, still as many stacks fit as in
 * the first rounds. */
Test(tree, fits_as_many_after_many_lives) {
    enum { MEMORY = 2 << 20, LIVES = 60, STAY = 8 };
    static uint32_t live[STACKS];
    uint32_t frames[SNAP_RUN_MOST], count = 0, at_first = 0;
    unsigned seed = 1;
    begin(MEMORY);
    cr_assert(tree_make_ready());
    for (int life = 0; life < LIVES; life++) {
        uint32_t place = TREE_ROOT, most = life % 2 ? 4 : SNAP_RUN_MOST, before = count;
        while (count < STACKS && place != TREE_NONE) {
            uint32_t depth = 1 + (uint32_t)rand_r(&seed) % most;
            for (uint32_t k = 0; k < depth; k++) frames[k] = any_frame(&seed);
            place = insert(frames, depth);
            if (place != TREE_NONE) live[count++] = place;
        }
        if (life == 2) at_first = count - before;
        if (life > 2 && life % 2 == 0)
            cr_assert_gt(10 * (count - before), 9 * at_first, "%u of %u in life %d", count - before, at_first, life);
        tree_forget_uses();
        for (uint32_t i = 0; i < count;)
            if (rand_r(&seed) % STAY == 0)
                tree_use(live[i++]);
            else
                live[i] = live[--count];
        hide();
        give_away();
    }
}

/* Words that short stacks gave away are joined, so they can hold a run of frames of any length. */
Test(tree, joins_what_is_free) {
    enum { MEMORY = 2 << 20, SHORT = 4, LEAST = 1000 };
    uint32_t frames[SNAP_RUN_MOST], made = 0;
    begin(MEMORY);
    cr_assert(tree_make_ready());
    for (uint32_t i = 0; i < MEMORY; i++) {
        for (uint32_t k = 0; k < SHORT; k++) frames[k] = i + k;
        insert(frames, SHORT);
    }
    hide();
    give_away();
    for (uint32_t i = 0; i < MEMORY; i++) {
        for (uint32_t k = 0; k < SNAP_RUN_MOST; k++) frames[k] = MEMORY + i + k;
        uint32_t stack = insert(frames, SNAP_RUN_MOST);
        made += stack != TREE_NONE && tree_first(stack) + SNAP_RUN_MOST - 1 == stack;
        if (made == LEAST) break;
    }
    cr_assert_eq(made, LEAST, "%u of the greatest length, in one piece", made);
}

static uint32_t kept[STACKS];

static void *keep_and_make(void *thread) {
    uint32_t frames[DEPTH];
    pthread_barrier_wait(&start);
    for (uint32_t i = (uint32_t)(uintptr_t)thread; i < STACKS; i += THREADS - 1)
        kept[i] = insert(frames, stack(i, frames));
    return NULL;
}

/* While threads insert stacks, stacks are hidden. Each inserted stack must still be read back as it was inserted,
 * even if it has been hidden. */
Test(tree, hides_while_threads_insert) {
    pthread_t threads[THREADS];
    uint32_t frames[DEPTH];
    begin(UINT64_MAX);
    cr_assert(tree_make_ready());
    pthread_barrier_init(&start, NULL, THREADS);
    for (uintptr_t t = 0; t < THREADS - 1; t++) pthread_create(&threads[t], NULL, keep_and_make, (void *)t);
    pthread_barrier_wait(&start);
    for (int i = 0; i < 50; i++) hide();
    for (int t = 0; t < THREADS - 1; t++) pthread_join(threads[t], NULL);
    for (uint32_t i = 0; i < STACKS; i++) expect(kept[i], frames, stack(i, frames));
}

Test(tree, ends_at_its_memory) {
    enum { MEMORY = 1 << 20 };
    uint32_t frames[DEPTH], refused = 0;
    begin(MEMORY);
    for (uint32_t i = 0; i < 100 * STACKS; i++) {
        uint32_t depth = stack(i, frames);
        frames[0] = i;
        refused += insert(frames, depth) == TREE_NONE;
    }
    cr_assert_gt(refused, STACKS);
    cr_assert_leq(tree_bytes(), MEMORY + MEMORY / 4);
}
