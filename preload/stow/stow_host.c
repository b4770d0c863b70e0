/* stow_host.c — see stow_host.h.
 *
 * With userfaultfd the pages themselves move:
 *   1. The range is registered, so a thread that touches a missing page waits.
 *   2. Each page moves to a range of ours in one step, with all writes up to then.
 *   3. That range is written to the file.
 *   4. The file's mapping takes the place of the program's range.
 *   5. All waiting threads are woken. They fault again, in the file.
 *
 * UFFDIO_MOVE moves page by page, and refuses pages that a device holds. mremap also moves pages that a device holds,
 * so it is only for idle owners in a process without pinned pages.
 *
 * Without userfaultfd the range is copied, the copy is written to the file, the range is compared with the copy, and
 * the file is mapped over the range. A write between the comparison and the mapping would be lost. */
#include "preload/stow/stow_host.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "preload/shared/os.h"
#include "preload/stow/stow_pages.h"
#include "preload/stow/stow_uffd.h"

enum { SMALLEST = 1 << 20, COMPARED = 256 << 10, PAUSES = 600 };

/* --- address space to move through --- */

/* The address in our buffer that has the same offset in a huge page as `start`. So huge pages can move whole. */
static char *buffer_at(const struct stow_host *self, uint64_t start) { return self->buffer + start % OS_HUGE_PAGE; }

static bool map_buffer(struct stow_host *self) {
    for (uint64_t length = STOW_CHUNK; length >= SMALLEST; length /= 2) {
        char *buffer = os_map(length + 2 * OS_HUGE_PAGE);
        if (!buffer) continue;
        char *start = (char *)os_round_up((uintptr_t)buffer, OS_HUGE_PAGE);
        if (start > buffer) os_unmap(buffer, (size_t)(start - buffer));
        self->buffer = start;
        self->chunk = length;
        self->buffer_length = length + 2 * OS_HUGE_PAGE - (uint64_t)(start - buffer);
        return true;
    }
    return false;
}

static uint32_t begin_without_moving(struct stow_host *self, enum stow_method best, bool idle) {
    if (!idle) return STOW_NOT_IDLE;
    if (stow_pages_are_pinned()) return STOW_PINNED;
    self->method = self->uffd >= 0 && best <= STOW_BY_REMAP ? STOW_BY_REMAP : STOW_BY_COMPARING;
    return self->method == STOW_BY_REMAP || map_buffer(self) ? STOW_DONE : STOW_ADDRESS_SPACE;
}

uint32_t stow_host_begin(struct stow_host *self, enum stow_method best, bool idle) {
    uint32_t features = 0;
    *self = (struct stow_host){.uffd = -1, .chunk = STOW_CHUNK};
    self->pagemap = stow_pages_open();
    if (self->pagemap < 0) return self->pagemap == -EMFILE ? STOW_NO_DESCRIPTOR : STOW_NO_KERNEL_HELP;
    if (best <= STOW_BY_REMAP) self->uffd = stow_uffd_open(best == STOW_BY_MOVE ? UFFD_MOVES : 0, &features);
    uint32_t refusal = STOW_DONE;
    if (self->uffd < 0 || !(features & UFFD_MOVES))
        refusal = begin_without_moving(self, best, idle);
    else if (!map_buffer(self))
        refusal = STOW_ADDRESS_SPACE;
    if (refusal) stow_host_end(self);
    return refusal;
}

void stow_host_end(struct stow_host *self) {
    if (self->uffd >= 0) os_close(self->uffd);
    if (self->pagemap >= 0) os_close(self->pagemap);
    if (self->buffer) os_unmap(self->buffer, self->buffer_length);
    self->uffd = self->pagemap = -1;
    self->buffer = NULL;
}

/* --- the file takes the memory's place --- */

static uint32_t put_over(void *mapping, uint64_t start, uint64_t length) {
    long at = os_call(SYS_mremap, mapping, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, start);
    return at == (long)start ? STOW_DONE : STOW_ADDRESS_SPACE;
}

/* --- moving with userfaultfd --- */

static uint32_t refusal_of(long error) {
    switch (error) {
    case -EBUSY:
    case -EAGAIN:
        return STOW_PINNED;
    case -ENOMEM:
        return STOW_ADDRESS_SPACE;
    default:
        return STOW_GONE;
    }
}

/* Where the first `length` bytes of a range are while they move. */
struct taken {
    char *at;
    uint64_t length;
};

/* Moves pages into our buffer. The buffer is registered only for the time of this move. Otherwise the thread that
 * writes the buffer to the file would wait for ever at a missing page. */
static uint32_t move_to_buffer(struct stow_host *self, uint64_t start, uint64_t length, struct taken *taken) {
    if (stow_uffd_register(self->uffd, (uint64_t)self->buffer, self->buffer_length) < 0) return STOW_NO_KERNEL_HELP;
    long result = stow_uffd_move(self->uffd, (uint64_t)taken->at, start, length, &taken->length);
    stow_uffd_unregister(self->uffd, (uint64_t)self->buffer, self->buffer_length);
    return result < 0 ? refusal_of(result) : STOW_DONE;
}

static uint32_t take_away(struct stow_host *self, uint64_t start, uint64_t length, struct taken *taken) {
    if (self->method == STOW_BY_MOVE) {
        taken->at = buffer_at(self, start);
        return move_to_buffer(self, start, length, taken);
    }
    long at = os_call(SYS_mremap, start, length, length, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    if (at < 0 && at > -OS_PAGE) return STOW_ADDRESS_SPACE;
    *taken = (struct taken){(char *)at, length};
    return STOW_DONE;
}

/* Writes to each mapped page, because UFFDIO_MOVE refuses a page that was shared with a forked process until this
 * process has written to it. An atomic OR of 0 into a byte is such a write, and loses no write of another thread. */
static void make_own(struct stow_host *self, uint64_t start, uint64_t end) {
    uint64_t run_end, pages;
    for (; stow_pages_run(self->pagemap, &start, end, STOW_PAGES_MAPPED, 1, &run_end, &pages); start = run_end)
        for (uint64_t at = start; at < run_end; at += OS_PAGE)
            __asm__ volatile("lock orb $0, %0" : "+m"(*(volatile char *)at));
}

static long move_back(struct stow_host *self, uint64_t start, uint64_t length, const struct taken *taken,
                      uint64_t *back) {
    uint64_t done;
    long result = stow_uffd_move(self->uffd, start + *back, (uint64_t)taken->at + *back, taken->length - *back, &done);
    *back += done;
    if (result == -EBUSY) make_own(self, (uint64_t)taken->at + *back, (uint64_t)taken->at + length);
    if (!stow_uffd_is_lost(result)) return result;
    memcpy((void *)(start + *back), taken->at + *back, taken->length - *back);
    return 0;
}

/* Moves the buffer's mapping over the program's range. After that, others may map something at the addresses that
 * became free in our buffer. So the rest of the buffer is not used any more. */
static long put_buffer_over(struct stow_host *self, const struct taken *taken, uint64_t start) {
    long at = os_call(SYS_mremap, taken->at, taken->length, taken->length, MREMAP_MAYMOVE | MREMAP_FIXED, start);
    if (at == (long)start) self->buffer = NULL;
    return at == (long)start ? 0 : -EAGAIN;
}

/* Puts the pages back, which must succeed. If the pages cannot be moved back, our mapping takes the place of the
 * range's mapping, provided that our mapping has all pages of the range. */
static void put_back(struct stow_host *self, uint64_t start, uint64_t length, const struct taken *taken) {
    const struct timespec pause = {.tv_nsec = 1000000};
    bool whole = taken->length == length;
    uint64_t back = 0;
    long result = taken->length ? -EAGAIN : 0;
    for (int i = 0; result < 0; i++) {
        if (i) os_call(SYS_nanosleep, &pause, 0);
        if (self->method == STOW_BY_MOVE) result = move_back(self, start, length, taken, &back);
        bool hopeless = self->method == STOW_BY_REMAP || i >= PAUSES || result == -ENOENT || result == -EINVAL;
        if (result < 0 && hopeless && whole && !back) result = put_buffer_over(self, taken, start);
    }
}

static void stow_host_drop(struct stow_host *self, const struct taken *taken) {
    if (self->method == STOW_BY_MOVE)
        os_call(SYS_madvise, taken->at, taken->length, MADV_DONTNEED);
    else
        os_unmap(taken->at, taken->length);
}

static uint32_t move_out(struct stow_host *self, uint64_t start, uint64_t length) {
    struct taken taken = {.length = 0};
    void *mapping = stow_file_map(&self->file, length);
    if (!mapping) return STOW_ADDRESS_SPACE;
    uint32_t refusal = stow_uffd_register(self->uffd, start, length) < 0 ? STOW_FAULTS_TAKEN : STOW_DONE;
    if (!refusal) {
        refusal = take_away(self, start, length, &taken);
        if (!refusal) refusal = stow_file_write(&self->file, taken.at, length);
        if (!refusal) refusal = put_over(mapping, start, length);
        if (refusal) put_back(self, start, length, &taken);
        stow_uffd_unregister(self->uffd, start, length);
    }
    if (refusal)
        os_unmap(mapping, length);
    else
        stow_host_drop(self, &taken);
    return refusal;
}

/* --- moving without userfaultfd --- */

static uint32_t compare_and_map(struct stow_host *self, uint64_t start, const char *copy, uint64_t length) {
    void *mapping = stow_file_map(&self->file, length);
    if (!mapping) return STOW_ADDRESS_SPACE;
    uint32_t refusal = memcmp((void *)start, copy, length) ? STOW_IN_USE : put_over(mapping, start, length);
    if (refusal) os_unmap(mapping, length);
    return refusal;
}

static uint32_t copy_out(struct stow_host *self, uint64_t start, uint64_t length, uint64_t *done) {
    char *copy = buffer_at(self, start);
    memcpy(copy, (void *)start, length);
    uint32_t refusal = stow_file_write(&self->file, copy, length);
    while (!refusal && *done < length) {
        uint64_t part = length - *done < COMPARED ? length - *done : COMPARED;
        refusal = compare_and_map(self, start + *done, copy + *done, part);
        if (refusal) break;
        *done += part;
        self->file.used += part;
    }
    os_call(SYS_madvise, self->buffer, self->buffer_length, MADV_DONTNEED);
    return refusal;
}

uint32_t stow_host_out(struct stow_host *self, uint64_t start, uint64_t length, uint64_t *done) {
    *done = 0;
    if (self->method != STOW_BY_REMAP && !self->buffer) return STOW_ADDRESS_SPACE;
    if (self->method == STOW_BY_COMPARING) return copy_out(self, start, length, done);
    uint32_t refusal = move_out(self, start, length);
    if (refusal == STOW_PINNED && self->method == STOW_BY_MOVE) {
        make_own(self, start, start + length);
        refusal = move_out(self, start, length);
    }
    *done = refusal ? 0 : length;
    self->file.used += *done;
    return refusal;
}
