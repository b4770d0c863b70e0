/* _contexts.c — a program whose model's device memory moves while there are several contexts, and while some of them
 * end; over the simulated driver (a test double). The first argument is the case. A failed check ends the program with
 * a message. */
#include "_unet.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

/* A context keeps its handle after a reset. memstow still waits for the work of this context. */
static void context_again(void) {
    CUcontext first, second;
    void *at;
    MUST(!cudaMalloc(&at, MIB) && !cuCtxGetCurrent(&first));
    MUST(!cuCtxCreate_v2(&second, 0, 0));
    load();
    MUST(!cuCtxSetCurrent(first) && !cudaMalloc(&at, MIB));
    MUST(!cudaDeviceReset() && !cudaMalloc(&at, MIB));
    MUST(!memstow_owner_idle_(model, 1));
    uint64_t waits = sim_count("cuCtxSynchronize");
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB);
    MUST(sim_count("cuCtxSynchronize") == waits + 2);
}

/* memstow also waits for the work of a context in which nothing was ever allocated. */
static void other_context(void) {
    CUcontext first, idle;
    CUstream stream;
    MUST(!cudaMalloc(&outside, MIB) && !cuCtxGetCurrent(&first));
    MUST(!cuCtxCreate_v2(&idle, 0, 0) && !cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(!cuCtxSetCurrent(first));
    load();
    MUST(!cuCtxSetCurrent(idle));
    sim_set_latency_us(100000);
    MUST(!cuMemsetD32Async((CUdeviceptr)plain, 0, 2 * MIB, stream));
    MUST(!cuCtxSetCurrent(first));
    MUST(!memstow_owner_idle_(model, 1));
    uint64_t waits = sim_count("cuCtxSynchronize");
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB);
    MUST(sim_count("cuCtxSynchronize") == waits + 2);
    sim_set_latency_us(0);
    MUST(memstow_restore_(model) == 14 * (int64_t)MIB);
    MUST(!usage().faults && !cudaDeviceSynchronize());
    char back[8];
    MUST(!cudaMemcpy(back, plain, 8, 2) && !back[0] && !back[7]);
}

/* The memory is out when the device is reset. Memory of the context is gone with the context. Memory that is served in
 * place of a pool's memory is still there. */
static void reset(void) {
    size_t available, total;
    load();
    MUST(!memstow_owner_idle_(model, 1));
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB);
    MUST(!cudaDeviceReset());
    MUST(usage().used == usage().contexts && stowed_bytes() == 6 * MIB);
    MUST(!cudaMemGetInfo(&available, &total)); /* the runtime has a context again */
    MUST(memstow_restore_(model) == 6 * (int64_t)MIB && holds(pooled, 6 * MIB, 2));
    MUST(!cudaFreeAsync(pooled, NULL) && !cudaDeviceSynchronize());
    load();
    look();
}

/* A reset ends the primary context, and the model's memory in that context. The model's memory in another context
 * stays, and can be stowed. */
static void reset_beside_another(void) {
    CUcontext first, second;
    void *at;
    MUST(!cudaMalloc(&at, MIB) && !cuCtxGetCurrent(&first));
    MUST(!cuCtxCreate_v2(&second, 0, 0));
    load();
    MUST(!cuCtxSetCurrent(first) && !memstow_scope_enter_(model) && !cudaMalloc(&at, 4 * MIB));
    MUST(!memstow_scope_leave_(model) && !memstow_owner_idle_(model, 1));
    MUST(memstow_stow_(model) == 18 * (int64_t)MIB);
    MUST(!cudaDeviceReset());
    MUST(stowed_bytes() == 14 * MIB); /* 4 were the primary context's */
    MUST(!cuCtxSetCurrent(second) && memstow_restore_(model) == 14 * (int64_t)MIB);
    look();
    MUST(!cudaFree(plain) && !cudaFree(pooled) && !cudaFree(small) && !cudaFree(outside));
}

/* When a context is destroyed, its own memory is freed. Memory that is served in place of a pool's memory stays,
 * because a pool belongs to no context (cuda.h says so). */
static void destroyed(void) {
    CUcontext first, second;
    void *at;
    MUST(!cudaMalloc(&at, MIB) && !cuCtxGetCurrent(&first) && !cuCtxCreate_v2(&second, 0, 0));
    load();
    MUST(!cuCtxDestroy_v2(second) && !cuCtxSetCurrent(first));
    MUST(holds(pooled, 6 * MIB, 2) && !memstow_owner_idle_(model, 1));
    MUST(memstow_stow_(model) == 6 * (int64_t)MIB && memstow_restore_(model) == 6 * (int64_t)MIB);
    MUST(holds(pooled, 6 * MIB, 2));
    MUST(!cudaFreeAsync(pooled, NULL) && !cudaDeviceSynchronize() && cudaFree(plain) == 1);
}

static int64_t moved;

static void *stow_also(void *result) {
    *(int64_t *)result = memstow_stow_(model);
    return NULL;
}

static void *stow(void *unused) {
    moved = memstow_stow_(model);
    return unused;
}

static void *destroy(void *context) {
    MUST(!cuCtxDestroy_v2(context));
    return NULL;
}

/* Starts a thread, and waits until it calls the driver's function `call`, which takes effect only 200 ms later. */
static pthread_t start_slowly(void *(*does)(void *), void *context, const char *call) {
    pthread_t thread;
    uint64_t calls = sim_count(call);
    sim_slow(call, 200000);
    MUST(!pthread_create(&thread, NULL, does, context));
    while (sim_count(call) == calls) usleep(1000);
    return thread;
}

static CUcontext begin_in_second(CUcontext *first) {
    CUcontext second;
    void *at;
    MUST(!cudaMalloc(&at, MIB) && !cuCtxGetCurrent(first) && !cuCtxCreate_v2(&second, 0, 0));
    load();
    MUST(!memstow_owner_idle_(model, 1));
    return second;
}

static void look_at_pooled(CUcontext first) {
    sim_slow(NULL, 0);
    MUST(stowed_bytes() == 6 * MIB && !cuCtxSetCurrent(first));
    MUST(memstow_restore_(model) == 6 * (int64_t)MIB && holds(pooled, 6 * MIB, 2));
}

/* One thread moves the model while another one destroys its context. The move comes first. */
static void destroyed_in_a_move(void) {
    CUcontext first, second = begin_in_second(&first);
    pthread_t thread = start_slowly(stow, NULL, "cuMemcpyDtoHAsync_v2");
    MUST(!cuCtxDestroy_v2(second) && !pthread_join(thread, NULL));
    MUST(moved == 14 * (int64_t)MIB);
    look_at_pooled(first);
}

/* A move that is asked for while a context is being destroyed begins when the context is gone. */
static void moved_at_an_end(void) {
    CUcontext first, second = begin_in_second(&first);
    pthread_t thread = start_slowly(destroy, second, "cuCtxDestroy_v2");
    MUST(memstow_stow_(model) == 6 * (int64_t)MIB && !pthread_join(thread, NULL));
    look_at_pooled(first);
}

static jmp_buf before_the_end;

static void leave(void) { longjmp(before_the_end, 1); }

/* Calls cuCtxDestroy, and leaves this call by longjmp before the driver has done anything. So the context lives on. */
static void leave_an_end(CUcontext context) {
    sim_tell("cuCtxDestroy_v2", leave);
    if (!setjmp(before_the_end)) cuCtxDestroy_v2(context);
    sim_tell(NULL, NULL);
}

/* A callback of the program leaves cuCtxDestroy by longjmp: later moves need not wait for that call. */
static void end_is_left(void) {
    CUcontext first, second = begin_in_second(&first);
    leave_an_end(second);
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB && memstow_restore_(model) == 14 * (int64_t)MIB);
    look();
}

static int ready[2], over[2]; /* pipes */

static void tell(const int *pipe) { MUST(write(pipe[1], "x", 1) == 1); }

static void hear(const int *pipe) {
    char byte;
    MUST(read(pipe[0], &byte, 1) == 1);
}

enum { HOLE = 64 << 10 };

/* Writes over the frames of calls that the thread has left. AddressSanitizer is off here, because it would leave a gap
 * around the array. */
__attribute__((noinline, no_sanitize("address"))) static void write_over_old_frames(void) {
    char hole[HOLE];
    memset(hole, 0, sizeof hole);
    __asm__ volatile("" : : "r"(hole) : "memory");
}

static void *leave_an_end_and_wait(void *context) {
    leave_an_end(context);
    write_over_old_frames();
    tell(ready);
    hear(over);
    return NULL;
}

/* Waits with a large array on the stack, to which nothing is written. The frames of earlier calls lie inside the array,
 * so nothing overwrites them. */
__attribute__((noinline)) static void hear_below_old_frames(void) {
    char hole[HOLE];
    __asm__ volatile("" : : "r"(hole) : "memory");
    tell(ready);
    hear(over);
}

static void *leave_an_end_and_wait_below(void *context) {
    leave_an_end(context);
    hear_below_old_frames();
    return NULL;
}

/* The same as end_is_left(), but a second thread makes the call, leaves the call by longjmp, and goes on without
 * CUDA. */
static void end_is_left_elsewhere(void) {
    CUcontext first, second = begin_in_second(&first);
    pthread_t thread;
    MUST(!pipe(ready) && !pipe(over) && !pthread_create(&thread, NULL, leave_an_end_and_wait, second));
    hear(ready);
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB);
    tell(over);
    MUST(!pthread_join(thread, NULL));
    MUST(memstow_restore_(model) == 14 * (int64_t)MIB);
    look();
}

/* The same as end_is_left_elsewhere(), but nobody writes over the frames of the call that the thread has left. A move
 * gives up while the thread lives, and succeeds after the thread has ended. */
static void end_is_left_without_a_sign(void) {
    CUcontext first, second = begin_in_second(&first);
    pthread_t thread;
    MUST(!pipe(ready) && !pipe(over) && !pthread_create(&thread, NULL, leave_an_end_and_wait_below, second));
    hear(ready);
    MUST(memstow_stow_(model) == -EBUSY);
    tell(over);
    MUST(!pthread_join(thread, NULL));
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB && memstow_restore_(model) == 14 * (int64_t)MIB);
    look();
}

/* The same as end_is_left(), but a second thread makes the call, leaves the call by longjmp, and then ends. */
static void end_is_left_by_a_thread(void) {
    CUcontext first, second = begin_in_second(&first);
    pthread_t thread;
    MUST(!pipe(ready) && !pipe(over) && !pthread_create(&thread, NULL, leave_an_end_and_wait, second));
    tell(over);
    MUST(!pthread_join(thread, NULL));
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB && memstow_restore_(model) == 14 * (int64_t)MIB);
    look();
}

static void copy_when_told(void) {
    sim_tell(NULL, NULL);
    tell(ready);
    hear(over);
}

/* The end of a context waits only for a move that works in this context. */
static void another_ends_in_a_move(void) {
    CUcontext first, second = begin_in_second(&first), third;
    pthread_t thread;
    MUST(!cuCtxCreate_v2(&third, 0, 0) && !cuCtxSetCurrent(second) && !pipe(ready) && !pipe(over));
    sim_tell("cuMemcpyDtoHAsync_v2", copy_when_told);
    MUST(!pthread_create(&thread, NULL, stow, NULL));
    hear(ready);
    MUST(!cuCtxDestroy_v2(third) && !moved);
    tell(over);
    MUST(!pthread_join(thread, NULL) && moved == 14 * (int64_t)MIB);
    MUST(memstow_restore_(model) == 14 * (int64_t)MIB);
    look();
}

/* The second move first waits long for another move, and then for the end of a context. */
static void ends_after_a_long_move(void) {
    CUcontext first, second = begin_in_second(&first);
    pthread_t mover, next, ender;
    int64_t next_moved = -EBUSY;
    MUST(!pipe(ready) && !pipe(over));
    sim_tell("cuMemcpyDtoHAsync_v2", copy_when_told);
    MUST(!pthread_create(&mover, NULL, stow, NULL));
    hear(ready);
    MUST(!pthread_create(&next, NULL, stow_also, &next_moved));
    sleep(11);
    sim_slow("cuCtxDestroy_v2", 200000);
    MUST(!pthread_create(&ender, NULL, destroy, second));
    usleep(200000);
    tell(over);
    MUST(!pthread_join(mover, NULL) && !pthread_join(next, NULL) && !pthread_join(ender, NULL));
    MUST(moved == 14 * (int64_t)MIB && !next_moved);
    look_at_pooled(first);
}

enum { STACK = 1 << 20 };
static char *stacks;

static void handle(int number) {
    (void)number;
    tell(ready);
    hear(over);
}

static void be_interrupted(void) {
    sim_tell(NULL, NULL);
    raise(SIGUSR1);
}

/* The thread's signal handlers have a stack right above the thread's own. */
static void *end_and_be_interrupted(void *context) {
    const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    MUST(!sigaltstack(&(stack_t){.ss_sp = stacks + STACK, .ss_size = STACK}, NULL) &&
         !sigaction(SIGUSR1, &action, NULL));
    sim_tell("cuCtxDestroy_v2", be_interrupted);
    MUST(!cuCtxDestroy_v2(context));
    return NULL;
}

/* A signal handler interrupts cuCtxDestroy, and waits. The thread is still inside cuCtxDestroy, so moves wait for
 * it. */
static void end_is_interrupted(void) {
    CUcontext first, second = begin_in_second(&first);
    pthread_t thread, mover;
    pthread_attr_t attributes;
    stacks = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(stacks != MAP_FAILED && !pipe(ready) && !pipe(over));
    MUST(!pthread_attr_init(&attributes) && !pthread_attr_setstack(&attributes, stacks, STACK));
    MUST(!pthread_create(&thread, &attributes, end_and_be_interrupted, second));
    hear(ready);
    MUST(!pthread_create(&mover, NULL, stow, NULL));
    usleep(300000);
    MUST(!stowed_bytes());
    tell(over);
    MUST(!pthread_join(thread, NULL) && !pthread_join(mover, NULL));
    MUST(moved == 6 * (int64_t)MIB);
    look_at_pooled(first);
}

int main(int argc, char **argv) {
    static const struct model_case cases[] = {{"context_again", context_again},
                                              {"other_context", other_context},
                                              {"reset", reset},
                                              {"reset_beside_another", reset_beside_another},
                                              {"destroyed", destroyed},
                                              {"destroyed_in_a_move", destroyed_in_a_move},
                                              {"moved_at_an_end", moved_at_an_end},
                                              {"end_is_left", end_is_left},
                                              {"end_is_left_elsewhere", end_is_left_elsewhere},
                                              {"end_is_left_without_a_sign", end_is_left_without_a_sign},
                                              {"end_is_left_by_a_thread", end_is_left_by_a_thread},
                                              {"another_ends_in_a_move", another_ends_in_a_move},
                                              {"ends_after_a_long_move", ends_after_a_long_move},
                                              {"end_is_interrupted", end_is_interrupted}};
    return model_main(argc, argv, cases, sizeof cases / sizeof *cases, NULL);
}
