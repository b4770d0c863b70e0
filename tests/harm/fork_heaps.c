/* fork_heaps.c — threads open owners, fill and empty their heaps and retire them, while the program forks. Children do
 * the same. Argument: the number of forks. */
#include "../prog/abi.h"
#include "../prog/expect.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>

enum { BLOCKS = 64, THREADS = 3 };

static bool over;

static void churn(int rounds, uint32_t random) {
    void *blocks[BLOCKS];
    for (int i = 0; i < rounds && !__atomic_load_n(&over, __ATOMIC_RELAXED); i++) {
        uint32_t owner = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "model", "", 0, 0);
        MUST(CALL(0, memstow_scope_enter, owner) == 0);
        for (int k = 0; k < BLOCKS; k++) {
            random = random * 1664525 + 1013904223;
            blocks[k] = malloc(random >> 20);
            MUST(blocks[k]);
        }
        MUST(CALL(0, memstow_scope_leave, owner) == 0);
        MUST(CALL(0, memstow_owner_retire, owner) == 0);
        for (int k = 0; k < BLOCKS; k++) free(blocks[k]);
    }
}

static void *work(void *random) {
    churn(1 << 30, (uint32_t)(uintptr_t)random);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    abi_find();
    MUST(argc == 2 && CALL(1, memstow_owner_open, MEMSTOW_MODEL, "first", "", 1, 1) > 0);
    for (uintptr_t i = 0; i < THREADS; i++) MUST(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
    for (int i = 0; i < atoi(argv[1]); i++) {
        pid_t child = fork();
        MUST(child >= 0);
        if (!child) {
            churn(3, 7);
            _exit(0);
        }
        int status;
        MUST(waitpid(child, &status, 0) == child && status == 0);
    }
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return 0;
}
