/* cuda_captures.c — see cuda_captures.h. By stream and not by a number alone: an end that fails, because the stream was
 * not being captured, must not end another's. The default streams of threads have one name, and are told apart by the
 * thread, which alone can name its own. One for which there was no room in the list never ends: then the driver
 * is asked for nothing any more. */
#include "cuda_captures.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "account.h"
#include "cuda_counts.h"
#include "ledger.h"
#include "lock.h"
#include "os.h"

enum { CAPTURES_MOST = 64 };
static struct capture {
    cuda_handle stream; /* NULL: none */
    uint32_t thread;    /* whose default stream it is */
    uint32_t number;    /* 0: not known, or not yet */
    struct cuda_place place;
} captures[CAPTURES_MOST];
static uint32_t count;
static struct lock changing;

/* Waits for whole contexts, a futex. Whoever begins a capture counts it and then looks at this; whoever is about to
 * wait counts that and then looks for captures: one of the two sees the other. */
static uint32_t waits;
static uint64_t wait_began_ns; /* the latest of them */
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
    if (__atomic_sub_fetch(&waits, 1, __ATOMIC_SEQ_CST) || !cuda_captures_any() || ledger_is_sealed()) return;
    os_call(SYS_futex, &waits, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

static void let_waits_end(void) {
    uint64_t end = 0, now;
    for (uint32_t seen; (seen = __atomic_load_n(&waits, __ATOMIC_SEQ_CST)) && !ledger_is_sealed();) {
        if (!end) end = os_load(&wait_began_ns) + LONG_NS;
        if ((now = os_now()) >= end) return;
        const struct timespec rest = {.tv_nsec = (long)(end - now) - 1};
        os_call(SYS_futex, &waits, FUTEX_WAIT_PRIVATE, seen, &rest);
    }
}

/* In the ledger, too: who has written what was overtaken meanwhile writes again. */
static void add_to_count(int change) {
    uint32_t *in_ledger = &cuda_counts_head()->captures;
    uint32_t now = __atomic_add_fetch(&count, (uint32_t)change, __ATOMIC_SEQ_CST);
    for (uint32_t written = ~now; written != now; now = __atomic_load_n(&count, __ATOMIC_SEQ_CST))
        __atomic_store_n(in_ledger, written = now, __ATOMIC_SEQ_CST);
}

static struct capture capture_here(cuda_handle stream) {
    bool own = stream == (cuda_handle)CUDA_STREAM_PER_THREAD;
    return (struct capture){.stream = stream, .thread = own ? account_thread_slot() : 0};
}

static bool is_of_stream(const struct capture *capture, const struct capture *like) {
    return capture->stream == like->stream && capture->thread == like->thread;
}

void cuda_captures_begin(cuda_handle stream, const struct cuda_place *place) {
    struct capture capture = capture_here(stream);
    capture.place = *place;
    add_to_count(1);
    let_waits_end();
    if (!lock_wait(&changing)) return;
    for (int i = 0; i < CAPTURES_MOST; i++)
        if (!captures[i].stream) {
            captures[i] = capture;
            break;
        }
    lock_let_go(&changing);
}

/* Locked. */
static struct capture *find(cuda_handle stream) {
    struct capture like = capture_here(stream);
    for (int i = 0; i < CAPTURES_MOST; i++)
        if (is_of_stream(&captures[i], &like)) return &captures[i];
    return NULL;
}

void cuda_captures_began(cuda_handle stream, uint32_t number) {
    struct capture *capture;
    if (!stream || !lock_wait(&changing)) return;
    if ((capture = find(stream))) capture->number = number;
    lock_let_go(&changing);
}

uint32_t cuda_captures_find(cuda_handle stream) {
    const struct capture *capture;
    uint32_t number = 0;
    if (!stream || !cuda_captures_any() || !lock_wait(&changing)) return 0;
    if ((capture = find(stream))) number = capture->number;
    lock_let_go(&changing);
    return number;
}

typedef bool is_over(const struct capture *capture, const struct capture *like);

static void end_those(is_over *over, struct capture like, int most) {
    if (!cuda_captures_any() || !lock_wait(&changing)) return;
    for (int i = 0; i < CAPTURES_MOST && most; i++)
        if (captures[i].stream && over(&captures[i], &like)) {
            captures[i].stream = NULL;
            add_to_count(-1);
            most--;
        }
    lock_let_go(&changing);
}

static bool is_of_context(const struct capture *capture, const struct capture *like) {
    return capture->place.context == like->place.context;
}

void cuda_captures_end(cuda_handle stream) { end_those(is_of_stream, capture_here(stream), 1); }

void cuda_captures_end_stream(cuda_handle stream) { end_those(is_of_stream, capture_here(stream), CAPTURES_MOST); }

void cuda_captures_end_context(cuda_handle context) {
    end_those(is_of_context, (struct capture){.place = {.context = context}}, CAPTURES_MOST);
}

void cuda_captures_abandon(void) {
    memset(captures, 0, sizeof captures);
    count = waits = 0;
    changing = (struct lock){0};
}
