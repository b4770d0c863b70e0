// If nearly all stacks are dead (they have no live blocks), room is made before the memory for stacks is full. So no
// stack is lost, however many stacks there are. There is one exception: if the thread that makes room has to wait for a
// processor, the other threads go on without waiting for it, and lose stacks.
// env: MEMSTOW_STACK_MEMORY=8000000
// needs: stacks
// timeout: 300
#include "expect.h"
#include "random_stacks.h"

#include <pthread.h>

enum { THREADS = 2, ROUNDS = 200000, PAUSE = 50 };

static void *work(void *seed) {
    uint64_t state = first_state((uintptr_t)seed);
    for (long i = 0; i < ROUNDS; i++) {
        free(allocate(&state, 1));
        if (i % PAUSE == 0) usleep(1000);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    uint64_t state = 1;
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (long i = 0; i < ROUNDS; i++) free(allocate(&state, 1));
    EXPECT("sites[stack[0].module=*stacks_fold_in_time*].live_bytes", 0);
    say("expect totals.allocated_blocks >= %d", (THREADS + 1) * ROUNDS);
    say("expect totals.allocated_blocks <= %d", (THREADS + 1) * ROUNDS + 40);
    say("expect lost.folded > %d", (THREADS + 1) * ROUNDS / 2);
    say("expect lost.stacks < %d", (THREADS + 1) * ROUNDS / 100);
    return 0;
}
