/* cuda_scope.h — if several libraries define a name, finds the definition that a caller means: libraries that the
 * caller depends on come first.
 * In: a name, and an address in the caller's code. Out: the function, or NULL. Any thread may call. It waits for the
 * loader's lock, and takes the time of a look through all loaded objects. */
#ifndef MEMSTOW_CUDA_SCOPE_H
#define MEMSTOW_CUDA_SCOPE_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Returns the definition in the caller itself, in a library that it depends on (at any depth), or in a library that was
 * loaded together with it. Such a library may be hidden from other code (RTLD_LOCAL). */
void *cuda_scope_linked(const char *name, uintptr_t caller);

/* Returns a definition of the name. If several libraries have one, returns that of the library that was loaded first.
 * Sets *count (may be NULL) to the number of libraries that have one. */
void *cuda_scope_any(const char *name, uint32_t *count);

/* cuda_scope_object returns the object that contains an address, or NULL if no object does. cuda_scope_file returns the
 * name of an object's file, without the folder. */
const struct link_map *cuda_scope_object(uintptr_t address);
const char *cuda_scope_file(const struct link_map *object);
/* Whether an address is in memstow itself. */
bool cuda_scope_is_ours(const void *address);

#pragma GCC visibility pop

#endif
