/* vram_thread.c — see vram_thread.h. There is one errand at a time. The asking thread sets TAKEN, fills the errand in,
 * and sets ASKED. The device thread sets BUSY, does the work, and sets DONE; the asking thread sets FREE. */
#include "preload/copies/vram_thread.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/base/forked.h"
#include "preload/shared/os.h"

enum { FREE, TAKEN, ASKED, BUSY, DONE };
enum { AT_EXIT_MS = 5000 };

__thread bool vram_thread_apart __attribute__((tls_model("initial-exec")));

static struct {
    void (*work)(void *context);
    void *context;
    uint32_t stage;
} errand;
static uint32_t turn;    /* grows with each change that a waiting thread must see; a futex */
static uint32_t runs;    /* the device thread is there, or is being made */
static uint32_t at_work; /* the device thread may be within a call of the driver */
static uint32_t leaving; /* the program has begun to end */
static uint32_t has_handler;
static uint32_t home; /* the process that the device thread was made in */
static __thread bool is_device_thread __attribute__((tls_model("initial-exec")));

static uint32_t thread_load(const uint32_t *word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }

static void thread_store(uint32_t *word, uint32_t value) { __atomic_store_n(word, value, __ATOMIC_SEQ_CST); }

void vram_thread_wake(void) {
    __atomic_fetch_add(&turn, 1, __ATOMIC_SEQ_CST);
    os_call(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

static bool errand_becomes(uint32_t from, uint32_t to) {
    if (!__atomic_compare_exchange_n(&errand.stage, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return false;
    vram_thread_wake();
    return true;
}

/* Waits until `turn` is not `seen` any more, or the time is over. */
static void wait_for_change(uint32_t seen, uint32_t milliseconds) {
    const struct timespec most = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    os_call(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, seen, milliseconds == VRAM_THREAD_NOTHING ? NULL : &most);
}

/* --- the asking thread --- */

static bool await_errand(void) {
    for (;;) {
        uint32_t seen = thread_load(&turn);
        if (errand_becomes(DONE, FREE)) return true;
        if (!thread_load(&runs) && errand_becomes(ASKED, FREE)) return false;
        wait_for_change(seen, VRAM_THREAD_NOTHING);
    }
}

bool vram_thread_do(void (*work)(void *context), void *context) {
    if (!vram_thread_apart) {
        work(context);
        return true;
    }
    if (!errand_becomes(FREE, TAKEN)) return false;
    errand.work = work;
    errand.context = context;
    errand_becomes(TAKEN, ASKED);
    return await_errand();
}

/* --- the device thread --- */

static bool do_errand(void) {
    if (!errand_becomes(ASKED, BUSY)) return false;
    errand.work(errand.context);
    errand_becomes(BUSY, DONE);
    return true;
}

bool vram_thread_begins(void) {
    if (thread_load(&leaving)) return false;
    thread_store(&home, os_pid());
    thread_store(&runs, 1);
    return true;
}

void vram_thread_ended(void) {
    thread_store(&runs, 0);
    vram_thread_wake();
}

/* Does the next piece of work, unless the program has begun to end (`leaving`). Returns how many milliseconds to wait
 * for the next piece, or 0 if there may be one already.
 *
 * This function sets at_work before it reads `leaving`. The exit handler sets `leaving` before it reads at_work. So
 * either the exit handler sees at_work and waits, or this function sees `leaving` and begins no work. */
static uint32_t next_work(uint32_t (*step)(void)) {
    thread_store(&at_work, 1);
    uint32_t wait = thread_load(&leaving) ? VRAM_THREAD_NOTHING : do_errand() ? 0 : step();
    thread_store(&at_work, 0);
    if (thread_load(&leaving)) vram_thread_wake();
    return wait;
}

void vram_thread_run(bool (*is_over)(void), uint32_t (*step)(void)) {
    is_device_thread = true;
    while (!is_over() && !thread_load(&leaving)) {
        uint32_t seen = thread_load(&turn), wait = next_work(step);
        if (wait && !is_over() && !thread_load(&leaving)) wait_for_change(seen, wait);
    }
    vram_thread_ended();
}

/* --- the end of the program --- */

bool vram_thread_must_end(void) { return is_device_thread && thread_load(&leaving); }

/* The exit handler: keeps the device thread from calling the driver while the program ends. In a forked child it does
 * nothing, because the child has no device thread. */
static void leave_driver_alone(void) {
    if (thread_load(&home) != os_pid()) return;
    uint64_t end = os_now() + AT_EXIT_MS * (uint64_t)1000000;
    thread_store(&leaving, 1);
    vram_thread_wake();
    for (uint32_t seen; seen = thread_load(&turn), thread_load(&at_work) && os_now() < end;) wait_for_change(seen, 100);
}

void vram_thread_ends_with_program(void) {
    if (unlikely(!thread_load(&has_handler)) && !__atomic_exchange_n(&has_handler, 1, __ATOMIC_SEQ_CST))
        atexit(leave_driver_alone);
}

/* has_handler stays set, because the exit handler stays registered in the child. */
static void vram_thread_abandon(void) {
    errand.stage = FREE;
    runs = at_work = leaving = 0;
    vram_thread_apart = false;
}
FORKED(vram_thread_abandon);
