/* moving.h — shared by the programs of these tests. They run under libmemstow_moves.so, which is libmemstow.so with the
 * stow engine's functions exported. */
#ifndef MOVING_H
#define MOVING_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/stow/stow.h"

enum { PAGE = 4096, MIB = 1 << 20 };

static int64_t (*stow_out_)(struct stow_piece *, uint32_t, const struct stow_options *);
static int64_t (*stow_in_)(struct stow_piece *, uint32_t, const struct stow_options *);
static bool (*is_stowed_)(const void *);
static uint64_t (*stow_bytes_)(uint32_t);
static struct stow_progress (*stow_progress_)(void);
static int (*stow_lock_)(const void *, uint64_t);
static void (*stow_unlock_)(const void *, uint64_t);
static const char *(*stow_text_)(uint32_t);
static void (*stow_change_owner_)(uint32_t, uint32_t);

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);                  \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

#define MUST_BE(value, wanted)                                                                                         \
    do {                                                                                                               \
        long long is_ = (long long)(value), should_ = (long long)(wanted);                                             \
        if (is_ != should_) {                                                                                          \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #value, is_, should_);                \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

__attribute__((format(printf, 1, 2), noreturn, unused)) static void skip(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    puts("");
    fflush(stdout);
    _exit(77);
}

#define FIND(to, name) MUST((to = (__typeof__(to))dlsym(RTLD_DEFAULT, "memstow_test_" #name)))

__attribute__((unused)) static void find_engine(void) {
    FIND(stow_out_, out);
    FIND(stow_in_, in);
    FIND(is_stowed_, is_stowed);
    FIND(stow_bytes_, bytes);
    FIND(stow_progress_, progress);
    FIND(stow_lock_, lock);
    FIND(stow_unlock_, unlock);
    FIND(stow_text_, text);
    FIND(stow_change_owner_, change_owner);
}

__attribute__((unused)) static char *map_memory(size_t length) {
    char *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(p != MAP_FAILED);
    return p;
}

/* A pattern that differs from page to page and from seed to seed. */
__attribute__((unused)) static uint64_t word_at(size_t i, uint64_t seed) {
    return (i + 1) * 0x9E3779B97F4A7C15u ^ seed * 0xC2B2AE3D27D4EB4Fu;
}
__attribute__((unused)) static void fill(void *p, size_t length, uint64_t seed) {
    for (size_t i = 0; i < length / 8; i++) ((uint64_t *)p)[i] = word_at(i, seed);
}
__attribute__((unused)) static bool holds(const void *p, size_t length, uint64_t seed) {
    for (size_t i = 0; i < length / 8; i++)
        if (((const uint64_t *)p)[i] != word_at(i, seed)) return false;
    return true;
}

/* Moves one piece of memory out. If the move is refused and `why` is not NULL, *why is the reason. */
__attribute__((unused)) static int64_t out(void *p, size_t length, const struct stow_options *options, uint32_t *why) {
    struct stow_piece piece = {.start = (uint64_t)p, .length = length, .owner = 1};
    int64_t moved = stow_out_(&piece, 1, options);
    if (why) *why = piece.refusal;
    return moved;
}
__attribute__((unused)) static int64_t in(void *p, size_t length, const struct stow_options *options) {
    struct stow_piece piece = {.start = (uint64_t)p, .length = length, .owner = 1};
    return stow_in_(&piece, 1, options);
}

/* The figure of one line of a file of /proc, in bytes. The file has it in kB. */
__attribute__((unused)) static size_t proc_bytes(const char *file, const char *key) {
    char line[512];
    size_t kib = 0;
    FILE *f = fopen(file, "r");
    MUST(f);
    while (fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key))) sscanf(line + strlen(key), ": %zu", &kib);
    fclose(f);
    return kib * 1024;
}
__attribute__((unused)) static size_t rss(void) { return proc_bytes("/proc/self/status", "VmRSS"); }

/* Counts the pages of a range that are in memory, as pagemap says. If `own` is true, pages that a file backs do not
 * count. */
__attribute__((unused)) static size_t pages_in(const void *p, size_t length, bool own) {
    size_t count = 0;
    int fd = open("/proc/self/pagemap", O_RDONLY);
    MUST(fd >= 0);
    for (size_t i = 0; i < length / PAGE; i++) {
        uint64_t entry = 0;
        MUST(pread(fd, &entry, 8, (off_t)(((uintptr_t)p / PAGE + i) * 8)) == 8);
        count += (entry >> 63) && !(own && entry >> 61 & 1);
    }
    close(fd);
    return count;
}

/* Whether the mapping with that address is of a file. */
__attribute__((unused)) static bool is_file_backed(const void *p) {
    char line[512], path[256];
    bool file = false;
    FILE *f = fopen("/proc/self/maps", "r");
    MUST(f);
    while (fgets(line, sizeof line, f)) {
        unsigned long start, end;
        path[0] = 0;
        sscanf(line, "%lx-%lx %*s %*s %*s %*s %255s", &start, &end, path);
        if ((uintptr_t)p >= start && (uintptr_t)p < end) file = path[0] == '/';
    }
    fclose(f);
    return file;
}

/* False: the kernel has no userfaultfd for this process. */
__attribute__((unused)) static bool has_userfaultfd(void) {
    long fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) fd = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
    if (fd >= 0) close((int)fd);
    return fd >= 0;
}

/* Runs the case that the command line names. */
struct test_case {
    const char *name;
    void (*run)(void);
};
__attribute__((unused)) static int run_case(const struct test_case *cases, int count, const char *name) {
    find_engine();
    for (int i = 0; i < count; i++)
        if (!name || !strcmp(cases[i].name, name)) {
            cases[i].run();
            if (name) return 0;
        }
    return name ? 2 : 0;
}

#endif
