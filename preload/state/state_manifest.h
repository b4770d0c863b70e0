/* state_manifest.h — writes a loop's manifest, and gives names to files of values, when the values change.
 * In: a loop with a prefix, locked. Out: a manifest on the disk that names the values of one generation, and a file
 * with a name for each of these values. A manifest never names a file that is not there. No hook may call it. */
#ifndef MEMSTOW_STATE_MANIFEST_H
#define MEMSTOW_STATE_MANIFEST_H

#include <stdint.h>

#include "preload/state/state_loop.h"

#pragma GCC visibility push(hidden)

/* Commits the next generation: gives names to its files, and then writes the manifest. Does nothing without a prefix. 0
 * or -errno. */
int state_manifest_commit(struct state_loop *loop);
/* Writes the manifest of a generation. If that is the next generation, the manifest has the values that were put, too.
 * The value with the id `gone` (may be NULL) is left out. 0 or -errno. */
int state_manifest_write(struct state_loop *loop, uint64_t generation, const char *gone);
/* Removes the files of the values in `list`, which the manifest does not name any more. */
void state_manifest_unlink(const struct state_loop *loop, const struct state_value *list);

#pragma GCC visibility pop

#endif
