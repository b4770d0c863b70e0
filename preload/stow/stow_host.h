/* stow_host.h — moves one chunk of private memory out to a file, and puts the file's private mapping in its place. In:
 * whole pages in one mapping, readable and writable. Out: STOW_DONE, and the next use reads them back from the file; or
 * why not, and the pages are where they were. No write of another thread is lost, except as `STOW_BY_COMPARING` says.
 * The caller ensures that nobody unmaps the range meanwhile, and that this thread runs no signal handler. */
#ifndef MEMSTOW_STOW_HOST_H
#define MEMSTOW_STOW_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stow/stow.h"
#include "preload/stow/stow_file.h"

#pragma GCC visibility push(hidden)

enum { STOW_CHUNK = 64 << 20 };

struct stow_host {
    enum stow_way way;
    int uffd, pagemap;
    char *room; /* STOW_BY_MOVE, STOW_BY_COMPARING: where a chunk stays meanwhile */
    uint64_t room_length;
    uint64_t chunk; /* the most at once */
    struct stow_file file;
};

/* Finds the best way, and memory for it. `idle` allows the ways that need it. The caller opens the file. */
uint32_t host_begin(struct stow_host *self, enum stow_way best, bool idle);
void host_end(struct stow_host *self);

/* At most `chunk` bytes. *done: how much has left, which may be a part where it is refused, too. */
uint32_t host_out(struct stow_host *self, uint64_t start, uint64_t length, uint64_t *done);

#pragma GCC visibility pop

#endif
