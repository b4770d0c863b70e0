/* stow_back.h — brings a range whose content is in a stow file (a file that holds moved memory) back completely, into
 * memory that no file backs.
 * In: a range in one private file mapping of ours. Out: STOW_DONE, or a refusal. After a refusal, the part that is
 * not back yet is unchanged. Writes to the range since it was stowed are kept. Writes during the move are kept, too,
 * unless the caller says with `mine` that there are none. Without userfaultfd the caller must set `mine`. The caller
 * makes sure that nobody unmaps the range, and that this thread runs no signal handler. */
#ifndef MEMSTOW_STOW_BACK_H
#define MEMSTOW_STOW_BACK_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stow/stow_read.h"

#pragma GCC visibility push(hidden)

/* BACK_BUFFER: how many bytes are read ahead at most. */
enum { BACK_CHUNK = 64 << 20, BACK_BUFFER = 16 << 20, BACK_PIPES = 4, BACK_FILES = 8, BACK_LISTENERS = 2 };

struct back_pipe {
    int ends[2];
    uint64_t capacity;
};

struct back_file {
    int fd;
    uint64_t device, inode; /* as in the list of mappings */
};

struct stow_back {
    bool mine; /* nobody else uses the range during the move */
    bool own_files;
    bool held_unseen; /* set by the caller after stow_back_begin: a device may hold any page that was written to */
    int uffd, pagemap;
    struct back_pipe pipes[BACK_PIPES];
    uint32_t pipe_count;
    int stop; /* an eventfd: a write to it ends the readers of events */
    uint64_t pipes_capacity;
    uint64_t until, expected; /* until: see stow_back_expect; expected: the kernel was asked to read up to here */
    struct stow_read reading; /* if `mine`: reads ahead into `buffer`, and goes on from one chunk to the next */
    bool reads;
    struct back_file files[BACK_FILES]; /* the files behind the latest ranges */
    uint32_t file_count;
    char *buffer, *buffer_mapped; /* BACK_BUFFER bytes, and the mapping that contains them */
    char *text;
    struct stow_thread *listeners[BACK_LISTENERS];
};

/* Makes the descriptors and buffers that a move needs. Returns enum stow_refusal; after a refusal stow_back_end need
 * not be called. `own_files`: the calling thread has a descriptor table of its own. If so, stow_back_end leaves the
 * descriptors of files open, because they are closed when the thread ends. */
uint32_t stow_back_begin(struct stow_back *self, bool mine, bool own_files);
void stow_back_end(struct stow_back *self);

/* Brings back at most BACK_CHUNK bytes. *done: how many bytes are back; it may be above 0 even after a refusal. */
uint32_t stow_back_in(struct stow_back *self, uint64_t start, uint64_t length, uint64_t *done);

/* Tells that ranges up to `until` come back next, so that the kernel may begin to read them. */
void stow_back_expect(struct stow_back *self, uint64_t until);

#pragma GCC visibility pop

#endif
