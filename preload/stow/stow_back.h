/* stow_back.h — brings a range that a stow file backs back whole, into memory that no file backs. In: a range in one
 * private file mapping of ours. Out: STOW_DONE, or why not, and the range is as it was. Writes since it was stowed
 * stay, and so do writes meanwhile, except where the caller says that there are none (`mine`); without userfaultfd it
 * needs such a caller. The caller ensures that nobody unmaps the range, and that this thread runs no handler. */
#ifndef MEMSTOW_STOW_BACK_H
#define MEMSTOW_STOW_BACK_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stow/stow_read.h"

#pragma GCC visibility push(hidden)

/* BACK_ROOM: what is read ahead at most. */
enum { BACK_CHUNK = 64 << 20, BACK_ROOM = 16 << 20, BACK_PIPES = 4, BACK_FILES = 8, BACK_LISTENERS = 2 };

struct back_pipe {
    int ends[2];
    uint64_t room;
};

struct back_file {
    int fd;
    uint64_t device, inode; /* as the list of mappings has them */
};

struct stow_back {
    bool mine; /* nobody else uses what comes back */
    bool own_files;
    bool held_unseen; /* the caller's, after back_begin: a device may hold any page that was written to */
    int uffd, pagemap;
    struct back_pipe pipes[BACK_PIPES];
    uint32_t pipe_count;
    int stop;
    uint64_t pipes_room;
    uint64_t until, expected; /* see back_expect; the kernel was asked to read up to there */
    struct stow_read reading; /* of `mine`: what comes next, into `room`; from chunk to chunk */
    bool reads;
    struct back_file files[BACK_FILES]; /* those of the last ranges */
    uint32_t file_count;
    char *room, *room_mapped; /* of BACK_ROOM bytes, and what was mapped for it */
    char *text;
    struct stow_thread *listeners[BACK_LISTENERS];
};

/* `own_files`: the calling thread has descriptors of its own, which are closed with it. back_end closes none then. */
uint32_t back_begin(struct stow_back *self, bool mine, bool own_files);
void back_end(struct stow_back *self);

/* At most BACK_CHUNK bytes. *done: how much is back; also after a refusal a part may be. */
uint32_t back_in(struct stow_back *self, uint64_t start, uint64_t length, uint64_t *done);

/* Ranges up to there come next: the kernel may begin to read them. */
void back_expect(struct stow_back *self, uint64_t until);

#pragma GCC visibility pop

#endif
