// The locks of the store, and the waits of other threads:
// - No lock of the store is held while the memory of a value is freed, because that takes long.
// - If another thread holds a lock for a long time, for example while it writes to a disk, a call waits and does not
//   fail.
// - In the middle of a move, a reader gets the value at once.
// - A move gives memory back to the kernel in small pieces, a call for each piece. The calls must be short, because
//   while one runs, no other thread can map memory.
// build: -Wl,--wrap=stow_file_close,--wrap=os_call6
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/owners/owned.h"
#include "preload/state/state_loop.h"
#include "preload/state/state_owner.h"
#include "state_begin.h"

static int64_t loop;
static struct state_loop *known;
static int closed;

void __real_stow_file_close(struct stow_file *self);
void __wrap_stow_file_close(struct stow_file *self);

void __wrap_stow_file_close(struct stow_file *self) {
    if (stow_file_is_still(self)) {
        closed++;
        cr_expect(!lock_is_held(&state_registry), "the registry is held");
        cr_expect(!lock_is_held(&known->changes), "the loop is held");
    }
    __real_stow_file_close(self);
}

/* --- a move that is stopped half way --- */

enum { LARGE = 9 << 20, PIECE = 2 << 20 };

static bool is_moving;
static __thread bool is_reader;
static int reads;
static uint64_t emptied, longest; /* bytes that were given back by madvise: in all, and the most at once */

long __real_os_call6(long number, long a, long b, long c, long d, long e, long f);
long __wrap_os_call6(long number, long a, long b, long c, long d, long e, long f);

static void *read_value(void *context) {
    struct memstow_state_value value;
    is_reader = true;
    int error = state_get(loop, "x", &value);
    cr_expect_eq(error, 0, "%d in the middle of a move", error);
    if (!error) os_unmap(value.view, value.view_length);
    return context;
}

/* The move waits until another thread has read the value. */
static void read_in_the_middle(void) {
    pthread_t reader;
    cr_assert_eq(pthread_create(&reader, NULL, read_value, NULL), 0);
    pthread_join(reader, NULL);
    reads++;
}

long __wrap_os_call6(long number, long a, long b, long c, long d, long e, long f) {
    bool copies = number == SYS_pwrite64 || number == SYS_pwritev || number == SYS_io_submit;
    bool empties = number == SYS_madvise && c == MADV_DONTNEED;
    if (is_moving && !is_reader && empties) {
        emptied += (uint64_t)b;
        if ((uint64_t)b > longest) longest = (uint64_t)b;
    }
    if (is_moving && !is_reader && (copies || empties)) read_in_the_middle();
    return __real_os_call6(number, a, b, c, d, e, f);
}

static uint32_t put_length(const char *id, uint64_t length) {
    struct state_header header = {.type = "t", .length = length};
    const struct state_source source = {&header, NULL};
    int64_t owner = state_put(loop, id, &source, (struct caller){0});
    cr_expect_gt(owner, 0, "%ld", owner);
    return owner > 0 ? (uint32_t)owner : 0;
}

static uint32_t put(const char *id) { return put_length(id, 4096); }

static void begin(void) {
    loop = state_begin_loop(0);
    known = state_loop_known(loop);
}

TestSuite(state_locks, .init = begin);

Test(state_locks, a_move) {
    uint32_t owner = put("x");
    int64_t moved = state_owner_store.move(owner, true, (struct move_end){0});
    if (moved == -ENOTSUP) cr_skip_test("no disk here");
    cr_assert_eq(moved, 4096, "%ld", moved);
    cr_expect_eq(closed, 1);
    cr_expect_eq(state_owner_store.move(owner, false, (struct move_end){0}), 4096);
    cr_expect_eq(closed, 2);
}

static void move_and_read(uint32_t owner, bool out) {
    reads = 0, emptied = longest = 0, is_moving = true;
    int64_t moved = state_owner_store.move(owner, out, (struct move_end){0});
    is_moving = false;
    if (moved == -ENOTSUP) cr_skip_test("no disk here");
    cr_expect_eq(moved, LARGE, "%ld", moved);
    cr_expect_gt(reads, 1);
    cr_expect_eq(emptied, LARGE);
    cr_expect_leq(longest, PIECE, "%lu bytes at once", longest);
}

Test(state_locks, readers_in_the_middle_of_a_move) {
    uint32_t owner = put_length("x", LARGE);
    move_and_read(owner, true);
    move_and_read(owner, false);
}

Test(state_locks, a_second_put) {
    put("x");
    put("x");
    cr_expect_eq(closed, 1);
}

Test(state_locks, an_iteration_that_replaces_another) {
    put("x");
    cr_assert_eq(state_commit(loop), 1);
    cr_assert_eq(state_begin(loop), 2);
    put("x");
    cr_assert_eq(state_commit(loop), 2);
    cr_expect_eq(closed, 1);
}

Test(state_locks, an_abandoned_iteration) {
    put("x");
    cr_assert_eq(state_abandon_iteration(loop), 0);
    cr_expect_eq(closed, 1);
}

Test(state_locks, a_released_value) {
    put("x");
    cr_assert_eq(state_release(loop, "x"), 0);
    cr_expect_eq(closed, 1);
}

Test(state_locks, a_closed_loop) {
    put("x");
    cr_assert_eq(state_close(loop, false), 0);
    cr_expect_eq(closed, 1);
}

/* --- a lock that is held for long --- */

static int64_t result;

static void *do_begin(void *context) { return result = state_begin(loop), context; }

static void *do_put(void *context) { return result = put("y"), context; }

static void *do_abandon(void *context) { return result = state_abandon_iteration(loop), context; }

static void add_bytes(uint32_t owner, uint64_t bytes, bool in_file, void *context) {
    (void)owner, (void)in_file, (void)context;
    result += (int64_t)bytes;
}

static void *do_visit(void *context) { return state_owner_store.visit(add_bytes, NULL), context; }

/* Runs `call` on another thread, and holds the lock until that thread has waited for the lock in vain. */
static int64_t call_while_held(struct lock *lock, void *call(void *)) {
    pthread_t caller;
    uint32_t before = lock_given_up();
    result = 0;
    cr_assert(lock_try(lock));
    cr_assert_eq(pthread_create(&caller, NULL, call, NULL), 0);
    while (lock_given_up() == before) usleep(1000);
    lock_let_go(lock);
    pthread_join(caller, NULL);
    return result;
}

Test(state_locks, a_held_registry) {
    put("x");
    cr_expect_gt(call_while_held(&state_registry, do_put), 0);
    cr_expect_eq(call_while_held(&state_registry, do_visit), 2 * 4096);
    cr_expect_eq(call_while_held(&state_registry, do_abandon), 0);
    cr_expect_eq(call_while_held(&state_registry, do_begin), 1);
}

Test(state_locks, a_held_loop) {
    cr_expect_gt(call_while_held(&known->changes, do_put), 0);
    cr_expect_eq(call_while_held(&known->changes, do_abandon), 0);
    cr_expect_eq(call_while_held(&known->changes, do_begin), 1);
}
