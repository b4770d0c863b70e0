/* stow_host.h — moves one chunk of private memory out to a file, and puts a private mapping of the file in its place.
 * In: whole pages in one mapping, readable and writable. Out: STOW_DONE, and the next use reads the pages from the
 * file; or a refusal, and the pages are where they were. No write of another thread is lost, with one exception:
 * STOW_BY_COMPARING loses a write between the comparison and the mapping. The caller makes sure that nobody unmaps the
 * range meanwhile, and that this thread runs no signal handler. */
#ifndef MEMSTOW_STOW_HOST_H
#define MEMSTOW_STOW_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stow/stow.h"
#include "preload/stow/stow_file.h"

#pragma GCC visibility push(hidden)

enum { STOW_CHUNK = 64 << 20 };

struct stow_host {
    enum stow_method method;
    int uffd, pagemap;
    char *buffer; /* for STOW_BY_MOVE and STOW_BY_COMPARING: holds the present chunk */
    uint64_t buffer_length;
    uint64_t chunk; /* the most bytes that move at once */
    struct stow_file file;
};

/* Chooses the first method from `best` on that is possible, and maps the buffer if the method needs it. Methods that
 * need an idle owner are possible only if `idle` is true. The caller opens the file. Returns enum stow_refusal; after a
 * refusal stow_host_end need not be called. */
uint32_t stow_host_begin(struct stow_host *self, enum stow_method best, bool idle);
void stow_host_end(struct stow_host *self);

/* Moves at most `chunk` bytes. *done: how many bytes have moved; it may be above 0 even after a refusal. */
uint32_t stow_host_out(struct stow_host *self, uint64_t start, uint64_t length, uint64_t *done);

#pragma GCC visibility pop

#endif
