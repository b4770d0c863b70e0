/* source.c — see source.h. */
#include "tools/reader/source.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void source_buffer(struct source *source, const void *data, size_t size) {
    *source = (struct source){.kind = SOURCE_BUFFER, .fd = -1, .data = data, .size = size};
}

static int regular_size(int fd, uint64_t *size) {
    struct stat st;
    if (fstat(fd, &st) < 0) return -errno;
    if (!S_ISREG(st.st_mode)) return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
    *size = (uint64_t)st.st_size;
    return 0;
}

int source_file(struct source *source, int fd) {
    *source = (struct source){.kind = SOURCE_FILE, .fd = fd};
    int error = regular_size(fd, &source->size);
    if (error) source_close(source);
    return error;
}

void (*source_before_end)(void);

/* Handles SIGBUS. The signal means that the file of a running process was truncated. The truncation also kills the
 * running process. */
static void source_shrunk(int signal) {
    static const char text[] = "memstow: the ledger shrank while it was read\n";
    if (source_before_end) source_before_end();
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    (void)signal;
    _exit(3);
}

int source_refresh(struct source *source) {
    uint64_t size;
    if (source->kind != SOURCE_MAPPED) return 0;
    int error = regular_size(source->fd, &size);
    if (error || size == source->size) return error;
    if (source->data) munmap((void *)source->data, source->size);
    source->data = NULL;
    source->size = 0;
    void *data = size ? mmap(NULL, size, PROT_READ, MAP_SHARED, source->fd, 0) : NULL;
    if (data == MAP_FAILED) return -errno;
    source->data = data;
    source->size = size;
    return 0;
}

int source_map(struct source *source) {
    if (source->kind != SOURCE_FILE) return 0;
    source->kind = SOURCE_MAPPED;
    source->size = 0;
    int error = source_refresh(source);
    if (error)
        source_close(source);
    else
        signal(SIGBUS, source_shrunk);
    return error;
}

void source_process(struct source *source, int mem_fd, uint64_t base, uint64_t size) {
    *source = (struct source){.kind = SOURCE_PROCESS, .fd = mem_fd, .base = base, .size = size};
}

void source_close(struct source *source) {
    if (source->kind == SOURCE_MAPPED && source->data) munmap((void *)source->data, source->size);
    if (source->fd >= 0) close(source->fd);
    *source = (struct source){.kind = SOURCE_BUFFER, .fd = -1};
}

static int read_at(int fd, uint64_t offset, uint8_t *to, size_t length) {
    while (length) {
        ssize_t got = pread(fd, to, length, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return -1;
        to += got;
        offset += (uint64_t)got;
        length -= (size_t)got;
    }
    return 0;
}

static void copy_words(const uint8_t *from, uint8_t *to, size_t length) {
    size_t done = 0;
    if ((uintptr_t)from % 8 == 0)
        for (; done + 8 <= length; done += 8) {
            uint64_t word = __atomic_load_n((const uint64_t *)(const void *)(from + done), __ATOMIC_ACQUIRE);
            memcpy(to + done, &word, 8);
        }
    memcpy(to + done, from + done, length - done);
}

int source_read(const struct source *source, uint64_t offset, void *to, size_t length) {
    if (offset > source->size || length > source->size - offset) return -1;
    switch (source->kind) {
    case SOURCE_BUFFER:
        if (length) memcpy(to, source->data + offset, length);
        return 0;
    case SOURCE_MAPPED:
        copy_words(source->data + offset, to, length);
        return 0;
    case SOURCE_FILE:
    case SOURCE_PROCESS:
        return read_at(source->fd, source->base + offset, to, length);
    }
    return -1;
}

const void *source_bytes(const struct source *source, uint64_t offset, size_t length) {
    bool in_memory = source->kind == SOURCE_BUFFER || source->kind == SOURCE_MAPPED;
    bool there = offset <= source->size && length <= source->size - offset;
    return in_memory && there ? source->data + offset : NULL;
}
