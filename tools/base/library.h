/* library.h — finds libmemstow.so and libmemstow_cupti.so.
 * In: where this command lies. Out: a path that the loader takes from LD_PRELOAD, or a reason. */
#ifndef MEMSTOW_LIBRARY_H
#define MEMSTOW_LIBRARY_H

#include <stddef.h>

/* Returns 0 and an absolute path, or -1 with the reason. */
int library_find(char *path, size_t size, char *error, size_t error_size);

/* As library_find, for the library that listens to CUPTI, which lies beside the library at `beside`. */
int library_find_cupti(const char *beside, char *path, size_t size, char *error, size_t error_size);

#endif
