/* _worker.c — a program with models that memstow's worker moves, over the simulated driver (a test double). The first
 * argument is the case. With MEMSTOW_IDLE=1 the worker applies the policies when a second has passed without work. The
 * worker lacks the program's descriptors, which the driver needs. So memstow's device thread calls the driver for the
 * worker. */
#include "_model.h"

/* The worker is to stow the model, as soon as it looks. */
static void let_go_out(const struct model *self) {
    MUST(!memstow_owner_policy_(self->owner, MEMSTOW_STOW, 0) && !memstow_owner_idle_(self->owner, 1));
}

/* SIMCUDA_PAGEABLE: the device can read host memory in place, so host memory does not move while a kernel runs. */
static void read_by_a_device(void) {
    struct memstow_figures figures = {.size = sizeof figures};
    struct model self = model_open("host");
    void *at;
    MUST(!cudaMalloc(&at, 4096) && !memstow_scope_enter_(self.owner));
    char *host = malloc(32 * MIB);
    memset(host, 5, 32 * MIB);
    MUST(!memstow_scope_leave_(self.owner));
    launch_endless(NULL);
    uint64_t visits = sim_count("cuCtxSetCurrent");
    let_go_out(&self);
    while (!figures.stowed_bytes && sim_count("cuCtxSetCurrent") == visits) { /* a visit waits for the context's work */
        usleep(10000);
        MUST(!memstow_owner_figures_(self.owner, &figures));
    }
    MUST(!figures.stowed_bytes);
    sim_release_kernels(1);
}

static int is_served(void) {
    uint64_t before = sim_count_ok("cuMemAddressReserve");
    void *at;
    MUST(!cudaMalloc(&at, 6 * MIB));
    return sim_count_ok("cuMemAddressReserve") != before;
}

/* After a move by the worker, memstow still serves requests. Before the move the program has loaded a library, and has
 * allocated a block that is too small to be served. */
static void serving_goes_on(void) {
    struct model self = model_open("first");
    void *small;
    MUST(!memstow_scope_enter_(self.owner) && !cudaMalloc(&small, 65536) && !cudaMalloc(&self.at, 8 * MIB));
    MUST(is_served() && !memstow_scope_leave_(self.owner));
    MUST(dlopen("libanl.so.1", RTLD_NOW));
    let_go_out(&self);
    while (!model_out(&self)) usleep(10000);
    MUST(!memstow_scope_enter_(self.owner) && is_served());
}

/* --- the program ends while the device thread is in the driver */

static int in_call, calls, calls_at_end;

static void take_long(void) {
    __atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST);
    becomes(&in_call, 1);
    usleep(300000);
    becomes(&in_call, 0);
}

/* An exit handler. It is registered before the driver is loaded, so it runs after the driver's exit handlers. */
static void look_at_the_end(void) {
    if (now_is(&in_call) || now_is(&calls) > calls_at_end + 1) _exit(7);
}

/* The driver ends when the present copy is over. No copy begins after that. */
static void ends_meanwhile(void) {
    struct model self = model_open("ten blocks");
    MUST(!atexit(look_at_the_end));
    sim_tell("cuMemcpyDtoHAsync_v2", take_long);
    MUST(!memstow_scope_enter_(self.owner));
    for (int i = 0; i < 10; i++) MUST(!cudaMalloc(&self.at, 4 * MIB));
    MUST(!memstow_scope_leave_(self.owner));
    let_go_out(&self);
    while (!now_is(&in_call)) usleep(1000);
    calls_at_end = now_is(&calls);
}

int main(int argc, char **argv) {
    static const struct model_case cases[] = {{"read_by_a_device", read_by_a_device},
                                              {"serving_goes_on", serving_goes_on},
                                              {"ends_meanwhile", ends_meanwhile}};
    return model_main(argc, argv, cases, sizeof cases / sizeof *cases, NULL);
}
