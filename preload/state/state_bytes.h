/* state_bytes.h — the bytes of one value of a loop, in memory or in a file. Once written, the bytes never change.
 * In: pieces of the program's memory, or a file of an earlier process. Out: a mapping whose address the ledger has, and
 * private views for readers. If the program writes to a view, the value does not change. No hook may call these
 * functions. They call nothing of the program.
 *
 * Bytes in memory lie in a file in memory (memfd). A private mapping of that file is a view: it needs no copy, and
 * keeps the file alive. Results are 0 or -errno. */
#ifndef MEMSTOW_STATE_BYTES_H
#define MEMSTOW_STATE_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "include/memstow.h"
#include "preload/stow/stow_file.h"

#pragma GCC visibility push(hidden)

/* The bytes begin with this header. Then comes the table of parts, then each part at a multiple of STATE_ALIGNMENT. A
 * large part begins on a page, so that a disk can take it directly. */
struct state_header {
    char magic[8];
    uint32_t version, parts;
    uint64_t length; /* bytes of header and all parts, in whole pages */
    char type[MEMSTOW_STATE_TYPE];
    struct memstow_state_part part[]; /* start: in bytes from the start of the header */
};
static inline uint64_t state_header_end(const struct state_header *header) {
    return sizeof *header + (uint64_t)header->parts * sizeof *header->part;
}
enum { STATE_VERSION = 2, STATE_ALIGNMENT = 64, STATE_LARGE = 256 * 1024 };

struct state_bytes {
    struct stow_file file; /* in memory or on a disk */
    uint32_t place;        /* enum memstow_state_place */
    char *base;            /* a read-only mapping of all bytes, which never moves; NULL: there are no bytes */
    uint64_t length;
    uint64_t checksum; /* only if the loop has a prefix */
};

/* The bytes to copy: the header, and the present address of each part. */
struct state_source {
    const struct state_header *header;
    const struct memstow_state_part *parts;
};

/* Sets the start of each part and the total length. The lengths of the parts must be set before. Returns false if the
 * value is too long. */
bool state_header_lay_out(struct state_header *header);

/* Copies the bytes into memory. */
int state_bytes_in_memory(struct state_bytes *self, const struct state_source *source);
/* Writes the bytes to a file without a name, in `directory`; NULL: in the directory for stowed memory. */
int state_bytes_in_file(struct state_bytes *self, const struct state_source *source, const char *directory);
/* As state_bytes_in_file, but in an open folder, so that the file can get a name later. It also computes the
 * checksum. */
int state_bytes_in_folder(struct state_bytes *self, const struct state_source *source, int folder);
/* Takes the bytes of a value from a file. The descriptor belongs to `self` afterwards; on failure it is closed.
 * -EUCLEAN: the content has changed. */
int state_bytes_from_file(struct state_bytes *self, int fd, uint64_t length, uint64_t checksum);
void state_bytes_drop(struct state_bytes *self);

/* Returns a private, writable mapping of all bytes. Returns NULL if there is no memory, or if the program has closed
 * the file's descriptor. */
void *state_bytes_view(const struct state_bytes *self);
/* Whether the file still has all bytes. False: somebody has made it shorter, or has closed its descriptor. */
bool state_bytes_are_whole(const struct state_bytes *self);

/* Makes a copy in memory or in a file, as `place` says. */
int state_bytes_copy(struct state_bytes *copy, const struct state_bytes *from, uint32_t place);
/* Swaps the files of `self` and `copy`. The address in self->base stays the same. False: nothing has changed. The
 * caller must drop the copy afterwards, whatever this function returned. This function leaves the drop to the caller,
 * because it must be fast, and a drop frees a file, which takes long. */
bool state_bytes_exchange(struct state_bytes *self, struct state_bytes *copy);

#pragma GCC visibility pop

#endif
