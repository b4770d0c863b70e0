/* stow_queue.c — see stow_queue.h. The kernel's queue (io_submit) needs no thread, no descriptor and no signal. A write
 * that the queue did not complete is repeated with pwrite. If pwrite fails, too, the refusal says why pwrite failed. */
#include "preload/stow/stow_queue.h"

#include <errno.h>
#include <sys/syscall.h>

#include "preload/base/forked.h"
#include "preload/shared/os.h"
#include "preload/stow/stow.h"

enum { MOST_UNFLUSHED = 8 << 20 };

/* --- the kernel's queues: ending a queue takes 20 ms, so an unused queue is kept for the next file --- */

static aio_context_t idle_context;

static aio_context_t take_context(void) {
    aio_context_t context = __atomic_exchange_n(&idle_context, 0, __ATOMIC_ACQUIRE);
    if (!context && os_call(SYS_io_setup, STOW_PIECES, &context) < 0) return 0;
    return context;
}

static void leave_context(aio_context_t context) {
    context = __atomic_exchange_n(&idle_context, context, __ATOMIC_ACQ_REL);
    if (context) os_call(SYS_io_destroy, context);
}

/* Runs in a forked child, which has none of its parent's queues. */
static void stow_queue_forget(void) { idle_context = 0; }
FORKED(stow_queue_forget);

static uint32_t stow_queue_fail(struct stow_queue *self, uint32_t refusal) {
    if (!self->refusal) self->refusal = refusal;
    return self->refusal;
}

uint32_t stow_queue_open(struct stow_queue *self, struct stow_file *file, uint64_t size) {
    *self = (struct stow_queue){.file = file, .flushed = file->used, .buffers = os_map(STOW_PIECE * STOW_PIECES)};
    if (!self->buffers) return stow_queue_fail(self, STOW_ADDRESS_SPACE);
    if (file->direct && size > 2 * STOW_PIECE) self->context = take_context();
    return STOW_DONE;
}

/* --- writes that the kernel has done --- */

static void note_written(struct stow_queue *self, const struct io_event *event) {
    const struct iocb *piece = &self->pieces[event->data];
    uint64_t done = event->res > 0 ? (uint64_t)event->res : 0;
    self->under_way &= ~(1u << event->data);
    if (done < piece->aio_nbytes && !self->refusal)
        stow_queue_fail(self, stow_file_write_at(self->file, (const char *)piece->aio_buf + done,
                                                 piece->aio_nbytes - done, (uint64_t)piece->aio_offset + done));
}

static void wait_for_some(struct stow_queue *self) {
    struct io_event events[STOW_PIECES];
    long count = os_call(SYS_io_getevents, self->context, 1, STOW_PIECES, events, NULL);
    for (long i = 0; i < count; i++) note_written(self, &events[i]);
    if (count >= 0 || count == -EINTR) return;
    self->under_way = 0; /* the program has destroyed the kernel's queue; the kernel then ends the queue's writes */
    self->context = 0;
    stow_queue_fail(self, STOW_DISK_ERROR);
}

static void stow_queue_wait_for(struct stow_queue *self, uint32_t pieces) {
    while (self->under_way & pieces) wait_for_some(self);
}

char *stow_queue_buffer(struct stow_queue *self) {
    stow_queue_wait_for(self, 1u << self->next);
    return self->refusal ? NULL : self->buffers + (uint64_t)self->next * STOW_PIECE;
}

/* --- writing pieces --- */

static bool stow_queue_submit(struct stow_queue *self, const void *pages, uint64_t length) {
    struct iocb *piece = &self->pieces[self->next];
    if (!self->context || !self->file->direct || !stow_file_is_still(self->file)) return false;
    *piece = (struct iocb){.aio_data = self->next,
                           .aio_lio_opcode = IOCB_CMD_PWRITE,
                           .aio_fildes = (uint32_t)self->file->fd,
                           .aio_buf = (uint64_t)pages,
                           .aio_nbytes = length,
                           .aio_offset = (int64_t)self->file->used};
    if (os_call(SYS_io_submit, self->context, 1, &piece) != 1) return false;
    self->under_way |= 1u << self->next;
    self->file->used += length;
    return true;
}

/* Writes without the queue. Pages that go through the page cache are flushed and dropped from it after some MiB. */
static uint32_t write_now(struct stow_queue *self, const void *pages, uint64_t length) {
    uint32_t refusal = stow_file_append(self->file, pages, length);
    if (refusal || self->file->direct || self->file->used - self->flushed < MOST_UNFLUSHED) return refusal;
    refusal = stow_file_flush(self->file, self->flushed);
    self->flushed = self->file->used;
    return refusal;
}

uint32_t stow_queue_write(struct stow_queue *self, const void *pages, uint64_t length) {
    stow_queue_wait_for(self, 1u << self->next);
    if (self->refusal) return self->refusal;
    if (!stow_queue_submit(self, pages, length)) stow_queue_fail(self, write_now(self, pages, length));
    self->next = (self->next + 1) % STOW_PIECES;
    return self->refusal;
}

uint32_t stow_queue_finish(struct stow_queue *self) {
    stow_queue_wait_for(self, self->under_way);
    return self->refusal ? self->refusal : stow_queue_fail(self, stow_file_flush(self->file, self->flushed));
}

void stow_queue_close(struct stow_queue *self) {
    stow_queue_wait_for(self, self->under_way);
    if (self->context) leave_context(self->context);
    if (self->buffers) os_unmap(self->buffers, STOW_PIECE * STOW_PIECES);
}
