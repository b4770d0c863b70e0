/* stow_file.h — the file that moved memory lies in: one for each move, without a name, never written again.
 * In: a directory and how many bytes it must take. Out: a descriptor for as long as the move takes; afterwards the
 * mappings keep the file. Results are of enum stow_refusal. */
#ifndef MEMSTOW_STOW_FILE_H
#define MEMSTOW_STOW_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#pragma GCC visibility push(hidden)

struct stow_file {
    int fd;
    dev_t device;
    ino_t inode;
    bool direct;   /* past the page cache */
    uint64_t used; /* bytes that are mapped somewhere, or about to be: what follows may be written */
};

/* In `directory`, or, when that is NULL, in the first of the usual ones that will do. */
uint32_t stow_file_open(struct stow_file *self, const char *directory, uint64_t size);

/* Writes whole pages behind what is used, and waits until they are on the disk and not in memory. */
uint32_t stow_file_write(struct stow_file *self, const void *from, uint64_t length);

/* The same in two steps, for small pieces: append uses the bytes, flush writes what lies from `from` on. */
uint32_t stow_file_append(struct stow_file *self, const void *pages, uint64_t length);
uint32_t stow_file_flush(struct stow_file *self, uint64_t from);

/* Makes a file of a descriptor that was opened for it. If this fails, it closes the descriptor. */
uint32_t stow_file_take(struct stow_file *self, int fd, bool direct, uint64_t size);
/* Whether the descriptor is still that file's: the program may have closed it. */
bool stow_file_is_still(const struct stow_file *self);

/* A private mapping of what was or will be written there; NULL when the kernel refuses. */
void *stow_file_map(const struct stow_file *self, uint64_t length);

void stow_file_close(struct stow_file *self);

/* The target's directory as far as it can be told before: STOW_DONE, or why it will not do. */
uint32_t stow_file_fits(int fd);

#pragma GCC visibility pop

#endif
