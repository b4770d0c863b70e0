/* dynsym.h — finds exported symbols of a running process's program or library.
 * In: a pid, the beginning of the file's name, names. Out: addresses in the process. It trusts nothing that the file
 * says. */
#ifndef MEMSTOW_DYNSYM_H
#define MEMSTOW_DYNSYM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* True if one mapped file has all the symbols. Its last name must begin with one of `files` (NULL-terminated). */
_Bool dynsym_find(pid_t pid, const char *const *files, const char *const *names, uint64_t *addresses, size_t count);

#endif
