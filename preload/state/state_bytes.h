/* state_bytes.h — the bytes of one value of a loop: in memory or in a file, never changed once they are there. In:
 * pieces of the program's memory, or a file of an earlier process. Out: a mapping by which the ledger knows them, and
 * private views for readers. Never in a hook. Nothing of the program's is called, and its writes reach a view only.
 *
 * Memory is a file in memory (memfd): a private mapping of it is a view that costs no copy, and keeps it alive. Results
 * are 0 or -errno. */
#ifndef MEMSTOW_STATE_BYTES_H
#define MEMSTOW_STATE_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "include/memstow.h"
#include "preload/stow/stow_file.h"

#pragma GCC visibility push(hidden)

/* The bytes begin with it; the table of parts follows, and then each part at a multiple of STATE_ALIGNMENT, a large one
 * on a page: a disk may take it from where it is. */
struct state_header {
    char magic[8];
    uint32_t version, parts;
    uint64_t length; /* of all, in whole pages */
    char type[MEMSTOW_STATE_TYPE];
    struct memstow_state_part part[]; /* start: from the header on */
};
enum { STATE_VERSION = 1, STATE_ALIGNMENT = 64, STATE_LARGE = 256 * 1024 };

struct state_bytes {
    struct stow_file file; /* in memory or on a disk */
    uint32_t place;        /* enum memstow_state_place */
    char *base;            /* a mapping of all of it, to read from, whose address stays; NULL: there are none */
    uint64_t length;
    uint64_t checksum; /* only of bytes below a prefix */
};

/* What is to be copied: the header, and where each of its parts is now. */
struct state_source {
    const struct state_header *header;
    const struct memstow_state_part *parts;
};

/* Writes the table's starts, and the length, into a header whose parts have their lengths. False: too long. */
bool state_header_lay_out(struct state_header *header);

int state_bytes_in_memory(struct state_bytes *self, const struct state_source *source);
/* In a file without a name, in `directory`, or where memory is stowed to (NULL). */
int state_bytes_in_file(struct state_bytes *self, const struct state_source *source, const char *directory);
/* The same in an open folder, where it can be given a name later; with a checksum. */
int state_bytes_in_folder(struct state_bytes *self, const struct state_source *source, int folder);
/* From a descriptor of such a file, which is closed when this fails. -EUCLEAN: it is not as it was written. */
int state_bytes_from_file(struct state_bytes *self, int fd, uint64_t length, uint64_t checksum);
void state_bytes_drop(struct state_bytes *self);

/* A private, writable mapping of all of it. NULL: there is no room, or the program has closed the descriptor. */
void *state_bytes_view(const struct state_bytes *self);

/* The same bytes at another place: a copy, which then takes the place of the bytes, whose base stays where it is. */
int state_bytes_copy(struct state_bytes *copy, const struct state_bytes *from, uint32_t place);
bool state_bytes_replace(struct state_bytes *self, struct state_bytes *copy);

#pragma GCC visibility pop

#endif
