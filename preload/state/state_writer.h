/* state_writer.h — writes the bytes of a value to a file, piece by piece.
 * In: the parts of a value in the program's memory, or a mapping of a whole value. Out: the file, with its bytes on the
 * disk; a checksum. It needs no memory but the buffers of the queue, and does not crash where the program's memory
 * cannot be read. Results are 0 or -errno. */
#ifndef MEMSTOW_STATE_WRITER_H
#define MEMSTOW_STATE_WRITER_H

#include "preload/state/state_bytes.h"
#include "preload/state/state_sum.h"

#pragma GCC visibility push(hidden)

/* Writes a whole value. Afterwards the file has the length of the value. `sum`: gets the checksum; NULL: no checksum is
 * wanted. */
int state_writer_fill(struct stow_file *file, const struct state_source *source, struct state_sum *sum);
/* Writes whole pages to the file. The pages must not change meanwhile. */
int state_writer_copy(struct stow_file *file, const char *pages, uint64_t length);

int state_writer_error(uint32_t refusal); /* the -errno for a refusal (STOW_…) */

#pragma GCC visibility pop

#endif
