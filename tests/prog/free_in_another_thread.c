// If another thread frees a block, this is counted at that thread, and the sum is exact.
// run:
// run: --allocator=mimalloc
#include "expect.h"

#include <pthread.h>

enum { COUNT = 5000 };
static void *blocks[COUNT];

static void *make(void *unused) {
    (void)unused;
    for (int i = 0; i < COUNT; i++) blocks[i] = malloc((size_t)i + 1);
    return NULL;
}

static void *drop(void *unused) {
    (void)unused;
    for (int i = 0; i < COUNT - 1; i++) free(blocks[i]);
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, make, NULL);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, drop, NULL);
    pthread_join(thread, NULL);
    /* pthread_create keeps memory for a thread (its TLS vector), which is counted at another module. */
    EXPECT("sites[stack[0].module=*free_in_another_thread].live_bytes", COUNT);
    EXPECT("sites[stack[0].module=*free_in_another_thread].live_blocks", 1);
    return 0;
}
