// Thousands of short threads: their slots are used again, and memory that they leave behind stays counted.
// run:
#include "expect.h"

#include <pthread.h>

enum { ROUNDS = 300, AT_ONCE = 16 };
static pthread_key_t key;

/* Runs while the thread ends, after the library has given up the thread's slot. */
static void late(void *value) { free(value); }

static void *work(void *unused) {
    (void)unused;
    pthread_setspecific(key, malloc(100));
    for (int i = 0; i < 50; i++) free(malloc((size_t)i * 40));
    return malloc(10); /* never freed */
}

int main(void) {
    void *warm = malloc(1);
    pthread_key_create(&key, late);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++) MUST(pthread_create(&threads[i], NULL, work, NULL) == 0);
        for (int i = 0; i < AT_ONCE; i++) pthread_join(threads[i], NULL);
    }
    MUST(warm);
    say("expect totals.host.live_bytes >= %d", ROUNDS * AT_ONCE * 10 + 1);
    say("expect totals.host.live_bytes <= %d", ROUNDS * AT_ONCE * 10 + 1 + AT_ONCE * 2048);
    say("expect threads.length <= %d", AT_ONCE + 8);
    say("ok");
    return 0;
}
