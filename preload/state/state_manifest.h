/* state_manifest.h — writes a loop's manifest and names its files when its values change.
 * In: a loop with a prefix, locked. Out: a manifest on the disk that names the values of one generation, and files with
 * names for these. A manifest never names a file that is not there. No hook may call it. */
#ifndef MEMSTOW_STATE_MANIFEST_H
#define MEMSTOW_STATE_MANIFEST_H

#include <stdint.h>

#include "preload/state/state_loop.h"

#pragma GCC visibility push(hidden)

/* The next generation: its files get names, then the manifest names them. Does nothing without a prefix. 0 or -errno.
 */
int state_manifest_commit(struct state_loop *loop);
/* Writes the manifest of the loop after a commit. `gone` (may be NULL) is left out. 0 or -errno. */
int state_manifest_write(struct state_loop *loop, uint64_t generation, const char *gone);
/* Removes the files of the values that the manifest no longer names. */
void state_manifest_unlink(const struct state_loop *loop, const struct state_value *list);

#pragma GCC visibility pop

#endif
