// A thread's heap keeps free memory. The report counts this memory (`retained_bytes`) even if madvise has split the
// heap's mapping into several mappings. numpy calls madvise in this way.
// build: -pthread
#include "expect.h"

#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>

enum { MIB = 1 << 20, BLOCK = 12 * MIB, THREADS = 3 };

static void *work(void *unused) {
    char *block = malloc(BLOCK), *pages = (char *)(((uintptr_t)block + 4095) & ~(uintptr_t)4095);
    MUST(block && madvise(pages, 4 * MIB, MADV_DONTDUMP) == 0); /* any advice that is kept with the mapping will do */
    memset(block, 1, BLOCK);
    free(block);
    return unused;
}

int main(void) {
    pthread_t threads[THREADS];
    MUST(mallopt(M_MMAP_THRESHOLD, 32 * MIB) && mallopt(M_TRIM_THRESHOLD, 512 * MIB));
    for (int i = 0; i < THREADS; i++) MUST(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < THREADS; i++) MUST(pthread_join(threads[i], NULL) == 0);
    say("expect residency.retained_bytes >= %d", BLOCK - MIB);
    say("expect residency.rest_bytes <= %d", MIB);
    return 0;
}
