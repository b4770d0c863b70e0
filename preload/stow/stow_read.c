/* stow_read.c — see stow_read.h. */
#include "preload/stow/stow_read.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/shared/os.h"
#include "preload/stow/stow.h"
#include "preload/stow/stow_thread.h"

static void stow_read_changed(struct stow_read *self) {
    __atomic_fetch_add(&self->serial, 1, __ATOMIC_RELEASE);
    os_call(SYS_futex, &self->serial, FUTEX_WAKE_PRIVATE, INT_MAX);
}

static void wait_for_change(struct stow_read *self, uint32_t serial) {
    const struct timespec most = {.tv_sec = 1};
    os_call(SYS_futex, &self->serial, FUTEX_WAIT_PRIVATE, serial, &most);
}

/* Whether to read this piece. Pieces before the first unreadable one are still read. */
static bool stow_read_goes_on(const struct stow_read *self, uint64_t number) {
    return !__atomic_load_n(&self->stop, __ATOMIC_RELAXED) && number < __atomic_load_n(&self->bad, __ATOMIC_RELAXED);
}

static void note_bad(struct stow_read *self, uint64_t number) {
    uint64_t seen = __atomic_load_n(&self->bad, __ATOMIC_RELAXED);
    while (number < seen &&
           !__atomic_compare_exchange_n(&self->bad, &seen, number, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

static bool wait_for_slot(struct stow_read *self, uint64_t number) {
    while (stow_read_goes_on(self, number)) {
        uint32_t serial = __atomic_load_n(&self->serial, __ATOMIC_ACQUIRE);
        uint64_t taken = __atomic_load_n(&self->taken, __ATOMIC_ACQUIRE);
        if ((number + 1) * READ_PIECE <= taken + self->pieces * READ_PIECE) return true;
        wait_for_change(self, serial);
    }
    return false;
}

static uint64_t piece_length(const struct stow_read *self, uint64_t number) {
    uint64_t left = self->length - number * READ_PIECE;
    return left < READ_PIECE ? left : READ_PIECE;
}

static char *stow_read_place_of(const struct stow_read *self, uint64_t number) {
    return self->buffer + number % self->pieces * READ_PIECE;
}

static void read_piece(struct stow_read *self, uint64_t number) {
    char *to = stow_read_place_of(self, number);
    uint64_t length = piece_length(self, number), from = self->offset + number * READ_PIECE;
    for (uint64_t done = 0; done < length;) {
        long got = os_pread(self->fd, to + done, length - done, from + done);
        if (got <= 0) {
            note_bad(self, number);
            return;
        }
        done += (uint64_t)got;
    }
    __atomic_store_n(&self->ready[number % self->pieces], number + 1, __ATOMIC_RELEASE);
}

/* Reads the next piece. False: there is no further piece to read. */
static bool read_next(struct stow_read *self) {
    uint64_t number = __atomic_fetch_add(&self->next, 1, __ATOMIC_RELAXED);
    if (number * READ_PIECE >= self->length || !wait_for_slot(self, number)) return false;
    read_piece(self, number);
    stow_read_changed(self);
    return true;
}

static void read_on(void *context) {
    while (read_next(context)) continue;
}

/* Starts the threads that read. If there is only a single piece, or if no thread can be started, the caller of
 * stow_read_wait reads instead. */
void stow_read_begin(struct stow_read *self, int fd, uint64_t offset, uint64_t length, char *buffer, uint64_t pieces) {
    *self = (struct stow_read){
        .fd = fd, .offset = offset, .length = length, .buffer = buffer, .pieces = pieces, .bad = UINT64_MAX};
    if (self->pieces > READ_PIECES_MOST) self->pieces = READ_PIECES_MOST;
    for (int i = 0; i < READ_THREADS && length > READ_PIECE; i++)
        self->threads[i] = stow_thread_start(read_on, self, NULL);
}

static bool any_thread(const struct stow_read *self) {
    for (int i = 0; i < READ_THREADS; i++)
        if (self->threads[i]) return true;
    return false;
}

uint64_t stow_read_wait(struct stow_read *self, char **at) {
    uint64_t number = self->taken / READ_PIECE, within = self->taken % READ_PIECE;
    if (self->taken >= self->length) return 0;
    for (;;) {
        uint32_t serial = __atomic_load_n(&self->serial, __ATOMIC_ACQUIRE);
        if (__atomic_load_n(&self->ready[number % self->pieces], __ATOMIC_ACQUIRE) == number + 1) break;
        if (!stow_read_goes_on(self, number)) {
            self->refusal = STOW_DISK_ERROR;
            return 0;
        }
        if (any_thread(self))
            wait_for_change(self, serial);
        else
            read_next(self);
    }
    *at = stow_read_place_of(self, number) + within;
    return piece_length(self, number) - within;
}

void stow_read_take(struct stow_read *self, uint64_t bytes) {
    __atomic_store_n(&self->taken, self->taken + bytes, __ATOMIC_RELEASE);
    stow_read_changed(self);
}

void stow_read_end(struct stow_read *self) {
    __atomic_store_n(&self->stop, true, __ATOMIC_RELAXED);
    stow_read_changed(self);
    for (int i = 0; i < READ_THREADS; i++)
        if (self->threads[i]) stow_thread_join(self->threads[i]);
    memset(self->threads, 0, sizeof self->threads);
}
