/* grow.c — makes the ledger grow in every way: threads, large blocks, page-aligned blocks, mappings, modules. First it
 * makes the bad conditions that its arguments name:
 *
 * fsize=N, as=N, nofile (no descriptor is left), rmdir=DIR (removes DIR with its contents), fill=FILE (writes until the
 * disk is full)
 *
 * Prints how many allocations and starts of threads failed. Ends with status 7. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { THREADS = 150, LARGE = 3000, PAGES = 3000, MAPS = 1500 };

static volatile int go;
static long failed;

static void *check(void *p) {
    if (!p || p == MAP_FAILED) __atomic_fetch_add(&failed, 1, __ATOMIC_RELAXED);
    return p == MAP_FAILED ? NULL : p;
}

static void *allocate(void *argument) {
    char *p = check(malloc(100));
    void *q = check(calloc(3, 50));
    while (!go) usleep(1000);
    free(p);
    free(q);
    return argument;
}

static void set_limit(int what, const char *value) {
    struct rlimit limit = {strtoul(value, NULL, 10), strtoul(value, NULL, 10)};
    if (setrlimit(what, &limit)) exit(90);
}

static void use_up_descriptors(void) {
    struct rlimit limit = {64, 64};
    setrlimit(RLIMIT_NOFILE, &limit);
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
}

static void remove_directory(const char *path) {
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));) unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
    if (rmdir(path)) exit(91);
}

static void fill(const char *path) {
    static char buffer[65536];
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    for (size_t n = sizeof buffer; n; n /= 2)
        while (write(fd, buffer, n) > 0)
            ;
    close(fd);
}

static void prepare(const char *trouble) {
    const char *value = strchr(trouble, '=') ? strchr(trouble, '=') + 1 : "";
    if (!strncmp(trouble, "fsize", 5))
        set_limit(RLIMIT_FSIZE, value);
    else if (!strncmp(trouble, "as", 2))
        set_limit(RLIMIT_AS, value);
    else if (!strcmp(trouble, "nofile"))
        use_up_descriptors();
    else if (!strncmp(trouble, "rmdir", 5))
        remove_directory(value);
    else if (!strncmp(trouble, "fill", 4))
        fill(value);
}

int main(int count, char **arguments) {
    static void *large[LARGE], *pages[PAGES], *maps[MAPS];
    static pthread_t threads[THREADS];
    pthread_attr_t small;
    for (int i = 1; i < count; i++) prepare(arguments[i]);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], &small, allocate, NULL)) failed++, threads[i] = 0;
    go = 1;
    for (int i = 0; i < THREADS; i++)
        if (threads[i]) pthread_join(threads[i], NULL);
    for (int i = 0; i < LARGE; i++) large[i] = check(malloc(70000));
    for (int i = 0; i < PAGES; i++) pages[i] = check(aligned_alloc(4096, 4096));
    for (int i = 0; i < MAPS; i++)
        maps[i] =
            check(mmap(NULL, 8192, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (int i = 0; i < LARGE; i += 2) free(large[i]);
    for (int i = 0; i < PAGES; i += 2) free(pages[i]);
    for (int i = 0; i < MAPS; i += 2) munmap(maps[i], 8192);
    errno = 0;
    printf("failed %ld, writes %s\n", failed, write(2, "", 0) ? strerror(errno) : "fine");
    return 7;
}
