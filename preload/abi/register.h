/* register.h — shared by the entry points of memstow.h that open owners.
 * In: the id of an owner that was opened, or -errno. Out: the value that the entry point returns to the program.
 * register_opened must not be called in a hook. */
#ifndef MEMSTOW_REGISTER_H
#define MEMSTOW_REGISTER_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Returns `id`. Entry points call it with the result of each call that may open an owner. The process's first owner
 * starts the control socket. */
int64_t register_opened(int64_t id);

#pragma GCC visibility pop

#endif
