/* cuda_scope.h — which of several libraries a caller means by a name: its own tree of dependencies goes first.
 * In: a name, and an address in the caller's code. Out: the function, or NULL. Any thread; waits for the loader's lock,
 * and takes as long as looking through all that is loaded does. */
#ifndef MEMSTOW_CUDA_SCOPE_H
#define MEMSTOW_CUDA_SCOPE_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* What the caller itself, a library that it depends on however indirectly, or one that was loaded together with it has
 * under this name: libraries that nobody else need see (RTLD_LOCAL). */
void *cuda_scope_linked(const char *name, uintptr_t caller);

/* That of the library that was loaded first of all that have it. *count (which may be NULL): how many do. */
void *cuda_scope_any(const char *name, uint32_t *count);

/* The object that holds an address, NULL: none; its file's name, without a folder. */
const struct link_map *cuda_scope_object(uintptr_t address);
const char *cuda_scope_file(const struct link_map *object);
/* Whether it is memstow itself. */
bool cuda_scope_is_ours(const void *address);

#pragma GCC visibility pop

#endif
