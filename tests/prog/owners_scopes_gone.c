// A scope whose thread is gone does not make its owner count as in use. This holds for a thread that ended without
// having allocated, and, in a forked child, for the parent's other threads.
#include "abi.h"
#include "expect.h"

#include <pthread.h>
#include <sys/wait.h>

static uint32_t model;
static pthread_barrier_t barrier;
static __typeof__(memstow_trigger_begin) *trigger_begin;
static __typeof__(memstow_trigger_end) *trigger_end;

static uint32_t why(void) {
    struct memstow_decision decisions[4];
    int64_t count = trigger_begin(MEMSTOW_REQUEST, "", 0, decisions, 4, sizeof *decisions);
    MUST(count > 0 && trigger_end() >= 0);
    for (int64_t i = 0; i < count; i++)
        if (decisions[i].owner == model) return decisions[i].why;
    return 0;
}

static void must_be(uint32_t reason) { MUST(!has_memstow || why() == reason); }

static void *enter(void *unused) {
    MUST(CALL(0, memstow_scope_enter, model) == 0); /* never left */
    return unused;
}

static void *swap(void *scopes) {
    MUST(CALL(0, memstow_scope_swap, scopes, NULL) == 0);
    return NULL;
}

static void *stay(void *unused) {
    enter(NULL);
    pthread_barrier_wait(&barrier);
    pause();
    return unused;
}

static void thread(void *(*start)(void *), void *argument, bool join) {
    pthread_t made;
    MUST(pthread_create(&made, NULL, start, argument) == 0);
    if (join)
        pthread_join(made, NULL);
    else
        pthread_barrier_wait(&barrier);
}

int main(void) {
    abi_find();
    trigger_begin = (__typeof__(trigger_begin))dlsym(RTLD_DEFAULT, "memstow_trigger_begin");
    trigger_end = (__typeof__(trigger_end))dlsym(RTLD_DEFAULT, "memstow_trigger_end");
    model = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "model", "", 1, 0);
    MUST(CALL(0, memstow_owner_policy, model, MEMSTOW_FREE, 0) == 0);
    char *block = malloc(100);
    MUST(block && CALL(0, memstow_assign, model, block, 100) == 0);
    must_be(MEMSTOW_WHY_POLICY);
    struct memstow_scopes scopes = {.size = sizeof scopes, .count = 2, .owners = {model, model}};
    thread(enter, NULL, true);
    must_be(MEMSTOW_WHY_POLICY);
    thread(swap, &scopes, true);
    must_be(MEMSTOW_WHY_POLICY);

    pthread_barrier_init(&barrier, NULL, 2);
    thread(stay, NULL, false);
    must_be(MEMSTOW_WHY_IN_USE);
    pid_t child = fork();
    MUST(child >= 0);
    if (!child) {
        MUST((block = malloc(100)) && CALL(0, memstow_assign, model, block, 100) == 0);
        must_be(MEMSTOW_WHY_POLICY);
        enter(NULL);
        must_be(MEMSTOW_WHY_IN_USE);
        _exit(0);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
    say("ok");
    return 0;
}
