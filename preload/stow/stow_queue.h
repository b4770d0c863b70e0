/* stow_queue.h — writes pages to a file piece by piece, while the caller makes the next piece ready.
 * In: whole pages in order, from the queue's buffers or from memory of the caller's. Out: the bytes at the end of the
 * file. Results are enum stow_refusal; after one failure every call fails. stow_queue_close waits for all writes, so
 * that afterwards the kernel uses no memory of the queue. If the file is small or goes through the page cache, or the
 * kernel refuses a queue, stow_queue_write itself waits until the piece is written. */
#ifndef MEMSTOW_STOW_QUEUE_H
#define MEMSTOW_STOW_QUEUE_H

#include <linux/aio_abi.h>
#include <stdint.h>

#include "preload/stow/stow_file.h"

#pragma GCC visibility push(hidden)

enum { STOW_PIECE = 512 * 1024, STOW_PIECES = 8 };

struct stow_queue {
    struct stow_file *file;
    char *buffers;         /* one buffer for each of the STOW_PIECES pieces */
    aio_context_t context; /* 0: each write is waited for */
    uint32_t next;         /* the piece that is written next */
    uint32_t under_way;    /* a bit for each piece that the kernel is writing */
    uint32_t refusal;      /* the first failure */
    uint64_t flushed;      /* the file is flushed up to this offset */
    struct iocb pieces[STOW_PIECES];
};

/* Makes a queue for a file. `size`: how many bytes will be written, approximately. */
uint32_t stow_queue_open(struct stow_queue *self, struct stow_file *file, uint64_t size);
/* Waits until the buffer of the next piece is free, and returns the buffer. NULL: a write has failed. */
char *stow_queue_buffer(struct stow_queue *self);
/* Writes at most STOW_PIECE bytes: from the buffer that stow_queue_buffer returned, or from other memory that does not
 * change until stow_queue_finish. */
uint32_t stow_queue_write(struct stow_queue *self, const void *pages, uint64_t length);
/* Waits until everything is on the disk. */
uint32_t stow_queue_finish(struct stow_queue *self);
void stow_queue_close(struct stow_queue *self);

#pragma GCC visibility pop

#endif
