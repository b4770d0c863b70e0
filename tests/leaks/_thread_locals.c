/* A thread a run, each with memory of its own that nobody frees when the thread ends: its key has no destructor. */
#include "_runs.h"

#include <pthread.h>

static pthread_key_t key;

__attribute__((noinline)) static void remember(void) { pthread_setspecific(key, calloc(1, 50000)); }

static void *work(void *nothing) {
    (void)nothing;
    enter("Leaky");
    remember();
    leave();
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t thread;
    pthread_key_create(&key, NULL);
    for (int run = 0; run < (count > 1 ? atoi(arguments[1]) : 1); run++) {
        begin_run(run);
        pthread_create(&thread, NULL, work, NULL);
        pthread_join(thread, NULL);
        end_run();
    }
    return wait_for_line();
}
