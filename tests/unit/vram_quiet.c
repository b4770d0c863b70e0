/* vram_quiet waits until nothing runs in the given contexts. If several threads call it at once, each gets the
 * result for its own contexts. It does not wait a second time for a context that never becomes quiet. The driver is
 * a test double of two functions. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "preload/copies/vram_quiet.h"

enum { CALLERS = 4, TURNS = 400, ENDLESS = 1000 };

static __thread int current;
static int released; /* atomic */

/* Here the handle of a context is the error that a wait for it returns. */
static int set_current(cuda_handle context) {
    current = (int)(intptr_t)context;
    return 0;
}

static int synchronize(void) {
    while (current == ENDLESS && !__atomic_load_n(&released, __ATOMIC_ACQUIRE))
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    return current == ENDLESS ? 0 : current;
}

static const struct vram_driver driver = {.cuCtxSetCurrent = set_current, .cuCtxSynchronize = synchronize};

static int ask(int error, uint32_t milliseconds) {
    cuda_handle context = (cuda_handle)(intptr_t)error;
    return vram_quiet(&driver, &context, 1, milliseconds);
}

static void *ask_often(void *argument) {
    int error = (int)(intptr_t)argument;
    intptr_t wrong = 0;
    for (int i = 0; i < TURNS; i++) wrong += ask(error, 60000) != error;
    return (void *)wrong;
}

Test(vram_quiet, each_caller_gets_its_own_result, .timeout = 120) {
    static const int errors[CALLERS] = {0, 700, 0, 719};
    pthread_t threads[CALLERS];
    void *wrong;
    for (int i = 0; i < CALLERS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, ask_often, (void *)(intptr_t)errors[i]), 0);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], &wrong);
        cr_assert_eq((intptr_t)wrong, 0, "caller %d: %d wrong", i, (int)(intptr_t)wrong);
    }
}

Test(vram_quiet, what_does_not_end_is_given_up, .timeout = 120) {
    cr_assert_eq(vram_quiet(&driver, NULL, 0, 0), 0, "no context");
    cr_assert_eq(ask(ENDLESS, 20), VRAM_NOT_QUIET);
    cr_assert_eq(ask(700, 60000), VRAM_NOT_QUIET, "at once: it is still waited for");
    __atomic_store_n(&released, 1, __ATOMIC_RELEASE);
    int result = VRAM_NOT_QUIET;
    for (int i = 0; i < 1000 && result == VRAM_NOT_QUIET; i++) {
        nanosleep(&(struct timespec){0, 10000000}, NULL);
        result = ask(700, 60000);
    }
    cr_assert_eq(result, 700);
    cr_assert_eq(ask(ENDLESS, 60000), 0);
}
