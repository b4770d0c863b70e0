/* A driver whose functions only return values, for cases that the simulated driver does not have; a test double. Memory
 * is only numbers. Each call sets errno, also when memstow itself calls. cuMemAlloc first checks that errno still has
 * the value that the program set. So memstow must restore errno after its own calls. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

enum { ERROR_BEFORE = 7, ERROR_AFTER = 42, ERROR_OF_A_QUESTION = 99, HANDLE = 77 };

#define API(name, ...)                                                                                                 \
    int name(__VA_ARGS__);                                                                                             \
    int name(__VA_ARGS__)

int fake_device, fake_errors;
jmp_buf *fake_leave; /* where cuMemAlloc jumps to, once */
int fake_end_thread; /* 1: cuMemAlloc ends the thread that calls it */
pthread_barrier_t *fake_both;
void *fake_pinned; /* the memory that cuMemHostAlloc gives */
static uint64_t next = 0x7000000000;

static int done(void) {
    errno = ERROR_AFTER;
    return 0;
}

API(cuMemAlloc_v2, uint64_t *at, size_t bytes) {
    fake_errors += errno != ERROR_BEFORE;
    jmp_buf *leave = fake_leave;
    fake_leave = NULL;
    if (leave) longjmp(*leave, 1);
    if (fake_end_thread) pthread_exit(NULL);
    *at = __atomic_fetch_add(&next, bytes + 4096, __ATOMIC_RELAXED);
    return done();
}
API(cuMemHostAlloc, void **at, size_t bytes, unsigned flags) {
    (void)bytes, (void)flags;
    *at = fake_pinned;
    return done();
}
API(cuMemFreeHost, void *at) {
    (void)at;
    return done();
}
API(cuMemCreate, uint64_t *memory, size_t bytes, const void *properties, unsigned long long flags) {
    (void)bytes, (void)properties, (void)flags;
    *memory = HANDLE;
    return done();
}
API(cuMemRetainAllocationHandle, uint64_t *memory, void *at) {
    (void)at;
    *memory = HANDLE;
    return done();
}
API(cuMemRelease, uint64_t memory) {
    (void)memory;
    if (fake_both) pthread_barrier_wait(fake_both);
    return done();
}
struct shared {
    char reserved[64];
};
API(cuIpcOpenMemHandle_v2, uint64_t *at, struct shared shared, unsigned flags) {
    (void)shared, (void)flags;
    *at = 0x6000000000;
    return done();
}
API(cuIpcCloseMemHandle, uint64_t at) {
    (void)at;
    return done();
}
API(cuCtxDestroy_v2, void *context) {
    (void)context;
    return done();
}

/* Entries that memstow calls. */
static int answer(void) {
    errno = ERROR_OF_A_QUESTION;
    return 0;
}
API(cuCtxGetCurrent, void **context) {
    *context = (void *)0x1234;
    return answer();
}
API(cuCtxGetDevice, int *device) {
    *device = fake_device;
    return answer();
}
API(cuDeviceGetCount, int *count) {
    *count = 4;
    return answer();
}
API(cuMemGetInfo_v2, size_t *available, size_t *total) {
    *available = *total = (size_t)1 << 30;
    return answer();
}
