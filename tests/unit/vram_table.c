/* The table of device memory that memstow serves. Its blocks by address, its queue of freed blocks, and its sums are
 * compared with a plain list of the same blocks. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#include "preload/vram/vram_memory.h"
#include "preload/vram/vram_table.h"

enum { SLOTS = 512, STEPS = 40000, STATES = VRAM_SPARE + 1, DEVICES = 3 };

static struct vram_block *slots[SLOTS]; /* a block at slot i begins at address_of(i); some slots have none */
static uint32_t state = 1;

static uint32_t below(uint32_t n) {
    state = state * 1103515245u + 12345u;
    return (state >> 8) % n;
}

/* The addresses are four granules apart. Their order is not that of the slots. */
static uint64_t address_of(uint32_t slot) { return (1 + (uint64_t)(slot * 37u % SLOTS) * 4) * VRAM_GRANULE; }

static void come(uint32_t slot) {
    struct vram_block *block = slots[slot] = vram_table_new();
    cr_assert(block);
    vram_block_plan(block, (1 + below(4)) * VRAM_GRANULE - below(1000));
    block->at = address_of(slot);
    block->device = below(DEVICES);
    block->in_stream = below(2);
    block->owner = 1 + below(3);
    block->number = vram_table_number();
    vram_table_add(block);
}

static void take_a_step(uint32_t slot) {
    if (!slots[slot]) {
        come(slot);
    } else if (slots[slot]->state == VRAM_WRECK) {
        vram_table_drop(slots[slot]);
        slots[slot] = NULL;
    } else {
        enum vram_state from = slots[slot]->state;
        vram_table_set_state(slots[slot], from == VRAM_FREEING ? VRAM_WRECK : (enum vram_state)below(STATES));
    }
}

static void look_up(uint32_t slot) {
    struct vram_block *is = slots[slot] && slots[slot]->state < VRAM_WRECK ? slots[slot] : NULL;
    uint64_t at = address_of(slot), inside = at + below(4 * VRAM_GRANULE);
    cr_assert_eq(vram_table_starting(at), is);
    cr_assert_eq(vram_table_around(at), is);
    cr_assert_eq(vram_table_around(inside), is && inside < at + is->size ? is : NULL);
    if (inside > at) cr_assert_null(vram_table_starting(inside));
}

static bool is_same(const struct vram_sums *a, const struct vram_sums *b) {
    return a->live == b->live && a->stowed == b->stowed && a->asked == b->asked && a->stowed_asked == b->stowed_asked &&
           a->in_streams == b->in_streams && a->streams_taken == b->streams_taken && a->blocks == b->blocks &&
           a->wrecks == b->wrecks && a->spare == b->spare;
}

static void add(struct vram_sums *to, const struct vram_block *block) {
    bool is_there = block->state == VRAM_LIVE || block->state == VRAM_STOWED;
    to->live += block->state == VRAM_LIVE ? block->size : 0;
    to->stowed += block->state == VRAM_STOWED ? block->size : 0;
    to->stowed_asked += block->state == VRAM_STOWED ? block->asked : 0;
    to->asked += is_there ? block->asked : 0;
    to->in_streams += is_there && block->in_stream ? block->asked : 0;
    to->streams_taken += is_there && block->in_stream ? block->size : 0;
    to->blocks += is_there;
    to->spare += block->state == VRAM_SPARE ? block->size : 0;
    to->wrecks += block->state == VRAM_WRECK;
}

static void count_all(void) {
    struct vram_sums all = {0}, device = {0}, owner = {0}, is;
    uint32_t count = 0, queued = 0, freed = 0, spares = 0, on_shelf = 0;
    for (int i = 0; i < SLOTS; i++) {
        const struct vram_block *block = slots[i];
        if (!block) continue;
        add(&all, block);
        if (block->device == 1) add(&device, block);
        if (block->owner == 2) add(&owner, block);
        count++;
        queued += block->state == VRAM_FREEING || block->state == VRAM_WRECK;
        spares += block->state == VRAM_SPARE;
        freed += block->state == VRAM_FREEING;
    }
    uint32_t all_spares = spares;
    is = vram_table_sums(UINT32_MAX);
    cr_assert(is_same(&is, &all));
    is = vram_table_sums(1);
    cr_assert(is_same(&is, &device));
    is = vram_table_sums_of(2, UINT32_MAX);
    cr_assert(is_same(&is, &owner));
    cr_assert(vram_table_count() == count && vram_table_pending() == queued && vram_table_freed() == freed);
    for (struct vram_block *block = vram_table_first_freed(); block; block = block->freed_next) queued--;
    for (struct vram_block *block = vram_table_first(); block; block = block->next) count--;
    for (struct vram_block *block = vram_table_first_spare(); block; block = block->freed_next) spares--;
    for (uint64_t size = VRAM_GRANULE; size <= 4 * VRAM_GRANULE; size += VRAM_GRANULE)
        for (struct vram_block *block = vram_table_first_of_size(size); block; block = block->shelf_next) on_shelf++;
    cr_assert(!queued && !count && !spares);
    cr_assert(on_shelf == all_spares + vram_table_freed() && vram_table_spares() == (all_spares != 0));
}

Test(vram_table, blocks_are_found_and_counted_as_in_a_plain_list) {
    vram_table_lock();
    for (int i = 0; i < STEPS; i++) {
        take_a_step(below(SLOTS));
        look_up(below(SLOTS));
        if (i % 64 == 0) count_all();
    }
    vram_table_let_go();
}

Test(vram_table, freed_blocks_have_their_turn) {
    vram_table_lock();
    for (uint32_t i = 0; i < 3; i++) {
        come(i);
        vram_table_set_state(slots[i], VRAM_FREEING);
    }
    cr_assert_eq(vram_table_first_freed(), slots[0]);
    vram_table_requeue(slots[0]);
    cr_assert_eq(vram_table_first_freed(), slots[1]);
    vram_table_set_state(slots[1], VRAM_WRECK);
    cr_assert_eq(vram_table_first_freed(), slots[1], "a wreck keeps its turn");
    vram_table_drop(slots[1]);
    cr_assert_eq(vram_table_first_freed(), slots[2]);
    cr_assert_eq(slots[2]->freed_next, slots[0]);
    vram_table_let_go();
}

static struct { int runs, entered, found, taken; } handler;

static void use_from_handler(int number) {
    struct vram_found block;
    handler.runs++;
    handler.found += vram_memory_around(address_of(0), &block);
    struct vram_block *taken = vram_memory_take(address_of(0));
    handler.taken += taken != NULL;
    if (taken) taken->moving = false;
    bool entered = vram_table_enter();
    handler.entered += entered;
    if (entered) vram_table_let_go();
    (void)number;
}

/* The table's lock may be held by the very thread that a handler interrupts. A handler that waited for the table would
 * then wait for its own thread for ever. */
Test(vram_table, a_handler_does_without_the_table_that_its_thread_has, .timeout = 20) {
    signal(SIGUSR1, use_from_handler);
    come(0);
    vram_table_lock();
    cr_assert(vram_table_is_mine());
    raise(SIGUSR1);
    vram_table_let_go();
    cr_assert(handler.runs == 1 && !handler.found && !handler.taken && !handler.entered);
    cr_assert_not(vram_table_is_mine());
    raise(SIGUSR1);
    cr_assert(handler.runs == 2 && handler.found == 1 && handler.taken == 1 && handler.entered == 1);
}

/* The lock names its holder by the address of the thread's descriptor, which is on the thread's stack. The stacks of
 * the two threads here are 64 GiB apart, so the low 36 bits of the two addresses may be equal. Only higher bits tell
 * the threads apart then, and the lock must not ignore these bits. */
enum { STACK = 1 << 20 };
static bool has_it, may_let_go, taken_for_another;

static void *hold(void *unused) {
    vram_table_lock();
    __atomic_store_n(&has_it, true, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&may_let_go, __ATOMIC_ACQUIRE)) sched_yield();
    vram_table_let_go();
    return unused;
}

static void *enter_beside(void *unused) {
    taken_for_another = vram_table_is_mine();
    __atomic_store_n(&may_let_go, true, __ATOMIC_RELEASE);
    if (!vram_table_enter()) return unused;
    vram_table_let_go();
    return &may_let_go;
}

static char *map_stack(char *wanted) {
    int fixed = wanted ? MAP_FIXED_NOREPLACE : 0;
    char *stack = mmap(wanted, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
    return stack == MAP_FAILED ? NULL : stack;
}

static pthread_t thread_on(char *stack, void *(*run)(void *)) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, STACK);
    cr_assert_eq(pthread_create(&thread, &attributes, run, NULL), 0);
    pthread_attr_destroy(&attributes);
    return thread;
}

Test(vram_table, threads_whose_stacks_are_64_gib_apart_are_told_apart, .timeout = 20) {
    char *first, *second = NULL;
    for (int i = 0; i < 64 && !second; i++) { /* the kernel knows where a sanitizer allows stacks */
        cr_assert_not_null(first = map_stack(NULL));
        second = map_stack(first - ((uint64_t)64 << 30));
    }
    cr_assert_eq(first - second, (int64_t)64 << 30);
    void *entered;
    pthread_t holds = thread_on(first, hold);
    while (!__atomic_load_n(&has_it, __ATOMIC_ACQUIRE)) sched_yield();
    pthread_t enters = thread_on(second, enter_beside);
    pthread_join(enters, &entered);
    pthread_join(holds, NULL);
    cr_assert_not(taken_for_another);
    cr_assert_not_null(entered, "it takes itself for a signal handler of the holder's");
}

enum { THREADS = 4, TURNS = 50000 };
static uint64_t turns; /* changed under the lock only */

static void *take_turns(void *unused) {
    for (int i = 0; i < TURNS; i++) {
        if (i % 2)
            vram_table_lock();
        else if (!vram_table_enter())
            return &turns; /* taken for another thread's */
        turns++;
        vram_table_let_go();
    }
    return unused;
}

Test(vram_table, threads_take_turns, .timeout = 120) {
    pthread_t threads[THREADS];
    void *wrong;
    for (int i = 0; i < THREADS; i++) cr_assert_eq(pthread_create(&threads[i], NULL, take_turns, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &wrong);
        cr_assert_null(wrong);
    }
    cr_assert_eq(turns, (uint64_t)THREADS * TURNS);
}
