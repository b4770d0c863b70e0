// Every entry point of the malloc family serves usable, aligned memory, and is counted with the requested size.
// run:
// run: --stacks=none
// run: --allocator=mimalloc
// build: -Wno-deprecated-declarations
#include "expect.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>

enum { BLOCKS = 24 };
static void *blocks[BLOCKS];
static size_t sizes[BLOCKS];
static int count;

static void keep(void *p, size_t size, size_t alignment) {
    MUST(p != NULL);
    MUST((uintptr_t)p % alignment == 0);
    MUST(malloc_usable_size(p) >= size);
    memset(p, 0x5a, malloc_usable_size(p));
    blocks[count] = p;
    sizes[count++] = size;
}

static void *posix(size_t alignment, size_t size) {
    void *p = NULL;
    MUST(posix_memalign(&p, alignment, size) == 0);
    return p;
}

static void allocate_all(void) {
    keep(malloc(0), 0, 16);
    keep(malloc(10), 10, 16);
    keep(malloc(70000), 70000, 16);
    keep(calloc(3, 7), 21, 16);
    keep(calloc(100, 1000), 100000, 16);
    keep(realloc(NULL, 33), 33, 16);
    keep(realloc(malloc(20), 4000), 4000, 16);
    keep(reallocarray(malloc(5), 10, 10), 100, 16);
    keep(memalign(8, 24), 24, 16);
    keep(memalign(64, 100), 100, 64);
    keep(memalign(4096, 10), 10, 4096);
    keep(memalign(1 << 20, 300), 300, 1 << 20);
    keep(posix(32, 50), 50, 32);
    keep(posix(2048, 5000), 5000, 2048);
    keep(posix(64, 200000), 200000, 64);
    keep(aligned_alloc(128, 256), 256, 128);
    keep(valloc(17), 17, 4096);
    keep(pvalloc(17), 4096, 4096);
    keep(strdup("twelve bytes"), 13, 16);
}

int main(void) {
    size_t live = 0;
    int live_blocks = 0;
    allocate_all();
    for (int i = 0; i < count; i++)
        for (size_t k = 0; k < sizes[i]; k++)
            MUST(((unsigned char *)blocks[i])[k] == 0x5a || strcmp(blocks[i], "twelve bytes") == 0);
    for (int i = 0; i < count; i++)
        if (i % 2) {
            free(blocks[i]);
        } else {
            live += sizes[i];
            live_blocks++;
        }
    errno = 0;
    MUST(calloc((size_t)-1, 2) == NULL && errno == ENOMEM);
    errno = 0;
    MUST(malloc((size_t)-1) == NULL && errno == ENOMEM);
    errno = 0;
    MUST(reallocarray(NULL, (size_t)-1, 2) == NULL && errno == ENOMEM);
    errno = 0;
    MUST(memalign((size_t)1 << 63, 8) == NULL && errno == ENOMEM);
    void *p = &live;
    MUST(posix_memalign(&p, (size_t)1 << 63, 8) == ENOMEM && p == &live);
    MUST(posix_memalign(&p, 24, 8) == EINVAL && p == &live);
    MUST(malloc_usable_size(NULL) == 0);
    free(NULL);
    EXPECT("totals.host.live_bytes", live);
    EXPECT("totals.host.live_blocks", live_blocks);
    EXPECT("totals.host.allocated_blocks", count + 2); /* two reallocs of earlier blocks */
    return 0;
}
