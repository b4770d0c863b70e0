/* vram_quiet.c — see vram_quiet.h. What the thread reads and writes is static: it may outlive its caller. */
#include "vram_quiet.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "os.h"

enum { IDLE, WAITING, DONE };

static struct {
    const struct vram_driver *driver;
    cuda_handle contexts[VRAM_CONTEXTS];
    uint32_t count;
    int error;
    uint32_t state; /* futex */
} job;

static void *wait_for_all(void *unused) {
    int error = 0;
    for (uint32_t i = 0; i < job.count && !error; i++) {
        error = job.driver->cuCtxSetCurrent(job.contexts[i]);
        if (!error) error = job.driver->cuCtxSynchronize();
    }
    job.error = error;
    __atomic_store_n(&job.state, DONE, __ATOMIC_RELEASE);
    os_call(SYS_futex, &job.state, FUTEX_WAKE_PRIVATE, INT32_MAX);
    return unused;
}

static bool start(void) {
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = !pthread_create(&thread, NULL, wait_for_all, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started) pthread_detach(thread);
    return started;
}

static bool is_done(void) { return __atomic_load_n(&job.state, __ATOMIC_ACQUIRE) == DONE; }

static bool wait_until(uint64_t end_ns) {
    while (!is_done()) {
        uint64_t now = os_now();
        if (now >= end_ns) return false;
        struct timespec rest = {(time_t)((end_ns - now) / 1000000000), (long)((end_ns - now) % 1000000000)};
        os_call(SYS_futex, &job.state, FUTEX_WAIT_PRIVATE, WAITING, &rest);
    }
    return true;
}

int vram_quiet(const struct vram_driver *driver, const cuda_handle *contexts, uint32_t count, uint32_t milliseconds) {
    uint64_t end = os_now() + milliseconds * (uint64_t)1000000;
    uint32_t before = __atomic_load_n(&job.state, __ATOMIC_ACQUIRE);
    if (!count) return 0;
    if (before == WAITING ||
        !__atomic_compare_exchange_n(&job.state, &before, WAITING, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return VRAM_NOT_QUIET;
    job.driver = driver;
    job.count = count < VRAM_CONTEXTS ? count : VRAM_CONTEXTS;
    memcpy(job.contexts, contexts, job.count * sizeof *contexts);
    if (!start()) {
        __atomic_store_n(&job.state, IDLE, __ATOMIC_RELEASE);
        return VRAM_NO_THREAD;
    }
    return wait_until(end) ? job.error : VRAM_NOT_QUIET;
}

void vram_quiet_abandon(void) { job.state = IDLE; }
