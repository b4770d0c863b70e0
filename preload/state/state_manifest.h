/* state_manifest.h — writes the manifest of a loop (the file that lists its valid values), and gives names to the files
 * of values.
 * In: a loop with a prefix, locked. Out: a manifest on the disk that lists the values of one generation, and a file
 * with a name for each of these values. A manifest never lists a file that is not there. No hook may call these
 * functions. */
#ifndef MEMSTOW_STATE_MANIFEST_H
#define MEMSTOW_STATE_MANIFEST_H

#include <stdint.h>

#include "preload/state/state_loop.h"

#pragma GCC visibility push(hidden)

/* Commits the next generation: gives names to the files of its values, and then writes the manifest. Does nothing if
 * the loop has no prefix. 0 or -errno. */
int state_manifest_commit(struct state_loop *loop);
/* Writes a manifest with the committed values. If `generation` is the next one, the manifest also has the values that
 * were put; each replaces the committed value with the same id. The value with the id `gone` is left out; `gone` may be
 * NULL. 0 or -errno. */
int state_manifest_write(struct state_loop *loop, uint64_t generation, const char *gone);
/* Removes the files of the values in `list`. The manifest must not list these values. */
void state_manifest_unlink(const struct state_loop *loop, const struct state_value *list);

#pragma GCC visibility pop

#endif
