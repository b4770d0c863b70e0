/* dynsym.h — finds exported symbols of a running process's program or library.
 * In: a pid, the beginnings of names of files, names of symbols. Out: addresses in the process. It trusts nothing that
 * the file says. */
#ifndef MEMSTOW_DYNSYM_H
#define MEMSTOW_DYNSYM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Finds the addresses of `count` names, all in one mapped file. The file's name without its folder must begin with one
 * of `files` (NULL-terminated). False: no such file has all names. */
_Bool dynsym_find(pid_t pid, const char *const *files, const char *const *names, uint64_t *addresses, size_t count);

#endif
