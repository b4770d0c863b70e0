/* requests.c — see requests.h. */
#include "preload/control/requests.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/owners/mover.h"
#include "preload/ledger/ledger.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/count/owner.h"
#include "preload/base/seal.h"

struct request {
    enum request_state state;
    bool left;      /* nobody waits for the answer */
    bool by_worker; /* the worker took it, not the program */
    /* The ticket of the newest request of this entry that an asker took back while the program was working on it; 0:
     * none. Moves read this word without the lock (move_end.h). The word stays when a later request uses the entry. */
    uint64_t ended;
    uint32_t kind, owner, reason;
    uint64_t ticket; /* tickets ascend: the lowest is the oldest */
    uint64_t needed;
    int64_t result;
    char text[256]; /* the text of the request, and later of the answer */
};

/* Empty in a forked child: the requests, and the threads that wait for them, are the parent's. */
static struct {
    struct lock lock;
    bool wiped_by_fork; /* the kernel has been told to wipe the page in a forked child; atomic, because it is read
                         * without the lock */
    uint32_t answered;  /* the kinds, as bits, that the program answers, because it has asked for them */
    uint32_t posted;    /* a futex that counts events for waiting threads */
    uint64_t tickets;   /* the newest ticket */
    struct request list[REQUESTS_MOST];
} __attribute__((aligned(OS_PAGE))) page; /* whole pages, because the kernel wipes whole pages */

/* Takes the lock. A request must not be lost, so a thread waits as long as it takes, except in two cases. In these, it
 * gives up after a while and returns false, because perhaps nobody will ever let go of the lock:
 *
 * - The kernel has not been told yet to wipe the page. Then this may be a forked child, and a thread of the parent may
 *   have held the lock at the fork.
 * - The process is in a sandbox. There, signals are not blocked, so this may be a handler whose own thread holds the
 *   lock. */
static bool requests_begin(void) {
    bool wiped = __atomic_load_n(&page.wiped_by_fork, __ATOMIC_RELAXED);
    if (wiped && !seal_is_set())
        lock_hold(&page.lock);
    else if (!lock_wait(&page.lock))
        return false;
    if (!wiped && !seal_is_set())
        __atomic_store_n(&page.wiped_by_fork, os_call(SYS_madvise, &page, sizeof page, MADV_WIPEONFORK) == 0,
                         __ATOMIC_RELAXED);
    return true;
}

static void requests_unlock(void) { lock_let_go(&page.lock); }

static struct request *find_request(uint64_t ticket) {
    for (int i = 0; i < REQUESTS_MOST; i++)
        if (page.list[i].state != REQUEST_NONE && page.list[i].ticket == ticket) return &page.list[i];
    return NULL;
}

static struct request *requests_oldest(bool (*is)(const struct request *request, const void *context),
                                       const void *context) {
    struct request *oldest = NULL;
    for (int i = 0; i < REQUESTS_MOST; i++) {
        struct request *request = &page.list[i];
        if (is(request, context) && (!oldest || request->ticket < oldest->ticket)) oldest = request;
    }
    return oldest;
}

static bool is_waiting(const struct request *request, const void *kinds) {
    return request->state == REQUEST_WAITING && *(const uint32_t *)kinds >> request->kind & 1;
}

static struct request *oldest_waiting(uint32_t kinds) { return requests_oldest(is_waiting, &kinds); }

/* --- what askers do: add, look for the answer, take back --- */

static struct request *free_slot(void) {
    for (int i = 0; i < REQUESTS_MOST; i++)
        if (page.list[i].state == REQUEST_NONE) return &page.list[i];
    return NULL;
}

/* Whether only the program, and not memstow's worker, can answer requests of this kind. */
static bool only_a_program_answers(uint32_t kind) { return !(REQUESTS_OLD >> kind & 1); }

/* Returns the ticket, or -EBUSY, -ENOTSUP. */
static int64_t add_request(const struct request *wanted, const char *text) {
    struct request *request = free_slot();
    if (only_a_program_answers(wanted->kind) && !(page.answered >> wanted->kind & 1)) return -ENOTSUP;
    if (!request) return -EBUSY;
    mover_request = requests_end;
    mover_cancel_request = requests_cancel;
    struct request added = *wanted;
    added.state = REQUEST_WAITING;
    added.ended = request->ended;
    added.ticket = ++page.tickets;
    *request = added;
    os_copy(request->text, sizeof request->text, text);
    return (int64_t)request->ticket;
}

int64_t requests_add(uint32_t kind, uint32_t owner, const char *text) {
    struct request wanted = {.kind = kind, .owner = owner};
    if (kind == MEMSTOW_ASK_TRIGGER) wanted.reason = MEMSTOW_REQUEST;
    if (!requests_begin()) return -EBUSY;
    int64_t ticket = add_request(&wanted, text);
    requests_unlock();
    if (ticket > 0) requests_wake();
    return ticket;
}

static bool one_is_passed_on(void) {
    for (int i = 0; i < REQUESTS_MOST; i++)
        if (page.list[i].state != REQUEST_NONE && page.list[i].reason && page.list[i].reason != MEMSTOW_REQUEST)
            return true;
    return false;
}

bool requests_pass_on(uint32_t reason, const char *text, uint64_t needed) {
    struct request wanted = {.kind = MEMSTOW_ASK_TRIGGER, .reason = reason, .needed = needed, .left = true};
    if (!requests_begin()) return true;
    bool theirs = page.answered >> MEMSTOW_ASK_TRIGGER & 1;
    if (theirs && !one_is_passed_on()) add_request(&wanted, text);
    requests_unlock();
    if (theirs) requests_wake();
    return theirs;
}

enum request_state requests_look(uint64_t ticket, int64_t *result, char text[256]) {
    enum request_state state = REQUEST_WAITING; /* what the caller gets if the lock is not free: then it asks again */
    if (!requests_begin()) return state;
    struct request *request = find_request(ticket);
    state = request ? request->state : REQUEST_NONE;
    if (state == REQUEST_DONE) {
        *result = request->result;
        memcpy(text, request->text, sizeof request->text);
        request->state = REQUEST_NONE;
    }
    requests_unlock();
    return state;
}

bool requests_take_back(uint64_t ticket) {
    bool taken_back = false;
    if (!requests_begin()) return false;
    struct request *request = find_request(ticket);
    if (request && request->state == REQUEST_WAITING) {
        request->state = REQUEST_NONE;
        taken_back = true;
    }
    requests_unlock();
    return taken_back;
}

void requests_leave(uint64_t ticket) {
    if (!requests_begin()) return;
    struct request *request = find_request(ticket);
    if (request && request->state == REQUEST_TAKEN)
        request->left = true;
    else if (request)
        request->state = REQUEST_NONE;
    requests_unlock();
}

/* --- what the program and the worker do: take requests, answer them --- */

/* Takes the oldest request that waits for the caller. If `kinds` is 0, the caller is the worker, and gets only kinds
 * that the program does not answer. Otherwise the caller is the program, which asks for these kinds. */
static bool take_request(struct memstow_request *out, uint32_t kinds) {
    if (!requests_begin()) return false;
    page.answered |= kinds;
    struct request *request = oldest_waiting(kinds ? kinds : ~page.answered);
    if (request) {
        request->state = REQUEST_TAKEN;
        request->by_worker = !kinds;
        *out = (struct memstow_request){.size = sizeof *out,
                                        .kind = request->kind,
                                        .ticket = request->ticket,
                                        .owner = request->owner,
                                        .reason = request->reason,
                                        .needed = request->needed};
        memcpy(out->text, request->text, sizeof out->text);
    }
    requests_unlock();
    return request;
}

bool requests_take(struct memstow_request *out) { return take_request(out, 0); }

bool requests_for_worker(void) {
    if (!requests_begin()) return false;
    bool some = oldest_waiting(~page.answered);
    requests_unlock();
    return some;
}

static bool is_programs(const struct request *request) {
    return request->state == REQUEST_TAKEN && !request->by_worker;
}

int requests_next(struct memstow_request *out, uint32_t kinds, uint32_t milliseconds) {
    uint64_t until = os_now() + milliseconds * UINT64_C(1000000);
    for (;;) {
        if (seal_is_set()) return -ENODEV;
        uint32_t seen = requests_seen();
        if (take_request(out, kinds)) return 1;
        uint64_t now = os_now();
        if (now >= until || requests_wait(seen, until - now) == -EINTR) return 0;
    }
}

int requests_done(uint64_t ticket, int64_t result, const char *text) {
    if (!requests_begin()) return -EBUSY;
    struct request *request = find_request(ticket);
    bool taken = request && request->state == REQUEST_TAKEN;
    if (taken) {
        request->state = request->left ? REQUEST_NONE : REQUEST_DONE;
        request->result = result;
        os_copy(request->text, sizeof request->text, text);
    }
    requests_unlock();
    return taken ? 0 : -ENOENT;
}

/* --- an asker takes back a request that was taken --- */

void requests_cancel(uint64_t ticket) {
    if (!requests_begin()) return;
    struct request *request = find_request(ticket);
    if (request && request->state == REQUEST_TAKEN) {
        if (request->by_worker)
            mover_cancel_work(); /* under the lock, the worker cannot begin its next work */
        else
            __atomic_store_n(&request->ended, ticket, __ATOMIC_SEQ_CST);
    }
    requests_unlock();
}

struct moving {
    uint32_t owner;
    bool out;
};

/* Whether the program perhaps makes this move of memory for the request. If the request is for a trigger, owners are
 * not compared, because a trigger concerns every owner. Threads are never compared, because the program can take a
 * request on one thread and move memory for it on another. */
static bool may_be_for(const struct request *request, const void *context) {
    const struct moving *move = context;
    if (!is_programs(request) || request->left) return false;
    if (request->kind == MEMSTOW_ASK_TRIGGER) return move->out;
    return (request->kind != MEMSTOW_ASK_RESTORE) == move->out && owner_final(request->owner) == move->owner;
}

uint64_t requests_end(uint32_t owner, bool out, struct move_end *at) {
    struct moving move = {owner_final(owner), out};
    *at = (struct move_end){0};
    if (!requests_begin()) return 0;
    const struct request *request = requests_oldest(may_be_for, &move);
    if (request) *at = (struct move_end){&request->ended, request->ticket};
    requests_unlock();
    return at->value;
}

/* --- waiting for requests --- */

uint32_t requests_seen(void) { return __atomic_load_n(&page.posted, __ATOMIC_ACQUIRE); }

int requests_wait(uint32_t seen, uint64_t nanoseconds) {
    struct timespec time = {(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};
    return (int)os_call(SYS_futex, &page.posted, FUTEX_WAIT_PRIVATE, seen, &time);
}

void requests_wake(void) {
    __atomic_fetch_add(&page.posted, 1, __ATOMIC_RELEASE);
    os_call(SYS_futex, &page.posted, FUTEX_WAKE_PRIVATE, INT32_MAX);
}
