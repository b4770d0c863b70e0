/* One thread for each run, with memory that nobody frees when the thread ends: its key has no destructor. */
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

static void leaky(int run) {
    pthread_t thread;
    (void)run;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
}

int main(int count, char **arguments) {
    pthread_key_create(&key, NULL);
    return do_runs(count, arguments, leaky);
}
