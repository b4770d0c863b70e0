/* source.h — the bytes of a ledger or snapshot: from a buffer, a file, a mapping of a live file, or the memory of a
 * process.
 * In: offset and length. Out: a copy. It never reads past the size of the source. */
#ifndef MEMSTOW_SOURCE_H
#define MEMSTOW_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum source_kind { SOURCE_BUFFER, SOURCE_FILE, SOURCE_MAPPED, SOURCE_PROCESS };

struct source {
    enum source_kind kind;
    int fd;              /* FILE, MAPPED: owned; PROCESS: /proc/PID/mem, owned */
    const uint8_t *data; /* BUFFER, MAPPED */
    uint64_t base;       /* PROCESS: address of the first byte */
    uint64_t size;
};

/* For tests: bytes in memory, which must outlive the source. */
void source_buffer(struct source *source, const void *data, size_t size);
/* Makes a source of an open file, and takes over the descriptor. Returns 0, or -errno after closing the descriptor. */
int source_file(struct source *source, int fd);
/* Maps the file of a source that source_file opened. Use it for a ledger that is being written, because source_read
 * reads words whole and in order from a mapping, but not from a file. Returns 0, or -errno after closing the source. If
 * the file is cut short while it is mapped, this process ends with a message. */
int source_map(struct source *source);
/* Called in the signal handler before the message of source_map. NULL: nothing is called. */
extern void (*source_before_end)(void);
void source_process(struct source *source, int mem_fd, uint64_t base, uint64_t size);
/* Maps the whole file again if its size has changed; does nothing if the source is not mapped. Returns 0 or -errno. */
int source_refresh(struct source *source);
void source_close(struct source *source);

/* Copies `length` bytes. Returns 0, or -1 if the source does not have the bytes. From a mapping, aligned 64-bit words
 * are read whole and in order. */
int source_read(const struct source *source, uint64_t offset, void *to, size_t length);
/* A pointer to the bytes, for a caller that reads many of them and wants no copy; the process may change them
 * meanwhile. NULL: the source has no such bytes in memory, and the caller must use source_read. */
const void *source_bytes(const struct source *source, uint64_t offset, size_t length);

#endif
