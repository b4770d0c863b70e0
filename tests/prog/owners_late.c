// The registration ABI is called at bad moments: in a signal handler, in a thread that is about to end, in a
// function of atexit, and in a destructor of the program.
#include "abi.h"
#include "expect.h"

#include <pthread.h>
#include <signal.h>

static uint32_t model;
static pthread_key_t key;

static void use_it(void) {
    MUST(CALL(0, memstow_scope_enter, model) == 0);
    char *p = malloc(100);
    MUST(p);
    MUST(CALL(0, memstow_assign, model, p, 100) == 0);
    free(p);
    MUST(CALL(0, memstow_scope_leave, model) == 0);
    MUST(CALL(1, memstow_owner_open, MEMSTOW_MODEL, "late", "", 7, 0) > 0);
}

static void in_handler(int number) {
    (void)number;
    MUST(CALL(0, memstow_scope_enter, model) == 0);
    MUST(CALL(0, memstow_scope_leave, model) == 0);
}

static void at_thread_end(void *unused) {
    (void)unused;
    use_it();
}

static void *thread(void *unused) {
    pthread_setspecific(key, &key);
    MUST(CALL(0, memstow_scope_enter, model) == 0); /* never left */
    return unused;
}

__attribute__((destructor)) static void after_exit(void) { use_it(); }

int main(void) {
    abi_find();
    model = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "model", "", 1, 0);
    pthread_key_create(&key, at_thread_end);
    signal(SIGUSR1, in_handler);
    MUST(CALL(0, memstow_scope_enter, model) == 0);
    char *kept = malloc(10);
    for (int i = 0; i < 1000; i++) {
        raise(SIGUSR1);
        free(malloc(10));
    }
    MUST(kept && CALL(0, memstow_scope_leave, model) == 0);
    for (int i = 0; i < 20; i++) {
        pthread_t made;
        MUST(pthread_create(&made, NULL, thread, NULL) == 0);
        pthread_join(made, NULL);
    }
    atexit(use_it);
    EXPECT("owners[name=model].live_bytes", 10);
    EXPECT("owners[name=late].live_bytes", 0);
    return 0;
}
