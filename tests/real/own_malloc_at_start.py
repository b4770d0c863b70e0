#!/usr/bin/env python3
# needs: cc
"""A program's malloc maps its first memory under a lock, and a library allocates before everything else, even before
memstow. The program starts nevertheless. No hook calls the program's allocator: neither at the beginning of a ledger,
nor in a forked child, nor at the first event of a thread."""
import support

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 16 << 20 };
static int held;
static __thread int inside;
static char *heap;
static size_t used;

static void take(void) {
    if (inside++) { /* it would wait for itself */
        write(2, "called within itself\n", 21);
        _exit(9);
    }
    while (__atomic_exchange_n(&held, 1, __ATOMIC_ACQUIRE)) ;
}
static void leave(void) {
    __atomic_store_n(&held, 0, __ATOMIC_RELEASE);
    inside--;
}
static void *map(void) { return mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

void *malloc(size_t size) {
    take();
    if (!heap) heap = map();
    char *p = heap + ((used + 31) & ~(size_t)15); /* 16 bytes in front of each block: its size */
    *(size_t *)(p - 16) = size;
    used = (size_t)(p - heap) + size;
    leave();
    return p;
}
void free(void *p) {
    take();
    leave();
    (void)p;
}
void *calloc(size_t n, size_t each) { return memset(malloc(n * each), 0, n * each); }
void *realloc(void *p, size_t size) {
    void *q = malloc(size);
    if (p) memcpy(q, p, size < ((size_t *)p)[-2] ? size : ((size_t *)p)[-2]);
    return q;
}

static void *map_again(void *argument) { /* the thread's first event is within the allocator */
    take();
    argument = map();
    leave();
    return argument;
}

int main(void) {
    pthread_t thread;
    void *mapped;
    int status = 0;
    pid_t child = fork();
    if (!child) {
        map_again(NULL);
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || status) return 8;
    if (pthread_create(&thread, NULL, map_again, NULL) || pthread_join(thread, &mapped)) return 7;
    printf("%d\n", mapped != MAP_FAILED);
    return 0;
}
"""
LIBRARY = r"""
#include <pthread.h>
#include <stdlib.h>
static void *volatile kept;
extern char **environ;
__attribute__((constructor)) static void begin(int count, char **arguments, char **environment) {
    pthread_key_t key;
    environ = environment; /* libc's own constructors may not have been called yet; memstow waits for this */
    for (int i = 0; i < KEYS; i++) pthread_key_create(&key, NULL);
    kept = malloc(100);
}
"""
(support.HERE / "early.c").write_text(LIBRARY)
(support.HERE / "program.c").write_text(PROGRAM)
WAYS = {
    "before others": [],
    "before memstow": ["-Wl,-z,initfirst"],
    "before memstow, with many keys": ["-Wl,-z,initfirst", "-DKEYS=100"], # glibc allocates memory for the later keys
}
for way, flags in WAYS.items():
    support.run("cc", "-O1", "-fno-builtin", "-shared", "-fPIC", "-DKEYS=0", *flags, "early.c", "-o", "libearly.so")
    support.run("cc", "-O1", "-fno-builtin", "-rdynamic", "-pthread", "program.c", "-o", "program",
                "-Wl,--no-as-needed", "./libearly.so")
    plain = support.run("./program", timeout=20)
    for options in ([], ["--stacks=none"], ["--allocator=mimalloc"]):
        tracked = support.track("./program", options=options, timeout=20)
        assert (tracked.stdout, tracked.stderr) == (plain.stdout, plain.stderr) == ("1\n", ""), (way, options, tracked)
        report = support.report()
        assert any("defines malloc itself" in note for note in report["process"]["notes"]), (way, report["process"])
        assert report["totals"]["mapped"]["live_bytes"] == 32 << 20, (way, options, report["totals"])
        (child,) = support.HERE.glob("out.mst.*")
        assert support.report(child)["totals"]["mapped"]["live_bytes"] == 16 << 20, (way, options)
        child.unlink()
