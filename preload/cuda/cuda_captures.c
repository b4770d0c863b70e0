/* cuda_captures.c — see cuda_captures.h. Callers identify a capture by its slot in the list. A mere count of the
 * captures would not do: a program may ask to end the capture of a stream that is not in capture, and this must not end
 * another stream's capture. When a stream is destroyed, its captures are no longer found by its handle, because another
 * stream may have the same handle after the driver's call. The default streams of all threads share one handle, so an
 * entry for such a stream also has the thread. A capture that did not fit into the full list is counted for ever,
 * because its end cannot be noticed. From then on there seems to be a capture at all times, so memstow never again
 * makes a call of the driver that could break a capture. */
#include "preload/cuda/cuda_captures.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/cuda/cuda_counts.h"
#include "preload/ledger/ledger.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/base/seal.h"
#include "preload/count/thread.h"
#include "preload/base/forked.h"

enum { CAPTURES_MOST = 64 };
static struct capture {
    cuda_handle stream; /* NULL: free entry */
    uint32_t thread;    /* the thread's slot, if `stream` is a thread's own default stream; else 0 */
    uint32_t number;    /* 0: the capture has not begun */
    bool left;          /* its stream is being destroyed */
    struct cuda_target target;
} captures[CAPTURES_MOST];
static uint32_t numbers; /* the newest number that memstow gave to a capture because the driver gave none */
static uint32_t count;   /* all captures, also those that did not fit into the list */
static struct lock changing;

/* How many threads wait for all work of a context; also a futex. Thread A, which begins a capture, counts the capture
 * and then reads `waits`. Thread B, which is about to wait, counts its wait and then looks for captures. So at least
 * one of them sees the other. */
static uint32_t waits;
static uint64_t wait_began_ns; /* when the latest wait began */
enum { LONG_NS = 1000000000 };

bool cuda_captures_any(void) { return __atomic_load_n(&count, __ATOMIC_SEQ_CST) != 0; }

bool cuda_captures_hold_off(void) {
    if (cuda_captures_any()) return false;
    os_store(&wait_began_ns, os_now());
    __atomic_fetch_add(&waits, 1, __ATOMIC_SEQ_CST);
    if (!cuda_captures_any()) return true;
    cuda_captures_go_on();
    return false;
}

void cuda_captures_go_on(void) {
    if (__atomic_sub_fetch(&waits, 1, __ATOMIC_SEQ_CST) || !cuda_captures_any() || seal_is_set()) return;
    os_call(SYS_futex, &waits, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

static void let_waits_end(void) {
    uint64_t end = 0, now;
    for (uint32_t seen; (seen = __atomic_load_n(&waits, __ATOMIC_SEQ_CST)) && !seal_is_set();) {
        if (!end) end = os_load(&wait_began_ns) + LONG_NS;
        if ((now = os_now()) >= end) return;
        const struct timespec rest = {.tv_nsec = (long)(end - now) - 1};
        os_call(SYS_futex, &waits, FUTEX_WAIT_PRIVATE, seen, &rest);
    }
}

/* Changes the count, and writes it to the ledger. If another thread has changed the count meanwhile, writes it
 * again. */
static void add_to_count(int change) {
    uint32_t *in_ledger = &cuda_counts_head()->captures;
    uint32_t now = __atomic_add_fetch(&count, (uint32_t)change, __ATOMIC_SEQ_CST);
    for (uint32_t written = ~now; written != now; now = __atomic_load_n(&count, __ATOMIC_SEQ_CST))
        __atomic_store_n(in_ledger, written = now, __ATOMIC_SEQ_CST);
}

static struct capture capture_here(cuda_handle stream) {
    bool own = stream == (cuda_handle)CUDA_STREAM_PER_THREAD;
    return (struct capture){.stream = stream ? stream : (cuda_handle)CUDA_STREAM_LEGACY,
                            .thread = own ? thread_slot() : 0};
}

uint64_t cuda_captures_begin(cuda_handle stream, const struct cuda_target *target) {
    struct capture capture = capture_here(stream);
    uint64_t where = 0;
    capture.target = *target;
    add_to_count(1);
    let_waits_end();
    if (!lock_wait(&changing)) return 0;
    for (int i = 0; i < CAPTURES_MOST && !where; i++)
        if (!captures[i].stream) {
            captures[i] = capture;
            where = (uint64_t)1 << i;
        }
    lock_let_go(&changing);
    return where;
}

static uint32_t own_number(void) {
    enum { NO_DRIVERS = 0x40000000 }; /* a bit that the driver's numbers do not have: they count from 1 */
    return NO_DRIVERS | ++numbers;
}

void cuda_captures_began(uint64_t where, uint32_t number) {
    if (!where || !lock_wait(&changing)) return;
    captures[__builtin_ctzll(where)].number = number ? number : own_number();
    lock_let_go(&changing);
}

void cuda_captures_never_began(uint64_t where) {
    if (where)
        cuda_captures_ended(where);
    else
        add_to_count(-1);
}

typedef bool is_meant(const struct capture *capture, const struct capture *like);

static bool is_of_stream(const struct capture *capture, const struct capture *like) {
    return capture->stream == like->stream && capture->thread == like->thread;
}

static bool is_of_context(const struct capture *capture, const struct capture *like) {
    return capture->target.context == like->target.context;
}

/* Returns the slots of the captures in progress that match `like`, one bit each. The caller holds the lock. */
static uint64_t find_capture(is_meant *is, struct capture like) {
    uint64_t found = 0;
    for (int i = 0; i < CAPTURES_MOST; i++) {
        const struct capture *capture = &captures[i];
        bool goes_on = capture->stream && capture->number && !capture->left;
        if (goes_on && is(capture, &like)) found |= (uint64_t)1 << i;
    }
    return found;
}

uint32_t cuda_captures_find(cuda_handle stream) {
    uint32_t number = 0;
    if (!cuda_captures_any() || !lock_wait(&changing)) return 0;
    uint64_t found = find_capture(is_of_stream, capture_here(stream));
    if (found) number = captures[__builtin_ctzll(found)].number;
    lock_let_go(&changing);
    return number;
}

static uint64_t find_locked(is_meant *is, struct capture like) {
    if (!cuda_captures_any() || !lock_wait(&changing)) return 0;
    uint64_t found = find_capture(is, like);
    lock_let_go(&changing);
    return found;
}

uint64_t cuda_captures_of_stream(cuda_handle stream) { return find_locked(is_of_stream, capture_here(stream)); }

uint64_t cuda_captures_of_context(cuda_handle context) {
    return find_locked(is_of_context, (struct capture){.target = {.context = context}});
}

void cuda_captures_leave(uint64_t slots, bool leave) {
    if (!slots || !lock_wait(&changing)) return;
    for (int i = 0; i < CAPTURES_MOST; i++)
        if (slots >> i & 1) captures[i].left = leave;
    lock_let_go(&changing);
}

void cuda_captures_ended(uint64_t slots) {
    if (!slots || !lock_wait(&changing)) return;
    for (int i = 0; i < CAPTURES_MOST; i++)
        if (slots >> i & 1 && captures[i].stream) {
            captures[i] = (struct capture){0};
            add_to_count(-1);
        }
    lock_let_go(&changing);
}

static void cuda_captures_abandon(void) {
    memset(captures, 0, sizeof captures);
    count = waits = numbers = 0;
    changing = (struct lock){0};
}
FORKED(cuda_captures_abandon);
