/* vram_quiet.c — see vram_quiet.h. The data of the waiting thread (`job`) is static, because that thread may outlive
 * its caller. The job's state is IDLE at first. The asking thread sets WAITING, the waiting thread sets DONE, and the
 * asking thread reads the result and sets IDLE. If the asking thread gives up, it sets GIVEN_UP, and the waiting thread
 * sets IDLE later. */
#include "preload/copies/vram_quiet.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/cuda/cuda_captures.h"
#include "preload/shared/os.h"
#include "preload/base/forked.h"

enum { IDLE, WAITING, DONE, GIVEN_UP };

static struct {
    struct vram_driver driver;
    cuda_handle contexts[VRAM_CONTEXTS];
    uint32_t count;
    int error;
    uint32_t state; /* a futex */
} job;

static bool vram_quiet_becomes(uint32_t from, uint32_t to) {
    if (!__atomic_compare_exchange_n(&job.state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return false;
    os_call(SYS_futex, &job.state, FUTEX_WAKE_PRIVATE, INT32_MAX);
    return true;
}

static int vram_quiet_wait_for(cuda_handle context) {
    int error = job.driver.cuCtxSetCurrent(context);
    if (error) return error;
    if (!cuda_captures_hold_off()) return VRAM_CAPTURE;
    error = job.driver.cuCtxSynchronize();
    cuda_captures_go_on();
    return error;
}

static void *vram_quiet_wait_for_all(void *unused) {
    int error = 0;
    for (uint32_t i = 0; i < job.count && !error; i++) error = vram_quiet_wait_for(job.contexts[i]);
    job.error = error;
    if (!vram_quiet_becomes(WAITING, DONE)) vram_quiet_becomes(GIVEN_UP, IDLE);
    return unused;
}

static bool vram_quiet_start(void) {
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = !pthread_create(&thread, NULL, vram_quiet_wait_for_all, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started) pthread_detach(thread);
    return started;
}

static uint32_t state_now(void) { return __atomic_load_n(&job.state, __ATOMIC_ACQUIRE); }

/* Waits until the job leaves this state. False: the time is over. */
static bool wait_while(uint32_t state, uint64_t end_ns) {
    while (state_now() == state) {
        uint64_t now = os_now();
        if (now >= end_ns) return false;
        struct timespec rest = {(time_t)((end_ns - now) / 1000000000), (long)((end_ns - now) % 1000000000)};
        os_call(SYS_futex, &job.state, FUTEX_WAIT_PRIVATE, state, &rest);
    }
    return true;
}

/* Takes the job for the caller. Until the job is IDLE again, no other thread can take it. False: the job was not free
 * in time, or an earlier caller has given up and its wait goes on. */
static bool take_job(uint64_t end_ns) {
    for (;;) {
        uint32_t state = state_now();
        if (state == IDLE && vram_quiet_becomes(IDLE, WAITING)) return true;
        if (state == GIVEN_UP || (state != IDLE && !wait_while(state, end_ns))) return false;
    }
}

static int result_of_job(uint64_t end_ns) {
    if (!wait_while(WAITING, end_ns) && vram_quiet_becomes(WAITING, GIVEN_UP)) return VRAM_NOT_QUIET;
    int error = job.error;
    vram_quiet_becomes(DONE, IDLE);
    return error;
}

int vram_quiet(const struct vram_driver *driver, const cuda_handle *contexts, uint32_t count, uint32_t milliseconds) {
    uint64_t end = os_now() + milliseconds * (uint64_t)1000000;
    if (!count) return 0;
    if (!take_job(end)) return VRAM_NOT_QUIET;
    job.driver = *driver;
    job.count = count < VRAM_CONTEXTS ? count : VRAM_CONTEXTS;
    memcpy(job.contexts, contexts, job.count * sizeof *contexts);
    if (vram_quiet_start()) return result_of_job(end);
    vram_quiet_becomes(WAITING, IDLE);
    return VRAM_NO_THREAD;
}

static void vram_quiet_abandon(void) { job.state = IDLE; }
FORKED(vram_quiet_abandon);
