/* Programs over a driver that only answers (_fake_driver.c). Each case prints its expected report. */
#include "abi.h"
#include "expect.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ERROR_BEFORE = 7, ERROR_AFTER = 42 };
#define MIB ((size_t)1 << 20)

struct shared {
    char reserved[64];
};
int cuMemAlloc_v2(uint64_t *, size_t);
int cuMemCreate(uint64_t *, size_t, const void *, unsigned long long);
int cuMemRetainAllocationHandle(uint64_t *, void *);
int cuMemRelease(uint64_t);
int cuIpcOpenMemHandle_v2(uint64_t *, struct shared, unsigned);
int cuIpcCloseMemHandle(uint64_t);
int cuCtxDestroy_v2(void *);
extern int fake_device, fake_errors, fake_end_thread;
extern jmp_buf *fake_leave;
int cuMemHostAlloc(void **, size_t, unsigned);
int cuMemFreeHost(void *);
extern pthread_barrier_t *fake_both;
extern void *fake_pinned;

__attribute__((noinline)) static void allocate(size_t bytes) {
    uint64_t at;
    errno = ERROR_BEFORE;
    MUST(cuMemAlloc_v2(&at, bytes) == 0);
    MUST(errno == ERROR_AFTER);
}

/* Allocates in a frame deeper than that of the call that was left, and so writes over the frame of that call. */
__attribute__((noinline)) static void allocate_deeper(size_t bytes, int depth) {
    volatile char room[512];
    for (size_t i = 0; i < sizeof room; i++) room[i] = (char)depth;
    if (depth)
        allocate_deeper(bytes, depth - 1);
    else
        allocate(bytes);
    room[0] = room[1];
}

/* A call that is left by longjmp is over. */
static void left(void) {
    jmp_buf back;
    allocate(MIB);
    for (int deep = 0; deep < 2; deep++) {
        if (!setjmp(back)) {
            fake_leave = &back;
            allocate(MIB);
        }
        if (deep) allocate_deeper(2 * MIB, 4);
        allocate(4 * MIB);
    }
    EXPECT("totals.cuda.live_bytes", (1 + 4 + 2 + 4) * MIB);
}

/* If a thread ends within a call, this call is over, too. The destructors of the thread's own data run outside of
 * it. */
static pthread_key_t key;

static void at_end(void *value) {
    fake_end_thread = 0;
    allocate((size_t)value);
}

static void *end_within(void *unused) {
    pthread_setspecific(key, (void *)(3 * MIB));
    fake_end_thread = 1;
    allocate(MIB);
    return unused;
}

static void ended(void) {
    pthread_t thread;
    allocate(MIB);
    MUST(!pthread_key_create(&key, at_end) && !pthread_create(&thread, NULL, end_within, NULL));
    MUST(!pthread_join(thread, NULL));
    EXPECT("totals.cuda.live_bytes", 4 * MIB);
}

/* The driver's errno reaches the program, and the program's errno reaches the driver. */
static void errors(void) {
    allocate(MIB);
    allocate(128 * MIB); /* so much that the driver is asked how much is left */
    MUST(fake_errors == 0);
    EXPECT("totals.cuda.live_bytes", 129 * MIB);
}

/* Two threads release a reference each at the same time. */
static void *release(void *memory) {
    MUST(cuMemRelease((uint64_t)(uintptr_t)memory) == 0);
    return NULL;
}

static void released(void) {
    struct {
        int type, handle_types, location_type, location;
        char room[64];
    } properties = {.type = 1, .location_type = 1};
    pthread_barrier_t both;
    pthread_t thread;
    uint64_t memory, again;
    MUST(!cuMemCreate(&memory, 2 * MIB, &properties, 0));
    MUST(!cuMemRetainAllocationHandle(&again, NULL) && again == memory);
    pthread_barrier_init(&both, NULL, 2);
    fake_both = &both;
    pthread_create(&thread, NULL, release, (void *)(uintptr_t)memory);
    release((void *)(uintptr_t)memory);
    pthread_join(thread, NULL);
    EXPECT("cuda.kinds.vmm.live_bytes", 0);
    EXPECT("cuda.kinds.vmm.live_blocks", 0);
    EXPECT("cuda.foreign_frees", 0);
}

/* Memory of another process is opened twice, at one address. */
static void opened(void) {
    struct shared shared = {{0}};
    uint64_t at, again;
    MUST(!cuIpcOpenMemHandle_v2(&at, shared, 0) && !cuIpcOpenMemHandle_v2(&again, shared, 0) && at == again);
    MUST(!cuIpcCloseMemHandle(at));
    EXPECT("cuda.missed_frees", 0);
    EXPECT("cuda.kinds.imported.live_blocks", 1);
    MUST(!cuIpcOpenMemHandle_v2(&at, shared, 0));
    MUST(!cuIpcCloseMemHandle(at) && !cuIpcCloseMemHandle(at) && !cuIpcCloseMemHandle(at));
    MUST(!cuIpcOpenMemHandle_v2(&at, shared, 0));
    EXPECT("cuda.foreign_frees", 1);
}

/* A context may get the address of an ended context, but on another device. */
static void contexts(void) {
    allocate(MIB);
    MUST(!cuCtxDestroy_v2((void *)0x1234));
    fake_device = 1;
    allocate(2 * MIB);
    EXPECT("cuda.devices[device=0].live_bytes", 0);
    EXPECT("cuda.devices[device=1].live_bytes", 2 * MIB);
}

/* The driver's pinned memory lies in a mapping that the ledger counts as a model's. This mapping does not move. */
static void pinned(void) {
    void *at;
    abi_find();
    uint32_t model = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "model", "", 1, 0);
    MUST(CALL(0, memstow_owner_idle, model, 1) == 0 && CALL(0, memstow_scope_enter, model) == 0);
    fake_pinned = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(CALL(0, memstow_scope_leave, model) == 0);
    memset(fake_pinned, 1, MIB);
    MUST(!cuMemHostAlloc(&at, MIB, 0));
    MUST(CALL(-95, memstow_stow, model) == -95); /* ENOTSUP */
    MUST(!cuMemFreeHost(at));
    MUST(CALL((int64_t)MIB, memstow_stow, model) == (int64_t)MIB);
    EXPECT("owners[name=model].stowed_bytes", MIB);
}

/* comfy-aimdo's calls bypass the hooks, so only the kernel knows which pages a device has pinned. If the kernel cannot
 * say it (this user has no userfaultfd), no host memory moves. */
static void beside_aimdo(void) {
    abi_find();
    uint32_t model = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "model", "", 1, 0);
    MUST(CALL(0, memstow_owner_idle, model, 1) == 0 && CALL(0, memstow_scope_enter, model) == 0);
    char *block = malloc(MIB);
    MUST(block && CALL(0, memstow_scope_leave, model) == 0);
    memset(block, 1, MIB);
    if (getuid() == 0) MUST(setresuid(65534, 65534, 65534) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0);
    if (syscall(SYS_userfaultfd, 0) >= 0) {
        say("userfaultfd is for every user here");
        exit(77);
    }
    MUST(CALL((int64_t)MIB, memstow_stow, model) == (int64_t)MIB);
    MUST(CALL((int64_t)MIB, memstow_restore, model) == (int64_t)MIB);
    MUST(dlopen("fake/aimdo.so", RTLD_NOW | RTLD_LOCAL));
    MUST(CALL(-95, memstow_stow, model) == -95 && block[MIB - 1] == 1); /* ENOTSUP */
    EXPECT("owners[name=model].stowed_bytes", 0);
}

/* MEMSTOW_CUDA_MOVES is set, but this driver has neither pools nor memory that can be mapped: nothing is served and
 * nothing moves. */
static void old(void) {
    abi_find();
    uint32_t model = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "model", "", 1, 0);
    MUST(CALL(0, memstow_owner_idle, model, 1) == 0 && CALL(0, memstow_scope_enter, model) == 0);
    allocate(4 * MIB);
    MUST(CALL(0, memstow_scope_leave, model) == 0);
    MUST(CALL(0, memstow_stow, model) == 0 && CALL(0, memstow_restore, model) == 0);
    EXPECT("owners[name=model].device_stowed_bytes", 0);
    EXPECT("owners[name=model].cuda_bytes", 4 * MIB);
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"left", left},     {"ended", ended},       {"errors", errors}, {"released", released},
                 {"opened", opened}, {"contexts", contexts}, {"pinned", pinned}, {"beside_aimdo", beside_aimdo},
                 {"old", old}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (count < 2)
            puts(cases[i].name);
        else if (!strcmp(cases[i].name, arguments[1]))
            cases[i].run();
    }
    return 0;
}
