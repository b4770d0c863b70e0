/* stow_read.h — reads a stretch of a file in order, on threads beside the one that takes the bytes, into buffers that
 * are used again and again. The disk goes on while the taker works, and from one chunk of a move to the next. In: a
 * descriptor, where to begin and how much, and buffers. Out: the next bytes, and why no more come. Until read_end the
 * caller keeps descriptor and buffers; one thread of the caller's takes. */
#ifndef MEMSTOW_STOW_READ_H
#define MEMSTOW_STOW_READ_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* A piece is so large that a disk works on more than one request; two pieces are read at once. */
enum { READ_PIECE = 4 << 20, READ_PIECES_MOST = 16, READ_THREADS = 2 };

struct stow_read {
    int fd;
    uint64_t offset, length; /* of the stretch in the file; pieces count from there */
    char *room;
    uint64_t pieces;                  /* that it has room for */
    uint64_t next;                    /* piece that nobody has begun */
    uint64_t taken;                   /* bytes: their room is used again */
    uint64_t ready[READ_PIECES_MOST]; /* which piece lies there, counted from 1 */
    uint64_t bad;                     /* the first piece that could not be read */
    uint32_t refusal;                 /* of who takes */
    uint32_t serial;                  /* of changes: what all wait at */
    bool stop;
    struct stow_thread *threads[READ_THREADS];
};

/* Room for `pieces` times READ_PIECE bytes. Offset and length are whole pages: fd may be open for direct reading. */
void read_begin(struct stow_read *self, int fd, uint64_t offset, uint64_t length, char *room, uint64_t pieces);
/* Waits until there are bytes that were not taken yet. Returns how many lie at *at; 0: self->refusal says why. */
uint64_t read_wait(struct stow_read *self, char **at);
/* As many of those, whose place may be read into from now on. */
void read_take(struct stow_read *self, uint64_t bytes);
/* Descriptor and room are touched no more. */
void read_end(struct stow_read *self);

#pragma GCC visibility pop

#endif
