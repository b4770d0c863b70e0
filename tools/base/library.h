/* library.h — finds this command, libmemstow.so and libmemstow_cupti.so.
 * In: the kernel's word for where this command lies; it needs no /proc. Out: a path that the loader takes from
 * LD_PRELOAD, or a reason. */
#ifndef MEMSTOW_LIBRARY_H
#define MEMSTOW_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* The absolute path of this command. False, and "": it cannot be told. */
bool library_command(char *path, size_t size);

/* Returns 0 and an absolute path, or -1 with the reason. */
int library_find(char *path, size_t size, char *error, size_t error_size);

/* As library_find, for the library that listens to CUPTI, which lies beside the library at `beside`. */
int library_find_cupti(const char *beside, char *path, size_t size, char *error, size_t error_size);

#endif
