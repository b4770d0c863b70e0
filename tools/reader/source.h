/* source.h — where the bytes of a ledger or snapshot come from: a buffer, a file, a mapping of a live file, or
 * the memory of a process. In: offset and length. Out: a copy. It never reads past the size it was opened with. */
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

void source_buffer(struct source *source, const void *data, size_t size);
/* Takes the descriptor over. 0, or -errno (and the descriptor is closed). */
int source_file(struct source *source, int fd);
/* Makes a mapping of a file source, as its writer has one. 0, or -errno (and it is closed). */
int source_map(struct source *source);
void source_process(struct source *source, int mem_fd, uint64_t base, uint64_t size);
/* A mapped file may have grown: maps all of it. 0 or -errno. */
int source_refresh(struct source *source);
void source_close(struct source *source);

/* 0, or -1 when the bytes are not there. From a mapping, aligned 64-bit words are read whole and in order. */
int source_read(const struct source *source, uint64_t offset, void *to, size_t length);

#endif
