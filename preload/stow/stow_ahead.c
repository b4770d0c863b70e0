/* stow_ahead.c — see stow_ahead.h. */
#include "preload/stow/stow_ahead.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/shared/os.h"
#include "preload/stow/stow.h"
#include "preload/stow/stow_thread.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/* REQUEST: the disk's limit for one request. The kernel ignores the rest of a longer request to read ahead.
 * STEP: how much one system call makes ready. The kernel locks the address space during the call. */
enum { PIECE = 1 << 20, STEP = 128 << 10, REQUEST = 128 << 10, AT_ONCE = 3 << 20, AHEAD = 32 << 20 };
_Static_assert(AHEAD_MOST / PIECE <= 64, "a bit for each piece");

static uint32_t refusal_of(long error) {
    switch (error) {
    case -EFAULT:
    case -EIO:
    case -EHWPOISON:
        return STOW_DISK_ERROR;
    case -ENOMEM:
        return STOW_ADDRESS_SPACE;
    default:
        return STOW_NO_KERNEL_HELP;
    }
}

uint32_t stow_ahead_populate(uint64_t start, uint64_t length, bool for_writing, bool *known) {
    long result;
    do result = os_call(SYS_madvise, start, length, for_writing ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
    while (result == -EINTR || result == -EAGAIN);
    *known = result != -EINVAL;
    return result < 0 && *known ? refusal_of(result) : STOW_DONE;
}

void stow_ahead_pause(struct stow_ahead *self) { __atomic_store_n(&self->paused, 1, __ATOMIC_RELEASE); }

void stow_ahead_resume(struct stow_ahead *self) {
    __atomic_store_n(&self->paused, 0, __ATOMIC_RELEASE);
    os_call(SYS_futex, &self->paused, FUTEX_WAKE_PRIVATE, INT_MAX);
}

static void wait_while_paused(struct stow_ahead *self) {
    const struct timespec most = {.tv_sec = 1};
    while (__atomic_load_n(&self->paused, __ATOMIC_ACQUIRE))
        os_call(SYS_futex, &self->paused, FUTEX_WAIT_PRIVATE, 1, &most);
}

/* Gives the process a copy of its own of each page. Linux before 5.14 has no system call for this. On such a kernel
 * this function writes to each page, and a disk error raises SIGBUS. */
static uint32_t make_own(struct stow_ahead *self, uint64_t start, uint64_t end) {
    for (uint64_t at = start, next; at < end; at = next) {
        bool known;
        next = end - at < STEP ? end : at + STEP;
        wait_while_paused(self);
        uint32_t refusal = stow_ahead_populate(at, next - at, true, &known);
        if (refusal) return refusal;
        for (; !known && at < next; at += OS_PAGE) __asm__ volatile("lock orb $0, %0" : "+m"(*(volatile char *)at));
    }
    return STOW_DONE;
}

/* Asks the kernel to read ahead, in small steps, so that the first pages need not wait until all others were
 * requested. */
static void stow_ahead_expect(struct stow_ahead *self, uint64_t at) {
    uint64_t until = self->until - at < AHEAD ? self->until : at + AHEAD;
    if (self->expected < at) self->expected = at;
    if (until > self->expected + AT_ONCE) until = self->expected + AT_ONCE;
    for (; self->expected < until; self->expected += REQUEST) {
        uint64_t left = until - self->expected;
        wait_while_paused(self);
        os_call(SYS_madvise, self->expected, left < REQUEST ? left : REQUEST, MADV_WILLNEED);
    }
}

static uint32_t make_ready(struct stow_ahead *self, uint64_t from, uint64_t length) {
    if (!self->reader) stow_ahead_expect(self, self->start + from);
    return make_own(self, self->start + from, self->start + from + length);
}

static void stow_ahead_report(struct stow_ahead *self, uint64_t number, uint32_t refusal) {
    if (refusal)
        __atomic_store_n(&self->refusal, refusal, __ATOMIC_RELAXED);
    else
        __atomic_fetch_or(&self->made, (uint64_t)1 << number, __ATOMIC_RELEASE);
    __atomic_fetch_add(&self->serial, 1, __ATOMIC_RELEASE);
    os_call(SYS_futex, &self->serial, FUTEX_WAKE_PRIVATE, 1);
}

static bool stow_ahead_goes_on(const struct stow_ahead *self) {
    return !__atomic_load_n(&self->stop, __ATOMIC_RELAXED) && !__atomic_load_n(&self->refusal, __ATOMIC_RELAXED);
}

static void go_ahead(void *context) {
    struct stow_ahead *self = context;
    for (uint64_t number = 0, from = 0; from < self->length && stow_ahead_goes_on(self); number++, from += PIECE) {
        uint64_t left = self->length - from;
        stow_ahead_report(self, number, make_ready(self, from, left < PIECE ? left : PIECE));
    }
}

/* Reads the range with huge pages. If a read fails, the thread that makes pages ready gets the same error. */
static void read_huge(void *context) {
    struct stow_ahead *self = context;
    uint64_t end = self->start + self->length, next;
    for (uint64_t at = self->start; at < end && stow_ahead_goes_on(self); at = next) {
        bool known;
        next = (at + OS_HUGE_PAGE) & ~(uint64_t)(OS_HUGE_PAGE - 1);
        if (next > end) next = end;
        wait_while_paused(self);
        stow_ahead_populate(at, next - at, false, &known);
    }
}

/* Starts the thread that reads with huge pages. A file system with huge pages reads a whole huge page in one request
 * for a page fault, but not for MADV_WILLNEED. */
static void begin_huge(struct stow_ahead *self) {
    if (os_call(SYS_madvise, self->start, self->length, MADV_HUGEPAGE) < 0) return;
    self->reader = stow_thread_start(read_huge, self, NULL);
}

/* If the range is a single piece, or if no thread can be started, the whole range is made ready before this returns. */
void stow_ahead_begin(struct stow_ahead *self, uint64_t start, uint64_t length, uint64_t until, uint64_t expected,
                      bool huge) {
    *self = (struct stow_ahead){.start = start, .length = length, .until = until, .expected = expected};
    if (self->until < start + length) self->until = start + length;
    if (huge && length > OS_HUGE_PAGE) begin_huge(self);
    if (length > PIECE) self->maker = stow_thread_start(go_ahead, self, NULL);
    if (!self->maker) go_ahead(self);
}

static uint64_t stow_ahead_ready(const struct stow_ahead *self) {
    uint64_t missing = ~__atomic_load_n(&self->made, __ATOMIC_ACQUIRE);
    uint64_t bytes = (missing ? (uint64_t)__builtin_ctzll(missing) : 64) * PIECE;
    return bytes < self->length ? bytes : self->length;
}

uint64_t stow_ahead_wait(struct stow_ahead *self, uint64_t done, uint64_t wanted) {
    const struct timespec most = {.tv_sec = 1};
    for (;;) {
        uint32_t serial = __atomic_load_n(&self->serial, __ATOMIC_ACQUIRE);
        uint32_t refusal = __atomic_load_n(&self->refusal, __ATOMIC_RELAXED);
        uint64_t there = stow_ahead_ready(self);
        bool enough = there >= done + wanted;
        if (enough || refusal) return enough ? wanted : there - done;
        os_call(SYS_futex, &self->serial, FUTEX_WAIT_PRIVATE, serial, &most);
    }
}

void stow_ahead_end(struct stow_ahead *self) {
    __atomic_store_n(&self->stop, true, __ATOMIC_RELAXED);
    if (self->maker) stow_thread_join(self->maker);
    if (self->reader) stow_thread_join(self->reader);
    self->maker = self->reader = NULL;
}
