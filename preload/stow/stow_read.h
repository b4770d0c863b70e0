/* stow_read.h — reads a part of a file in order, on threads that run ahead of the thread that takes the bytes (the
 * taker). The pieces of the buffer are used in turn, so the disk works while the taker works. The reading goes on from
 * one chunk of a move to the next.
 * In: a descriptor, an offset and a length, a buffer. Out: the next bytes, or the reason why no more come. The caller
 * keeps descriptor and buffer until stow_read_end. There is one taker. */
#ifndef MEMSTOW_STOW_READ_H
#define MEMSTOW_STOW_READ_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* A piece is large, so that a disk works on several requests at once. Two pieces are read at the same time. */
enum { READ_PIECE = 4 << 20, READ_PIECES_MOST = 16, READ_THREADS = 2 };

struct stow_read {
    int fd;
    uint64_t offset, length; /* of the part; pieces are counted from its start */
    char *buffer;
    uint64_t pieces;                  /* how many pieces fit into `buffer` */
    uint64_t next;                    /* the next piece to read */
    uint64_t taken;                   /* how many bytes were taken; their part of the buffer is used again */
    uint64_t ready[READ_PIECES_MOST]; /* by part of the buffer: 1 + the number of its piece */
    uint64_t bad;                     /* the first piece that could not be read; UINT64_MAX: none so far */
    uint32_t refusal;                 /* why the taker gets no more bytes */
    uint32_t serial;                  /* changes with every step; all threads wait on it */
    bool stop;
    struct stow_thread *threads[READ_THREADS];
};

/* Begins to read `length` bytes of a file. `buffer` holds `pieces` times READ_PIECE bytes. Offset and length are whole
 * pages, because fd may be open for direct reading. */
void stow_read_begin(struct stow_read *self, int fd, uint64_t offset, uint64_t length, char *buffer, uint64_t pieces);
/* Waits until there are bytes to take. Returns how many bytes lie at *at, or 0 if there are no more bytes. After 0,
 * self->refusal says why (STOW_DONE: the part of the file has ended). */
uint64_t stow_read_wait(struct stow_read *self, char **at);
/* Takes `bytes` bytes. Their part of the buffer may then be used again. */
void stow_read_take(struct stow_read *self, uint64_t bytes);
/* After this, descriptor and buffer are not used any more. */
void stow_read_end(struct stow_read *self);

#pragma GCC visibility pop

#endif
