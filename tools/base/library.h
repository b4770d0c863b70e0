/* library.h — finds this command, libmemstow.so and libmemstow_cupti.so.
 * In: the variable MEMSTOW_LIBRARY, or the path of this command, which the kernel tells even without /proc. Out: a path
 * that can stand in LD_PRELOAD, or the reason why there is none. */
#ifndef MEMSTOW_LIBRARY_H
#define MEMSTOW_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the absolute path of this command. If it is not known, returns false and an empty path. */
bool library_command(char *path, size_t size);

/* Finds libmemstow.so. Returns 0 and an absolute path, or -1 with the reason. */
int library_find(char *path, size_t size, char *error, size_t error_size);

/* As library_find, for libmemstow_cupti.so, which must lie beside the library at `beside`. */
int library_find_cupti(const char *beside, char *path, size_t size, char *error, size_t error_size);

#endif
