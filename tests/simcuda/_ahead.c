/* _ahead.c — a program whose models leave a device, mostly into host memory that memstow pinned ahead of need; over the
 * simulated driver (a test double). The first argument is the case. The environment has the limits. A thread of memstow
 * pins ahead of need, so the cases wait for the result. To check that nothing is pinned, they wait for a while. */
#include "_model.h"

#include <sys/wait.h>
#include <time.h>

static const char PIN[] = "cuMemHostRegister_v2";
enum { A_WHILE_US = 100000 };

/* --- counts the calls that pin memory, and makes them wait */

static pid_t main_thread;
static int by_main, by_others, entered, released; /* atomic */

static void count_pins(void) {
    __atomic_fetch_add(gettid() == main_thread ? &by_main : &by_others, 1, __ATOMIC_SEQ_CST);
}

static void hold_pins(void) {
    count_pins();
    becomes(&entered, 1);
    while (!now_is(&released)) usleep(1000);
}

static void wait_for_pinned(uint64_t bytes) {
    while (usage().registered != bytes || usage().pinned / MIB != 64) usleep(1000);
}

static struct model first, second;

static void begin(void) {
    main_thread = gettid();
    sim_tell(PIN, count_pins);
    first = model_load("first", 20 * MIB, 0, 1);
}

/* Does the same as begin(), but the thread that pins stays within its first call. */
static void begin_held(void) {
    main_thread = gettid();
    sim_tell(PIN, hold_pins);
    first = model_load("first", 20 * MIB, 0, 1);
    while (!now_is(&entered)) usleep(1000);
}

/* Does the same as begin_held(). Then another thread begins `work`, which must wait for the piece that is being
 * pinned. */
static pthread_t begin_beside_a_piece(void *(*work)(void *unused)) {
    pthread_t other;
    begin_held();
    MUST(!pthread_create(&other, NULL, work, NULL));
    usleep(A_WHILE_US);
    return other;
}

static void out(const struct model *self) { MUST(memstow_stow_(self->owner) == (int64_t)self->bytes); }

static void back(const struct model *self) {
    MUST(memstow_restore_(self->owner) == (int64_t)self->bytes && !model_out(self) && model_holds(self));
}

static void there_and_back(const struct model *self) {
    out(self);
    back(self);
}

/* The memory is pinned in time: a move pins nothing, and makes no buffers for copies. */
static void in_time(void) {
    begin();
    wait_for_pinned(20 * MIB);
    sim_count_reset();
    there_and_back(&first);
    MUST(!sim_count(PIN) && sim_count("cuMemHostAlloc") == buffers() - 4 && !by_main && by_others == 1);
    second = model_load("second", 10 * MIB, 0, 1);
    wait_for_pinned(30 * MIB);
    out(&first);
    there_and_back(&second);
    back(&first);
    MUST(!by_main && by_others == 2);
}

/* MEMSTOW_CUDA_PINNED=600M: memory of 300 MiB is pinned in two calls, while the program is still loading the model. */
static void in_large_pieces(void) {
    struct model large = model_open("large");
    void *rest;
    main_thread = gettid();
    sim_tell(PIN, count_pins);
    MUST(!memstow_scope_enter_(large.owner) && !cudaMalloc(&large.at, 256 * MIB));
    wait_for_pinned(256 * MIB);
    MUST(!cudaMalloc(&rest, 44 * MIB) && !memstow_scope_leave_(large.owner));
    wait_for_pinned(300 * MIB);
    MUST(!by_main && by_others == 2);
}

/* MEMSTOW_CUDA_PINNED=24M: no more than that is pinned. */
static void within_the_limit(void) {
    begin();
    second = model_load("second", 10 * MIB, 0, 1);
    wait_for_pinned(24 * MIB);
    out(&first);
    there_and_back(&second);
    back(&first);
    MUST(!by_main && usage().registered == 24 * MIB);
}

/* A move that comes before the scope's end pins memory itself. */
static void before_the_scope_ends(void) {
    first = model_open("first");
    first.bytes = 20 * MIB;
    main_thread = gettid();
    sim_tell(PIN, count_pins);
    MUST(!memstow_scope_enter_(first.owner) && !cudaMalloc(&first.at, first.bytes));
    model_fill(&first);
    MUST(!memstow_owner_idle_(first.owner, 1));
    there_and_back(&first);
    MUST(by_main == 1 && !by_others && !memstow_scope_leave_(first.owner));
    wait_for_pinned(20 * MIB);
    MUST(by_main == 1 && !by_others);
}

/* MEMSTOW_CUDA_AHEAD=0: nothing is pinned ahead of need, so the move pins memory itself. */
static void turned_off(void) {
    begin();
    usleep(A_WHILE_US);
    MUST(!usage().registered && !usage().pinned);
    there_and_back(&first);
    MUST(by_main == 1 && !by_others);
}

static void *stow_and_restore(void *unused) {
    there_and_back(&first);
    return unused;
}

/* A move waits until the piece that is being pinned is ready, and then uses this piece. */
static void in_the_middle(void) {
    pthread_t mover = begin_beside_a_piece(stow_and_restore);
    MUST(!model_out(&first));
    becomes(&released, 1);
    MUST(!pthread_join(mover, NULL) && by_others == 1 && usage().registered == 20 * MIB);
}

/* No thread of the program waits for pinning when it allocates, frees or computes. */
static void nobody_waits(void) {
    void *other;
    begin_held();
    second = model_load("second", 10 * MIB, 0, 1);
    MUST(!cudaMalloc(&other, 5 * MIB) && !cudaFree(other) && !cudaDeviceSynchronize() && !cudaFree(second.at));
    MUST(!usage().registered);
    becomes(&released, 1);
    wait_for_pinned(20 * MIB);
}

static CUstream capture_begins(void) {
    CUstream stream;
    MUST(!cuStreamCreate(&stream, 1) && !cuStreamBeginCapture_v2(stream, 0));
    return stream;
}

static void capture_ends(CUstream stream) {
    CUgraph graph;
    MUST(!cuStreamEndCapture(stream, &graph) && graph);
}

/* While a stream is captured, nothing is pinned. */
static void beside_a_capture(void) {
    first = model_open("first");
    first.bytes = 20 * MIB;
    MUST(!memstow_scope_enter_(first.owner) && !cudaMalloc(&first.at, first.bytes));
    model_fill(&first);
    CUstream stream = capture_begins();
    uint64_t before = sim_count("*");
    MUST(!memstow_scope_leave_(first.owner));
    usleep(A_WHILE_US);
    MUST(sim_count("*") == before);
    capture_ends(stream);
    wait_for_pinned(20 * MIB);
    MUST(!memstow_owner_idle_(first.owner, 1));
    there_and_back(&first);
}

/* A capture may begin in the middle of a call that pins. */
static void before_a_capture(void) {
    begin_held();
    CUstream stream = capture_begins();
    becomes(&released, 1);
    while (usage().registered != 20 * MIB) usleep(1000);
    capture_ends(stream);
    wait_for_pinned(20 * MIB);
    there_and_back(&first);
}

/* After pressure, nothing is pinned ahead of need until a move has pinned memory itself. */
static void under_pressure(void) {
    struct model third;
    begin();
    wait_for_pinned(20 * MIB);
    MUST(memstow_trigger_(MEMSTOW_PRESSURE, "") >= 0 && !usage().registered);
    second = model_load("second", 10 * MIB, 0, 1);
    usleep(A_WHILE_US);
    MUST(!usage().registered && by_others == 1);
    out(&first);
    MUST(by_main && usage().registered >= 20 * MIB);
    back(&first);
    third = model_load("third", 30 * MIB, 0, 1);
    wait_for_pinned(60 * MIB);
    there_and_back(&third);
}

/* The control group has so little memory left that the next move would unpin what was pinned ahead of need. So nothing
 * is pinned. */
static void little_left(void) {
    begin();
    usleep(A_WHILE_US);
    MUST(!usage().registered && !usage().pinned);
}

/* The driver refuses to pin memory ahead of need. memstow does not try this again; a move pins its memory itself. */
static void refused(void) {
    sim_fail(PIN, 1, OUT_OF_MEMORY, 1);
    begin();
    while (!sim_count(PIN)) usleep(1000);
    second = model_load("second", 10 * MIB, 0, 1);
    usleep(A_WHILE_US);
    MUST(sim_count(PIN) == 1 && !usage().registered);
    there_and_back(&first);
    MUST(by_main == 1 && usage().registered >= 20 * MIB);
}

/* Each call of the driver by memstow's thread fails once. */
static void half_way(void) {
    static const char *const calls[] = {"cuCtxGetCurrent",
                                        "cuThreadExchangeStreamCaptureMode",
                                        "cuCtxSetCurrent",
                                        "cuStreamCreate",
                                        "cuEventCreate",
                                        "cuMemHostAlloc",
                                        PIN};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct model model = model_open(calls[i]);
        model.bytes = 4 * MIB;
        MUST(!memstow_scope_enter_(model.owner) && !cudaMalloc(&model.at, model.bytes));
        model_fill(&model);
        sim_fail(calls[i], 1, OUT_OF_MEMORY, 1);
        MUST(!memstow_scope_leave_(model.owner));
        usleep(A_WHILE_US / 5);
        sim_fail(NULL, 0, 0, 0);
        MUST(!memstow_owner_idle_(model.owner, 1));
        there_and_back(&model);
    }
}

static void *reset(void *unused) {
    MUST(!cudaDeviceReset());
    return unused;
}

/* --- two devices; each has memory pinned in its own context */

static int copies_held, is_over;

static void hold_copies(void) {
    if (!__atomic_exchange_n(&copies_held, 1, __ATOMIC_SEQ_CST)) sim_hold(1);
}

static void *stow_second(void *unused) {
    MUST(!cudaSetDevice(1));
    out(&second);
    return unused;
}

static void *reset_first_device(void *unused) {
    MUST(!cudaSetDevice(0) && !cudaDeviceReset());
    becomes(&is_over, 1);
    return unused;
}

/* A model leaves device 1. The move copies into memory that was pinned in the context of device 0. Meanwhile device 0
 * is reset. The reset waits for the copies. */
static void reset_of_another(void) {
    pthread_t mover, other;
    MUST(!cudaSetDevice(0));
    begin();
    while (usage().registered != 20 * MIB) usleep(1000);
    MUST(!cudaSetDevice(1));
    second = model_load("second", 10 * MIB, 0, 1);
    while (usage().registered != 30 * MIB) usleep(1000);
    sim_tell("cuMemcpyDtoHAsync_v2", hold_copies);
    MUST(!pthread_create(&mover, NULL, stow_second, NULL));
    while (!now_is(&copies_held)) usleep(1000);
    MUST(!pthread_create(&other, NULL, reset_first_device, NULL));
    usleep(A_WHILE_US);
    MUST(!now_is(&is_over) && usage().registered == 30 * MIB);
    sim_hold(-1);
    MUST(!pthread_join(mover, NULL) && !pthread_join(other, NULL) && !usage().faults);
    MUST(memstow_restore_(second.owner) == (int64_t)second.bytes && model_holds(&second));
}

static int takes_long;

static void pin_for_long(void) {
    if (now_is(&takes_long)) becomes(&entered, 1), sleep(6);
}

/* Pinning memory for the second model takes long. Meanwhile the first model is restored. The restore waits until the
 * second model's memory is pinned, although the first model does not use this memory. */
static void beside_a_long_piece(void) {
    sim_tell(PIN, pin_for_long);
    first = model_load("first", 10 * MIB, 0, 1);
    wait_for_pinned(10 * MIB);
    out(&first);
    becomes(&takes_long, 1);
    second = model_load("second", 10 * MIB, 0, 1);
    while (!now_is(&entered)) usleep(1000);
    back(&first);
}

/* The end of a context waits until the call that pins memory has returned. In the next context, memory is pinned ahead
 * of need again. */
static void reset_meanwhile(void) {
    pthread_t other = begin_beside_a_piece(reset);
    becomes(&released, 1);
    MUST(!pthread_join(other, NULL) && !usage().registered);
    second = model_load("second", 10 * MIB, 0, 1);
    wait_for_pinned(20 * MIB);
    there_and_back(&second);
    MUST(!by_main);
}

static time_t seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* The child does not wait for the parent's thread, which would take 5 seconds. */
static void child_ends(void) {
    int status;
    time_t begin = seconds_now();
    pid_t child = fork();
    if (!child) exit(0);
    MUST(waitpid(child, &status, 0) == child && !status && seconds_now() < begin + 4);
}

static void forked(void) {
    begin_held();
    child_ends();
    becomes(&released, 1);
    wait_for_pinned(20 * MIB);
    child_ends();
    there_and_back(&first);
}

static void let_go(void) { becomes(&released, 1); }

static void was_no_error(void) {
    if (sim_count_ok(PIN) != 1 || by_others != 1) _exit(7);
}

/* The program ends in the middle of a call that pins. The driver ends only when the call is over. */
static void at_the_end(void) {
    MUST(!atexit(was_no_error));
    begin_held();
    MUST(!atexit(let_go));
}

int main(int argc, char **argv) {
    static const struct model_case cases[] = {{"in_time", in_time},
                                              {"in_large_pieces", in_large_pieces},
                                              {"within_the_limit", within_the_limit},
                                              {"before_the_scope_ends", before_the_scope_ends},
                                              {"turned_off", turned_off},
                                              {"in_the_middle", in_the_middle},
                                              {"nobody_waits", nobody_waits},
                                              {"beside_a_capture", beside_a_capture},
                                              {"before_a_capture", before_a_capture},
                                              {"under_pressure", under_pressure},
                                              {"little_left", little_left},
                                              {"refused", refused},
                                              {"half_way", half_way},
                                              {"reset_meanwhile", reset_meanwhile},
                                              {"reset_of_another", reset_of_another},
                                              {"beside_a_long_piece", beside_a_long_piece},
                                              {"forked", forked},
                                              {"at_the_end", at_the_end}};
    return model_main(argc, argv, cases, sizeof cases / sizeof *cases, NULL);
}
