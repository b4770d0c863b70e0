/* ledger_file.h — the file of the ledger by its path: looks at the file that is there already, and makes a new one in
 * its place.
 * In: a path and a header. Out: a descriptor, for as long as the caller needs it. It replaces only snapshots and
 * ledgers of this user, and no ledger that a running process writes. */
#ifndef MEMSTOW_LEDGER_FILE_H
#define MEMSTOW_LEDGER_FILE_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Sets the path. False: it is too long. */
bool ledger_file_name(const char *path);
/* The path; "" if none was set. */
const char *ledger_file_path(void);

/* Makes a new file at the path, with a header of SNAP_HEADER_SIZE bytes. If an old ledger or snapshot is
 * at the path, the new file replaces it, with two exceptions. A ledger that this process wrote before an exec is
 * renamed, and *exec_generation becomes greater than that ledger's. If a running process has its ledger at the path,
 * that file stays, and the new file gets another path. Returns the descriptor or -errno. */
int ledger_file_create(const void *head, uint32_t *exec_generation);
/* Whether another copy of this library keeps a ledger of this process at the path. */
bool ledger_file_is_elsewhere(void);
/* Remembers that `fd` is the file of the ledger. False: the file cannot be used, because a write to preallocated space
 * may fail. */
bool ledger_file_settle(int fd);
/* Opens the file that was settled. Returns -errno also if the path leads to another file by now. */
int ledger_file_reopen(void);
/* Removes the file at the path. */
void ledger_file_remove(void);
/* Forgets the path and the file. A forked child calls it, because the path and the file are the parent's. */
void ledger_file_forget(void);

/* Whether the file at `path` is a ledger that this process wrote before an exec. */
bool ledger_file_made_by_us(const char *path);

/* Whether RLIMIT_FSIZE allows a file of `size` bytes. At a write beyond this limit the kernel sends SIGXFSZ, which
 * kills. */
bool ledger_file_size_allowed(uint64_t size);

#pragma GCC visibility pop

#endif
