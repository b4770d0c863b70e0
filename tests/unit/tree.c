// Call stacks ↔ nodes: what was put in comes out again, the same stack is the same node, from many threads at once,
// while the tables behind it grow; and there is an end to the memory that it takes.
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

#include "account.h"
#include "ledger.h"
#include "site.h"
#include "tree.h"

enum { STACKS = 20000, DEPTH = 40, FRAMES = 500, THREADS = 4 };

static void begin(uint64_t memory) {
    struct ledger_identity who = {.name = "unit", .exe = "unit", .command = "unit"};
    cr_assert(ledger_begin(&who));
    account_begin();
    site_begin(SNAP_STACKS_FULL, memory, "unit");
}

/* Stack i: a path that shares its outer part with its neighbours. Returns its depth. */
static uint32_t stack(uint32_t i, uint32_t *frames) {
    uint32_t depth = 1 + i * 7 % DEPTH;
    for (uint32_t k = 0; k < depth; k++) frames[k] = (i / (1u << (k < 16 ? 16 - k : 0)) * 31 + k * 17) % FRAMES;
    frames[depth - 1] = i % FRAMES;
    return depth;
}

/* As stack.c does it: cut where the frames say so, and at the end. */
static uint32_t insert(const uint32_t *frames, uint32_t depth) {
    uint32_t node = TREE_ROOT, since = 0;
    for (uint32_t k = 0; k < depth && node != TREE_NONE; k++)
        if (tree_cuts_after(frames[k], k + 1 - since) || k + 1 == depth) {
            node = tree_node(node, frames + since, k + 1 - since);
            since = k + 1;
        }
    return node;
}

static void expect(uint32_t node, const uint32_t *frames, uint32_t depth) {
    while (node != TREE_ROOT) {
        const struct snap_node *at = tree_at(node);
        const uint32_t *segment = tree_segment(at->segment);
        cr_assert(segment[0] > 0 && segment[0] <= depth && segment[0] <= TREE_SEGMENT_MAX);
        cr_assert_lt(at->parent, node, "a parent is older");
        for (uint32_t i = segment[0]; i > 0; i--) cr_assert_eq(segment[i], frames[--depth]);
        node = at->parent;
    }
    cr_assert_eq(depth, 0);
}

Test(tree, gives_back_what_was_put_in) {
    static uint32_t nodes[STACKS];
    uint32_t frames[DEPTH];
    begin(UINT64_MAX);
    for (uint32_t i = 0; i < STACKS; i++) nodes[i] = insert(frames, stack(i, frames));
    uint64_t bytes = tree_bytes();
    for (uint32_t i = 0; i < STACKS; i++) {
        uint32_t depth = stack(i, frames);
        expect(nodes[i], frames, depth);
        cr_assert_eq(insert(frames, depth), nodes[i], "stack %u has a node", i);
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
    cr_assert_leq(twins, 16, "a stack may have two nodes only where an index grew at that instant");
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
