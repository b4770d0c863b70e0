/* misuse.c — misuse CASE: a program that frees a block twice, or writes in front of it. Its output and its end are
 * those of the allocator. */
#include "../prog/abi.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACE __attribute__((noinline, noclone))
#define STAY __asm__ volatile("" ::: "memory")

static const char *which;
static int is(const char *name) { return strcmp(which, name) == 0; }

PLACE static char *make(size_t size) {
    char *p = malloc(size);
    STAY;
    return p;
}
PLACE static void drop(void *p) {
    free(p);
    STAY;
}
PLACE static void drop_again(void *p) {
    free(p);
    STAY;
}
PLACE static void *resize(void *p, size_t size) {
    p = realloc(p, size);
    STAY;
    return p;
}

static void *drop_in_thread(void *p) {
    drop(p);
    return NULL;
}

static void twice(char *p) {
    drop(p);
    drop_again(p);
}

/* Seven freed blocks of a size fill a thread's cache. The next freed block of this size goes elsewhere. */
static void fill_cache(size_t size) {
    char *blocks[7];
    for (int i = 0; i < 7; i++) blocks[i] = make(size);
    for (int i = 0; i < 7; i++) free(blocks[i]);
}

static void freed_twice(void) {
    static char *kept;
    if (is("tiny")) twice(make(3));
    if (is("nothing")) twice(make(0));
    if (is("small")) twice(make(100));
    if (is("medium")) twice(make(5000));
    if (is("calloc")) twice(calloc(5, 20));
    if (is("aligned")) twice(memalign(256, 100));
    if (is("page")) twice(valloc(5000));
    if (is("between")) { /* p is merged with the next block, which is freed, too; `kept` lies behind them */
        char *p = make(3000), *q = make(3000);
        kept = make(3000);
        drop(p);
        free(q);
        drop_again(p);
    }
    if (is("binned")) { /* alone, between blocks in use */
        char *p = make(3000);
        kept = make(3000);
        twice(p);
    }
    if (is("joined")) { /* merged with the freed block before it */
        char *p = make(3000), *q = make(3000);
        kept = make(3000);
        free(p);
        twice(q);
    }
    if (is("fast")) {
        char *p = make(100);
        fill_cache(100);
        twice(p);
    }
    if (is("large")) { /* in the heap; a mapping of its own would be gone */
        mallopt(M_MMAP_THRESHOLD, 1 << 24);
        char *p = make(300000);
        kept = make(100);
        twice(p);
    }
    if (is("mapped")) twice(make(300000)); /* a mapping of its own, which is gone */
    if (is("mapped calloc")) twice(calloc(5, 60000));
    if (is("mapped, aligned a little")) twice(memalign(64, 300000));
    if (is("mapped, aligned")) twice(memalign(512, 300000));
    if (is("mapped, on a page")) twice(valloc(300000));
    if (is("mapped, another there")) { /* other memory is there now */
        char *p = make(300000);
        drop(p);
        kept =
            mmap(p - (uintptr_t)p % 4096, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        drop_again(p);
    }
    if (is("mapped, resized")) { /* the mapping moves */
        char *p = make(300000);
        char *q = resize(p, 30000000);
        if (q != p) drop_again(p);
    }
    if (is("mapped, a model's")) { /* with memstow, a mapping of the model's own */
        uint32_t model = (uint32_t)CALL(0, memstow_owner_open, MEMSTOW_MODEL, "model", "", 1, 0);
        CALL(0, memstow_scope_enter, model);
        char *p = make(300000);
        CALL(0, memstow_scope_leave, model);
        twice(p);
    }
    if (is("resized")) { /* the old place of a block that moved */
        char *p = make(100);
        kept = make(100);
        char *q = resize(p, 4000);
        if (q != p) drop_again(p);
    }
}

static void in_threads(void) {
    pthread_t thread;
    if (is("thread")) { /* allocated here, freed there, and here again */
        char *p = make(5000);
        pthread_create(&thread, NULL, drop_in_thread, p);
        pthread_join(thread, NULL);
        drop_again(p);
    }
    if (is("child")) { /* freed here, and again in a forked child */
        char *p = make(100);
        int status = 0;
        drop(p);
        pid_t child = fork();
        if (!child) drop_again(p);
        if (!child) _exit(0);
        waitpid(child, &status, 0);
        if (WIFSIGNALED(status)) raise(WTERMSIG(status));
    }
    if (is("mapped child")) {
        char *p = make(300000);
        int status = 0;
        drop(p);
        pid_t child = fork();
        if (!child) drop_again(p);
        waitpid(child, &status, 0);
        if (WIFSIGNALED(status)) raise(WTERMSIG(status));
    }
}

/* No misuse: small blocks lie at the address of a freed large block. */
static void reused(size_t place) {
    char *p = make(100000);
    for (int i = 0; i < 300 && (uintptr_t)p % 4096 != place; i++) {
        free(p);
        make(16); /* moves the end of the heap */
        p = make(100000);
    }
    if ((uintptr_t)p % 4096 != place) puts("not to be had there");
    drop(p);
    for (int i = 0; i < 2; i++) {
        char *q = make(1200); /* too large for caches */
        if (q != p) puts("elsewhere");
        drop(q);
    }
    char *q = make(1200);
    drop(resize(q, 2400));
}

static void used_again(void) {
    if (is("reused")) {
        reused(0);
        reused(0x10);
        reused(0x40);
    }
    if (is("mapped again")) {
        char *p = make(300000);
        drop(p);
        resize(p, 100000);
    }
    if (is("resized again")) {
        char *p = make(100);
        drop(p);
        resize(p, 100000);
    }
    if (is("mapped again, aligned")) {
        char *p = memalign(64, 300000);
        drop(p);
        resize(p, 100000);
    }
    if (is("aligned, resized again")) { /* small enough for a thread's cache */
        free(make(1));                  /* makes the cache */
        char *p = memalign(64, 1000);
        drop(p);
        drop(resize(p, 1000));
    }
    if (is("asked its size")) {
        char *p = make(100);
        drop(p);
        if (malloc_usable_size(p) >= 100 && malloc_usable_size(p) < 200) puts("as large as it was");
    }
}

/* malloc_usable_size gives the right size even though the size in front of the block is overwritten. */
static void asked_when_spoilt(void) {
    char *p = make(300000);
    memset(p - 16, 'A', 16);
    size_t usable = malloc_usable_size(p);
    if (usable >= 300000 && usable < 310000) puts("as large as it is");
}

enum { LARGE = 300000 };

PLACE static char *made_large(const char *how) {
    char *p = !strcmp(how, "calloc")  ? calloc(10, LARGE / 10)
              : !strcmp(how, "grown") ? resize(make(100), LARGE)
              : !strcmp(how, "moved") ? resize(make(LARGE / 2), LARGE)
              : *how < 'a'            ? memalign((size_t)atoi(how), LARGE)
                                      : make(LARGE);
    STAY;
    return p;
}

/* The case HOW-N-COUNT-END: changes COUNT bytes, of which the first is N bytes in front of a large block. HOW says how
 * the block is made, END what is done with it after the change. */
static void written_over_large(void) {
    char how[16], end[16];
    int n, count;
    pthread_t thread;
    if (sscanf(which, "%15[^-]-%d-%d-%15s", how, &n, &count, end) != 4) abort();
    if (!strcmp(how, "heap")) mallopt(M_MMAP_THRESHOLD, 1 << 24);
    char *p = made_large(how);
    for (int i = 0; i < count; i++) p[i - n] ^= 'A';
    if (!strcmp(end, "resize")) p = resize(p, 2 * LARGE);
    if (!strcmp(end, "shrink")) p = resize(p, 100);
    if (!strcmp(end, "thread")) {
        pthread_create(&thread, NULL, drop_in_thread, p);
        pthread_join(thread, NULL);
    } else if (strcmp(end, "keep")) {
        drop(p);
    }
}

static void written_over(void) {
    if (is("asked spoilt")) return asked_when_spoilt();
    char *p = make(is("spoilt large") ? 300000 : 100);
    memset(p, 1, 100);
    if (is("one byte")) p[-1] ^= 'A';
    if (is("eight bytes")) memset(p - 8, 'A', 8);
    if (is("sixteen bytes")) memset(p - 16, 'A', 16);
    if (is("resized spoilt")) p[-1] ^= 'A';
    if (is("end of text")) p[-1] = 0;
    if (is("int of zero")) memset(p - 4, 0, 4);
    if (is("spoilt large")) p[-16] ^= 'A';
    if (is("before")) memset(p - 16, 'A', 4);
    if (is("before too")) memset(p - 12, 'A', 4);
    if (is("all before")) memset(p - 16, 'A', 8);
    if (is("resized before")) memset(p - 16, 'A', 4);
    if (is("resized spoilt") || is("resized before")) p = resize(p, 5000);
    if (!is("spoilt large")) drop(p);
}

static void change_byte(int n, int change, const char *end) {
    char *p = strcmp(end, "aligned") ? make(20) : memalign(128, 1045), *behind = make(20);
    p[-n] ^= (char)change;
    if (!strcmp(end, "resize")) p = resize(p, 3000);
    drop(p);
    drop(behind);
}

/* int-SIZE-VALUE: writes a small number where glibc has the lower half of the size. */
static void int_written(void) {
    int size, value;
    if (sscanf(which, "int-%d-%d", &size, &value) != 2) return;
    int *p = (void *)make((size_t)size);
    p[-2] = value;
    drop(p);
}

/* byte-N-CHANGE-END: changes one byte, N bytes in front of a block that has another block behind it. Then frees the
 * block. If END is "resize", resizes the block first. If END is "aligned", the block is aligned.
 *
 * "each byte": the same with each of the bytes that glibc does not read, from 16 to 9 bytes in front of a block. */
static void one_byte_changed(void) {
    static const int changes[][2] = {{16, 1}, {15, 0x7f}, {14, 0x10}, {13, 1}, {12, 1}, {12, 2},
                                     {12, 4}, {11, 0xfc}, {10, 1},    {9, 1},  {9, 2},  {9, 0x80}};
    int n;
    unsigned change;
    char end[16];
    int_written();
    for (size_t i = 0; is("each byte") && i < sizeof changes / sizeof *changes; i++) {
        change_byte(changes[i][0], changes[i][1], "free");
        change_byte(changes[i][0], changes[i][1], "resize");
    }
    if (sscanf(which, "byte-%d-%x-%15s", &n, &change, end) == 3) change_byte(n, (int)change, end);
}

static void no_block(void) {
    static char somewhere[64] __attribute__((aligned(16)));
    char here[64] __attribute__((aligned(16))) = {0}, *before = make(5000), *p = make(5000);
    memset(before, 0, malloc_usable_size(before)); /* the size that glibc reads in front of p - 16 lies in `before` */
    memset(p, 0, 5000);
    if (is("stack")) drop(here + 16);
    if (is("static")) drop(somewhere + 16);
    if (is("inside")) drop(p + 32);
    if (is("odd")) drop(p + 1);
    if (is("odd by eight")) drop(p + 8);
    if (is("in front")) drop(p - 16);
    if (is("in front, resized")) resize(p - 16, 400);
    if (is("in front, aligned")) drop((char *)memalign(256, 200) - 256);
    printf("%p\n", (void *)here);
}

int main(int count, char **arguments) {
    which = count > 1 ? arguments[1] : "";
    abi_find();
    freed_twice();
    in_threads();
    used_again();
    if (count > 2 && !strcmp(arguments[2], "front")) written_over();
    if (count > 2 && !strcmp(arguments[2], "large")) written_over_large();
    if (count > 2 && !strcmp(arguments[2], "small")) one_byte_changed();
    if (count > 2 && !strcmp(arguments[2], "none")) no_block();
    if (count > 3) {
        printf("%d\n", getpid());
        fflush(stdout);
        pause();
    }
    fputs("survived\n", stdout);
    return 0;
}
