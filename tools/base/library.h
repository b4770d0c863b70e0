/* library.h — where libmemstow.so and libmemstow_cupti.so are. */
#ifndef MEMSTOW_LIBRARY_H
#define MEMSTOW_LIBRARY_H

#include <stddef.h>

/* 0 and an absolute path; or -1 and why. */
int library_find(char *path, size_t size, char *error, size_t error_size);

/* The one that listens to CUPTI, beside the library at `beside`: the same. */
int library_find_cupti(const char *beside, char *path, size_t size, char *error, size_t error_size);

#endif
