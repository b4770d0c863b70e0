/* dropped.c — dropped FILE: writes 8 MiB of the pattern of seed 5 to FILE, and maps FILE. Mappings of files are
 * dropped, never copied. */
#include "moving.h"

enum { LENGTH = 8 * MIB };

static char *map_file(const char *path, int protection, int flags) {
    int fd = open(path, O_RDONLY);
    char *p = mmap(NULL, LENGTH, protection, flags, fd, 0);
    MUST(p != MAP_FAILED);
    close(fd);
    MUST(holds(p, LENGTH, 5));
    return p;
}

/* Bytes of the file in the page cache. */
static size_t cached(const char *path) {
    unsigned char there[LENGTH / PAGE];
    size_t count = 0;
    int fd = open(path, O_RDONLY);
    void *p = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED, fd, 0);
    MUST(p != MAP_FAILED && mincore(p, LENGTH, there) == 0);
    for (size_t i = 0; i < LENGTH / PAGE; i++) count += there[i] & 1;
    munmap(p, LENGTH);
    close(fd);
    return count * PAGE;
}

static void dropped(const char *path, int protection, int flags) {
    char *p = map_file(path, protection, flags);
    size_t before = rss();
    uint32_t why;
    int64_t moved = out(p, LENGTH, NULL, &why);
    if (moved < LENGTH / 100 * 95) fprintf(stderr, "%ld: %s\n", (long)moved, stow_text_(why));
    MUST(moved >= LENGTH / 100 * 95 && moved <= LENGTH);
    MUST(before - rss() >= LENGTH / 100 * 90);
    MUST(cached(path) <= LENGTH / 10);
    MUST_BE(stow_bytes_(0), 0); /* it is the file's own memory, not a stow file's */
    MUST(holds(p, LENGTH, 5));
    munmap(p, LENGTH);
}

static void own_pages_stay(const char *path) {
    char *p = map_file(path, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    fill(p + MIB, MIB, 6);
    MUST(out(p, LENGTH, NULL, NULL) >= 6 * MIB);
    MUST_BE(pages_in(p, LENGTH, true), MIB / PAGE);
    MUST(holds(p, MIB, 5) && holds(p + MIB, MIB, 6));
    munmap(p, LENGTH);
}

static void shared_writable_is_refused(const char *path) {
    int fd = open(path, O_RDWR);
    char *p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    uint32_t why;
    MUST(p != MAP_FAILED && holds(p, LENGTH, 5));
    MUST_BE(out(p, LENGTH, NULL, &why), -ENOTSUP);
    MUST_BE(why, STOW_NOT_PRIVATE);
}

static void in_memory_is_refused(void) {
    int fd = memfd_create("model", 0);
    MUST(ftruncate(fd, LENGTH) == 0);
    char *p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    fill(p, LENGTH, 5);
    munmap(p, LENGTH);
    p = mmap(NULL, LENGTH, PROT_READ, MAP_PRIVATE, fd, 0);
    MUST(p != MAP_FAILED && holds(p, LENGTH, 5));
    uint32_t why;
    MUST_BE(out(p, LENGTH, NULL, &why), -ENOTSUP);
    MUST_BE(why, STOW_NAMELESS_FILE);
}

int main(int argc, char **argv) {
    MUST(argc == 2);
    find_engine();
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    char *p = map_memory(LENGTH);
    fill(p, LENGTH, 5);
    MUST(write(fd, p, LENGTH) == LENGTH && fsync(fd) == 0);
    close(fd);
    munmap(p, LENGTH);
    dropped(argv[1], PROT_READ, MAP_PRIVATE);
    dropped(argv[1], PROT_READ, MAP_SHARED);
    dropped(argv[1], PROT_READ | PROT_WRITE, MAP_PRIVATE);
    own_pages_stay(argv[1]);
    shared_writable_is_refused(argv[1]);
    in_memory_is_refused();
    return 0;
}
