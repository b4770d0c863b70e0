// Two threads let two owners adopt each other at the same time. One of the two calls is refused. After that, memory can
// still be allocated and freed in the scope of either owner.
#include "abi.h"
#include "expect.h"

#include <pthread.h>

enum { ROUNDS = 20000, SIZE = 40 };

static pthread_barrier_t barrier;
static uint32_t owners[2];
static int32_t results[2];

static void meet(void) { pthread_barrier_wait(&barrier); }

static void *adopt(void *which) {
    int me = which != NULL;
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        results[me] = CALL(me - 1, memstow_owner_adopt, owners[me], owners[!me]);
        meet();
    }
    return NULL;
}

static uint32_t open_model(const char *name) {
    return (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, name, "", 0, 0);
}

int main(void) {
    abi_find();
    pthread_t threads[2];
    alarm(50);
    pthread_barrier_init(&barrier, NULL, 3);
    for (int i = 0; i < 2; i++) MUST(pthread_create(&threads[i], NULL, adopt, i ? &barrier : NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        owners[0] = open_model("one");
        owners[1] = open_model("other");
        meet();
        meet();
        MUST((results[0] == 0) + (results[1] == 0) == 1);
        MUST(CALL(0, memstow_scope_enter, owners[i % 2]) == 0);
        free(malloc(SIZE));
        MUST(CALL(0, memstow_scope_leave, owners[i % 2]) == 0);
    }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    say("ok");
    return 0;
}
