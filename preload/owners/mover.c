/* mover.c — see mover.h. */
#include "preload/owners/mover.h"

#include <errno.h>

#include "preload/base/forked.h"
#include "preload/base/lock.h"
#include "preload/count/owner.h"
#include "preload/ledger/ledger.h"
#include "preload/shared/os.h"

static uint64_t no_request(uint32_t owner, bool out, struct move_end *end) {
    (void)owner, (void)out, (void)end;
    return 0;
}
uint64_t (*mover_request)(uint32_t owner, bool out, struct move_end *end) = no_request;
void (*mover_cancel_request)(uint64_t ticket);

static struct {
    uint32_t thread;
    /* work: the number of the worker's present work; ended: the number of the work that is to end early */
    uint64_t work, ended;
} worker;

/* Each call of the program that moves memory gets a number, and uses the word of ended_calls at this number modulo
 * CALLS. To end the call, its number is written into the word. The number of another call that uses the same word does
 * not end it. */
enum { CALLS = 64 };
static uint64_t calls, ended_calls[CALLS];
static __thread uint64_t this_call __attribute__((tls_model("initial-exec")));

void mover_begin_call(void) { this_call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED); }

void mover_begin(struct mover *self) {
    if (__atomic_load_n(&worker.thread, __ATOMIC_RELAXED) == os_tid()) {
        self->ender = BY_WORKER;
        self->end = (struct move_end){&worker.ended, os_load(&worker.work)};
    } else if (mover_request(self->owner, self->out, &self->end)) {
        self->ender = BY_REQUEST;
    } else {
        if (!this_call) mover_begin_call();
        self->ender = BY_CALL;
        self->end = (struct move_end){&ended_calls[this_call % CALLS], this_call};
    }
}

/* --- the present move, as other threads see it --- */

enum { OVER = 8 }; /* between two calls of mover_is_on by a client, fewer than OVER moves come to an end */

static struct {
    struct lock lock;
    struct shown {
        uint64_t number; /* 0: there is no move */
        uint32_t owner;
        bool out;
        enum ender ender;
        /* The value of the move's move_end: a request's ticket, or the number of a call or of the worker's work. */
        uint64_t value;
    } mover;
    /* number, moved, wanted (bytes) of the present move, or, if there is none, of the latest one */
    uint64_t number, moved, wanted;
    struct figures {
        uint64_t number, moved, wanted;
    } over[OVER]; /* the moves that ended most recently; move number N is at index N % OVER */
} hand;

static void note_in_ledger(const struct mover *self) {
    os_store(&ledger_head->moved_bytes, hand.moved);
    os_store(&ledger_head->wanted_bytes, hand.wanted);
    ledger_head->moving = self->out ? SNAP_MOVING_OUT : SNAP_MOVING_BACK;
    __atomic_store_n(&ledger_head->moving_owner, owner_final(self->owner), __ATOMIC_RELEASE);
}

/* The engine (stow.h) moves host memory for one move at a time, so no two moves call this at once. */
void mover_tell(uint64_t moved, uint64_t wanted, void *context) {
    struct mover *self = context;
    if (!lock_wait(&hand.lock)) return;
    if (!self->number) self->number = ++hand.number;
    hand.mover = (struct shown){self->number, self->owner, self->out, self->ender, self->end.value};
    hand.moved = moved;
    hand.wanted = self->wanted = wanted;
    note_in_ledger(self);
    lock_let_go(&hand.lock);
}

/* The move has ended. If another move has begun meanwhile, the ledger goes on showing that one. If the lock cannot be
 * had in time, this function goes on without it. Meanwhile mover_end may run in the thread that has the lock, and may
 * tell this move to stop, although the move has ended. That does no harm: end_mover writes to static variables and
 * cancels requests, and never uses the struct mover of this move, which may be gone. */
void mover_leave(const struct mover *self, int64_t moved) {
    uint64_t seen = self->number;
    if (!self->number) return;
    bool locked = lock_wait(&hand.lock);
    struct figures *over = &hand.over[self->number % OVER];
    *over = (struct figures){self->number, moved > 0 ? (uint64_t)moved : 0, self->wanted};
    if (__atomic_compare_exchange_n(&hand.mover.number, &seen, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        __atomic_store_n(&ledger_head->moving_owner, 0, __ATOMIC_RELEASE);
    if (locked) lock_let_go(&hand.lock);
}

static bool mover_is_of(const struct shown *mover, uint32_t owner, bool out) {
    return mover->number && mover->out == out && (!owner || owner_final(owner) == owner_final(mover->owner));
}

static void end_mover(const struct shown *mover) {
    if (mover->ender == BY_REQUEST)
        mover_cancel_request(mover->value);
    else
        os_store(mover->ender == BY_WORKER ? &worker.ended : &ended_calls[mover->value % CALLS], mover->value);
}

int64_t mover_end(uint32_t owner, bool out) {
    if (!lock_wait(&hand.lock)) return -EBUSY;
    const struct shown mover = hand.mover;
    bool is = mover_is_of(&mover, owner, out);
    if (is) end_mover(&mover);
    lock_let_go(&hand.lock);
    return is ? (int64_t)mover.number : -ENOENT;
}

bool mover_is_on(uint64_t number, uint64_t *moved, uint64_t *wanted) {
    if (!lock_wait(&hand.lock)) return true;
    const struct figures *over = &hand.over[number % OVER];
    bool is = over->number < number; /* otherwise this move has ended, or even a later one */
    if (over->number == number)
        *moved = over->moved, *wanted = over->wanted;
    else if (hand.number == number)
        *moved = hand.moved, *wanted = hand.wanted;
    lock_let_go(&hand.lock);
    return is;
}

static void mover_abandon(void) {
    hand.lock = (struct lock){0};
    hand.mover = (struct shown){0};
    worker.thread = 0;
}
FORKED(mover_abandon);

/* --- memstow's own worker thread --- */

void mover_begin_work(void) {
    __atomic_fetch_add(&worker.work, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&worker.thread, os_tid(), __ATOMIC_RELAXED);
}

void mover_end_work(void) { __atomic_store_n(&worker.thread, 0, __ATOMIC_RELAXED); }

void mover_cancel_work(void) { os_store(&worker.ended, os_load(&worker.work)); }
