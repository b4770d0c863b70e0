/* stow_file.h — files without names that hold moved memory or values of the store. Each move of host memory has one
 * file. Each block of device memory that goes to a file, and each value that does, has a file of its own.
 * In: a directory, and how many bytes the file must hold. Out: a descriptor for as long as the move takes; afterwards
 * the mappings keep the file. Results are enum stow_refusal. */
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
    bool direct;   /* writes bypass the page cache */
    uint64_t used; /* bytes that are mapped, or about to be; the next write goes behind them */
};

/* Returns STOW_DONE if files in an open directory can hold moved memory, otherwise the reason why they cannot. The
 * type of the file system decides. In an overlay, stow_file_open may still refuse. */
uint32_t stow_file_judge(int fd);

/* Opens a file in `directory`, and reserves `size` bytes if the file system can. If `directory` is NULL, the file is in
 * MEMSTOW_STOW_DIR. If that is not set either, the file is in the first usual directory that can be used. */
uint32_t stow_file_open(struct stow_file *self, const char *directory, uint64_t size);

/* Writes whole pages behind the used bytes. Waits until they are on the disk, and drops them from the page cache. */
uint32_t stow_file_write(struct stow_file *self, const void *from, uint64_t length);

/* Two steps to write small pieces. stow_file_append writes them behind the used bytes, and counts them as used.
 * stow_file_flush brings everything from offset `from` on to the disk. */
uint32_t stow_file_append(struct stow_file *self, const void *pages, uint64_t length);
/* Writes at a position. The bytes reach the disk with the next flush. */
uint32_t stow_file_write_at(struct stow_file *self, const void *from, uint64_t length, uint64_t at);
uint32_t stow_file_flush(struct stow_file *self, uint64_t from);

/* Makes a stow file of a file that the caller has opened. `fd` is the result of the opening: a descriptor, or -errno.
 * On failure the descriptor is closed. */
uint32_t stow_file_take(struct stow_file *self, int fd, bool direct, uint64_t size);
/* Whether the descriptor still belongs to this file. If the program has closed the descriptor, it does not. */
bool stow_file_is_still(const struct stow_file *self);

/* Makes a private mapping of the `length` bytes of the file that follow the used bytes. They need not be written yet.
 * NULL: the kernel refuses, or the program has closed the descriptor. */
void *stow_file_map(const struct stow_file *self, uint64_t length);

void stow_file_close(struct stow_file *self);

#pragma GCC visibility pop

#endif
