// Copies between pinned buffers and memory, over a driver that does nothing (a test double). The threads that copy run
// no signal handler of the program: a handler would find thread-local storage that is not its own thread's.
#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/copies/vram_ring.h"

static int does_nothing(void) { return 0; }

static int allocate(void **at, size_t bytes, unsigned flags) {
    (void)flags;
    *at = malloc(bytes);
    memset(*at, 7, bytes);
    return 0;
}

static struct vram_driver driver_without_device(void) {
    struct vram_driver driver;
    int (*nothing)(void) = does_nothing;
    for (size_t i = 0; i < sizeof driver; i += sizeof nothing) memcpy((char *)&driver + i, &nothing, sizeof nothing);
    driver.cuMemHostAlloc = (void *)allocate;
    return driver;
}

static long self_id, sender_id;
static int on_copier, sent;
static bool over;

static void note(int number) {
    (void)number;
    long id = syscall(SYS_gettid);
    if (id != self_id && id != sender_id) __atomic_add_fetch(&on_copier, 1, __ATOMIC_RELAXED);
}

/* Sends a signal to each thread that the program has not made. */
static void *send(void *unused) {
    DIR *folder = opendir("/proc/self/task");
    sender_id = syscall(SYS_gettid);
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        rewinddir(folder);
        for (struct dirent *entry; (entry = readdir(folder));) {
            long id = atol(entry->d_name);
            if (id && id != self_id && id != sender_id && syscall(SYS_tgkill, getpid(), id, SIGUSR1) == 0)
                __atomic_add_fetch(&sent, 1, __ATOMIC_RELAXED);
        }
    }
    closedir(folder);
    return unused;
}

Test(vram_ring, no_handler_runs_on_a_thread_that_copies) {
    enum { LENGTH = 64 << 20, ENOUGH = 20 };
    struct vram_driver driver = driver_without_device();
    struct vram_ring ring = {.slot_bytes = VRAM_SLOT, .copiers = VRAM_COPIERS};
    char *to = calloc(1, LENGTH);
    sigset_t blocked;
    pthread_t sender;
    self_id = syscall(SYS_gettid);
    signal(SIGUSR1, note);
    cr_assert_eq(vram_ring_begin(&driver, &ring), 0);
    cr_assert_eq(pthread_create(&sender, NULL, send, NULL), 0);
    do
        for (uint64_t at = 0; at < LENGTH; at += VRAM_SLOT) vram_ring_take(&ring, 0, to + at, VRAM_SLOT);
    while (VRAM_COPIERS > 1 && __atomic_load_n(&sent, __ATOMIC_RELAXED) < ENOUGH);
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    pthread_join(sender, NULL);
    cr_expect_eq(on_copier, 0, "%d of %d signals", on_copier, sent);
    cr_expect(to[0] == 7 && to[LENGTH - 1] == 7 && !memcmp(to, to + 1, LENGTH - 1));
    cr_assert_eq(pthread_sigmask(SIG_SETMASK, NULL, &blocked), 0);
    cr_expect_not(sigismember(&blocked, SIGUSR1), "the program's handlers run again");
    free(to);
    for (int i = 0; i < VRAM_SLOTS; i++) free(ring.slot[i]);
}

/* A double of the driver's copy into the device: the device's memory is ordinary memory of the test, and the copy is
 * done when the function returns. */
static int to_device(uint64_t to, const void *from, size_t bytes) {
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}

/* Streaming stores copy whole cache lines. The bytes before, between and behind these lines must arrive, too. */
Test(vram_ring, content_arrives_whole_at_any_length_and_from_any_address) {
    enum { MOST = (3 << 20) + 100 };
    static const uint64_t lengths[] = {1, 15, 16, 63, 64, 65, 4096, (1 << 20) - 1, 1 << 20, (2 << 20) + 7, MOST};
    struct vram_driver driver = driver_without_device();
    struct vram_ring ring = {.slot_bytes = VRAM_SLOT, .copiers = VRAM_COPIERS};
    char *from = malloc(MOST + 64), *to = malloc(MOST + 64);
    driver.cuMemcpyHtoDAsync_v2 = (void *)to_device;
    cr_assert_eq(vram_ring_begin(&driver, &ring), 0);
    for (size_t i = 0; i < MOST + 64; i++) from[i] = (char)(i * 31 + i / 251);
    for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
        uint64_t shift = n * 5 % 17;
        memset(to, 0x5a, MOST + 64);
        cr_assert_eq(vram_ring_in(&driver, &ring, (uintptr_t)to, from + shift, lengths[n]), 0);
        cr_expect(!memcmp(to, from + shift, lengths[n]), "%lu bytes", (unsigned long)lengths[n]);
        cr_expect(to[lengths[n]] == 0x5a, "%lu bytes, and no more", (unsigned long)lengths[n]);
    }
    free(from), free(to);
    for (int i = 0; i < VRAM_SLOTS; i++) free(ring.slot[i]);
}

static int allocate_nothing(void **at, size_t bytes, unsigned flags) {
    (void)bytes, (void)flags;
    *at = NULL;
    return 0;
}

Test(vram_ring, a_buffer_that_the_driver_says_it_gave_and_did_not_is_none) {
    struct vram_driver driver = driver_without_device();
    struct vram_ring ring = {.slot_bytes = VRAM_SLOT, .copiers = 1};
    driver.cuMemHostAlloc = (void *)allocate_nothing;
    cr_assert_neq(vram_ring_begin(&driver, &ring), 0);
    driver.cuMemHostAlloc = (void *)allocate;
    cr_assert_eq(vram_ring_begin(&driver, &ring), 0);
    for (int i = 0; i < VRAM_SLOTS; i++) free(ring.slot[i]);
}
