/* state_writer.c — see state_writer.h. Most parts of a value are not aligned as a disk needs it, so they go
 * through the queue's buffers. The kernel copies them into the buffers, so that memory that cannot be read gives an
 * error and no signal. Large aligned parts without a checksum are written directly. */
#include "preload/state/state_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "preload/shared/os.h"
#include "preload/stow/stow.h"
#include "preload/stow/stow_queue.h"

/* Numbers for statx, which tells the alignment that a file needs for writes past the page cache (Linux 6.1). */
enum { STATX_DIRECT = 0x2000, DIRECT_MEMORY = 0x98, STATX_BYTES = 256 };

struct writer {
    struct stow_queue queue;
    struct stow_file *file;
    char *buffer; /* the buffer of the queue that is being filled; NULL: no buffer is being filled */
    uint64_t filled;
    struct state_sum *sum;
    uint64_t alignment; /* what direct writes from the program's memory need; 0: direct writes are impossible */
};

int state_writer_error(uint32_t refusal) {
    switch (refusal) {
    case STOW_DONE:
        return 0;
    case STOW_DISK_FULL:
        return -ENOSPC;
    case STOW_FILE_LIMIT:
        return -EFBIG;
    case STOW_NO_DESCRIPTOR:
        return -EMFILE;
    case STOW_ADDRESS_SPACE:
        return -ENOMEM;
    case STOW_DISK_ERROR:
        return -EIO;
    default:
        return -ENOTSUP;
    }
}

/* --- writing through the queue's buffers --- */

static int writer_take_buffer(struct writer *self) {
    if (!self->buffer) self->buffer = stow_queue_buffer(&self->queue);
    return self->buffer ? 0 : state_writer_error(self->queue.refusal);
}

static int writer_write_buffer(struct writer *self) {
    uint64_t pages = os_round_up(self->filled, OS_PAGE);
    char *buffer = self->buffer;
    if (!pages) return 0;
    memset(buffer + self->filled, 0, pages - self->filled);
    if (self->sum) state_sum_add(self->sum, buffer, pages);
    self->filled = 0;
    self->buffer = NULL;
    return state_writer_error(stow_queue_write(&self->queue, buffer, pages));
}

static int writer_write(struct writer *self, uint64_t from, uint64_t length) {
    int error = 0;
    for (uint64_t done = 0; done < length && !error;) {
        uint64_t left = STOW_PIECE - self->filled, part = length - done < left ? length - done : left;
        error = writer_take_buffer(self);
        if (error) return error;
        if (!os_peek(self->buffer + self->filled, (const void *)(from + done), part)) return -EFAULT;
        self->filled += part;
        done += part;
        if (self->filled == STOW_PIECE) error = writer_write_buffer(self);
    }
    return error;
}

/* --- writing directly from the program's memory --- */

static int writer_write_pages(struct writer *self, const char *pages, uint64_t length) {
    uint32_t refusal = 0;
    for (uint64_t done = 0; done < length && !refusal; done += STOW_PIECE)
        refusal = stow_queue_write(&self->queue, pages + done, length - done < STOW_PIECE ? length - done : STOW_PIECE);
    return state_writer_error(refusal);
}

static bool writer_is_direct(const struct writer *self, uint64_t from, uint64_t length) {
    return length >= STATE_LARGE && !self->sum && self->alignment && from % self->alignment == 0;
}

/* Writes a part, directly from the program's memory if the disk can take it. A part with a checksum is never written
 * directly: the program might change the memory between the sum and the write. */
static int writer_write_part(struct writer *self, uint64_t from, uint64_t length) {
    uint64_t pages = length & ~(uint64_t)(OS_PAGE - 1);
    if (!writer_is_direct(self, from, length)) return writer_write(self, from, length);
    int error = writer_write_buffer(self);
    if (!error) error = writer_write_pages(self, (const char *)from, pages);
    return error ? error : writer_write(self, from + pages, length - pages);
}

/* Returns -EFAULT if the program's memory could not be read, else `error`. The kernel reports unreadable memory and a
 * disk error in the same way. To tell them apart, each page that was to be written directly is read. */
static int why_not_written(const struct writer *self, const struct state_source *source, int error) {
    const struct state_header *header = source->header;
    char byte;
    for (uint32_t i = 0; i < header->parts; i++) {
        uint64_t from = source->parts[i].start, length = header->part[i].length;
        if (!writer_is_direct(self, from, length)) continue;
        for (uint64_t done = 0; done < length; done += OS_PAGE)
            if (!os_peek(&byte, (const void *)(from + done), 1)) return -EFAULT;
    }
    return error;
}

/* --- writing whole values --- */

static uint64_t alignment_in(const struct stow_file *file) {
    uint32_t status[STATX_BYTES / sizeof(uint32_t)] = {0};
    if (!file->direct || os_call(SYS_statx, file->fd, "", AT_EMPTY_PATH, STATX_DIRECT, status) < 0) return 0;
    return status[0] & STATX_DIRECT ? status[DIRECT_MEMORY / sizeof *status] : 0;
}

static int writer_write_gap(struct writer *self, uint64_t until) {
    static const char zeros[OS_PAGE];
    return writer_write(self, (uint64_t)zeros, until - (self->file->used + self->filled));
}

static int writer_write_all(struct writer *self, const struct state_source *source) {
    const struct state_header *header = source->header;
    int error = writer_write(self, (uint64_t)header, state_header_end(header));
    for (uint32_t i = 0; i < header->parts && !error; i++) {
        error = writer_write_gap(self, header->part[i].start);
        if (!error) error = writer_write_part(self, source->parts[i].start, header->part[i].length);
    }
    if (!error) error = writer_write_buffer(self);
    /* The length is flushed together with the bytes. */
    if (!error) error = (int)os_call(SYS_ftruncate, self->file->fd, header->length);
    if (!error) error = state_writer_error(stow_queue_finish(&self->queue));
    return error == -EIO ? why_not_written(self, source, error) : error;
}

int state_writer_fill(struct stow_file *file, const struct state_source *source, struct state_sum *sum) {
    struct writer writer = {.file = file, .sum = sum, .alignment = alignment_in(file)};
    int error = state_writer_error(stow_queue_open(&writer.queue, file, source->header->length));
    if (!error) error = writer_write_all(&writer, source);
    stow_queue_close(&writer.queue);
    return error;
}

int state_writer_copy(struct stow_file *file, const char *pages, uint64_t length) {
    struct writer writer = {.file = file};
    int error = state_writer_error(stow_queue_open(&writer.queue, file, length));
    if (!error) error = writer_write_pages(&writer, pages, length);
    if (!error) error = state_writer_error(stow_queue_finish(&writer.queue));
    stow_queue_close(&writer.queue);
    return error;
}
