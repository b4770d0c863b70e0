/* _loads.c — a program that says when it loads a model, over the simulated driver (a test double). Memory that the
 * program allocates while it loads may move. Memory that it allocates in the model's scope at other times is the
 * driver's, and does not move. The first argument is the case. */
#include "_model.h"

static struct model model;

static void *take(size_t bytes, int in_stream) {
    void *at;
    MUST(!(in_stream ? cudaMallocAsync(&at, bytes, NULL) : cudaMalloc(&at, bytes)));
    return at;
}

/* Whether memstow serves such a request now. */
static int serves_as(int in_stream) {
    uint64_t made = sim_count_ok("cuMemAddressReserve");
    void *at = take(7 * MIB, in_stream); /* no other request has this size, so no freed block serves it */
    int served = sim_count_ok("cuMemAddressReserve") != made;
    MUST(!cudaFree(at));
    return served;
}

static int serves(void) {
    int plain = serves_as(0), pooled = serves_as(1);
    MUST(plain == pooled);
    return plain;
}

static void enter(void) {
    model = model_open("unet");
    MUST(!memstow_scope_enter_(model.owner));
}

/* The program works like a denoiser: it loads weights in a phase, and later computes in the same scope. What it
 * allocates for the computation is not served. Only the weights move. */
static void weights_and_temporaries(void) {
    model = model_open("unet");
    model.bytes = 8 * MIB;
    MUST(!memstow_scope_enter_(model.owner) && !memstow_load_begin_(model.owner));
    model.at = take(model.bytes, 0);
    MUST(!memstow_load_end_() && !memstow_scope_leave_(model.owner));
    model_fill(&model);
    MUST(!memstow_scope_enter_(model.owner));
    sim_count_reset();
    void *latent = take(16 * MIB, 1), *last = NULL;
    for (int step = 0; step < 100; step++) {
        last = take(5 * MIB, step & 1);
        MUST(!cudaFree(last));
    }
    MUST(!sim_count("cuMemAddressReserve") && !sim_count("cuMemCreate") && !sim_count("cuMemMap"));
    MUST(!memstow_scope_leave_(model.owner) && !memstow_owner_idle_(model.owner, 1));
    fill(latent, 16 * MIB, 3);
    MUST(memstow_stow_(model.owner) == (int64_t)model.bytes && holds(latent, 16 * MIB, 3));
    MUST(memstow_restore_(model.owner) == (int64_t)model.bytes && model_holds(&model));
}

/* An owner that tells of no phase is served at any time. */
static void without_phases(void) {
    enter();
    MUST(serves());
    struct model other = model_open("vae");
    MUST(!memstow_load_begin_(other.owner) && !memstow_load_end_() && serves());
}

static void nested(void) {
    enter();
    MUST(memstow_load_end_() == -EPERM && serves());
    MUST(!memstow_load_begin_(model.owner) && !memstow_load_begin_(model.owner) && serves());
    MUST(!memstow_load_end_() && serves());
    MUST(!memstow_load_end_() && !serves() && memstow_load_end_() == -EPERM);
    MUST(!memstow_load_begin_(model.owner) && serves() && !memstow_load_end_());
}

static void *compute(void *unused) {
    MUST(!memstow_scope_enter_(model.owner) && !serves() && !memstow_scope_leave_(model.owner));
    return unused;
}

/* A phase belongs to one thread. */
static void in_threads(void) {
    pthread_t thread;
    enter();
    MUST(!memstow_load_begin_(model.owner));
    MUST(!pthread_create(&thread, NULL, compute, NULL) && !pthread_join(thread, NULL));
    MUST(serves() && !memstow_load_end_());
}

/* The load phases of a provisional owner say nothing about the owner that adopts it. */
static void adopted(void) {
    struct model last = model_open("checkpoint");
    enter();
    MUST(!memstow_load_begin_(model.owner) && serves() && !memstow_owner_adopt_(last.owner, model.owner) && serves());
    MUST(!memstow_load_end_() && serves());
    MUST(!memstow_load_begin_(model.owner) && !memstow_load_end_() && !serves());
}

int main(int argc, char **argv) {
    static const struct model_case cases[] = {{"weights_and_temporaries", weights_and_temporaries},
                                              {"without_phases", without_phases},
                                              {"nested", nested},
                                              {"in_threads", in_threads},
                                              {"adopted", adopted}};
    return model_main(argc, argv, cases, sizeof cases / sizeof *cases, NULL);
}
