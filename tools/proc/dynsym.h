/* dynsym.h — the address of a few exported symbols of a running process's program or library.
 * In: a pid, how the file's name begins, names. Out: addresses in the process. It trusts nothing that the file says. */
#ifndef MEMSTOW_DYNSYM_H
#define MEMSTOW_DYNSYM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* True when one mapped file, whose last name begins with one of `files` (NULL-terminated), has all the symbols. */
_Bool dynsym_find(pid_t pid, const char *const *files, const char *const *names, uint64_t *addresses, size_t count);

#endif
