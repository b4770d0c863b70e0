// The peak is no less than the ledger's picture of it, whether one thread allocates or several. This holds even if
// small blocks came after the total was last noted, and even if blocks come while the picture is taken.
// build: -fno-builtin
#include "expect.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>

enum { THREADS = 4, ROUNDS = 100, SLOTS = 64, SMALL = 3000, LARGE = 3 << 20 };

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state;
}

/* The peak of each round is higher than that of the round before. Some small blocks are not counted in the total yet
 * when the large block is freed, because a thread holds back its events until they are many. */
static void *churn(void *seed) {
    uint64_t state = 88172645463325252u + 77 * (uint64_t)(uintptr_t)seed;
    void *slots[SLOTS] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        void *large = malloc(LARGE + (size_t)i * 4096);
        for (int k = 0; k < SLOTS; k++) {
            void **slot = &slots[next_random(&state) % SLOTS];
            free(*slot);
            *slot = malloc(1 + next_random(&state) % SMALL);
        }
        for (int k = 0; k < 5; k++) MUST(malloc(1 + next_random(&state) % SMALL)); /* stays */
        free(large);
    }
    return NULL;
}

/* A child churns with one thread. Then the parent churns with several. */
int main(void) {
    pthread_t threads[THREADS];
    pid_t child = fork();
    MUST(child >= 0);
    if (!child) {
        churn(0);
        exit(0);
    }
    MUST(waitpid(child, NULL, 0) == child);
    say("expect@%d peak.distance_bytes >= 0", (int)child);
    say("expect@%d peak.picture_bytes >= %d", (int)child, LARGE);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, churn, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    say("expect peak.distance_bytes >= 0");
    say("expect peak.picture_bytes >= %d", LARGE);
    return 0;
}
