/* _backups.c — a program whose models leave a device of 64 MiB for pinned memory, ordinary memory and a disk, over the
 * simulated driver (a test double). The first argument is the case. The environment has the limits. */
#include "_model.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

static struct model first, second;

static void load(void) {
    first = model_load("first", 20 * MIB, 0, 1);
    second = model_load("second", 10 * MIB, 0, 1);
}

static void out(const struct model *self) { MUST(memstow_stow_(self->owner) == (int64_t)self->bytes); }

static void back(const struct model *self) {
    MUST(memstow_restore_(self->owner) == (int64_t)self->bytes && !model_out(self) && model_holds(self));
}

/* Bytes of mappings of stow files. */
static uint64_t in_files(void) {
    char line[512];
    uint64_t sum = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (strstr(line, "/#") && strstr(line, " (deleted)") && sscanf(line, "%lx-%lx", &start, &end) == 2)
            sum += end - start;
    }
    fclose(maps);
    return sum;
}

/* MEMSTOW_CUDA_PINNED=24M: the first model moves to pinned memory, which leaves no room there for the second. The
 * pinned memory stays pinned for the next move. */
static void pinned(void) {
    load();
    out(&first);
    MUST(usage().registered == 20 * MIB && usage().pinned / MIB == 64);
    out(&second);
    MUST(usage().registered == 20 * MIB && usage().pinned / MIB == 64);
    back(&second);
    back(&first);
    uint64_t pins = sim_count("cuMemHostRegister_v2");
    MUST(usage().registered == 20 * MIB);
    out(&second);
    MUST(usage().registered == 20 * MIB && sim_count("cuMemHostRegister_v2") == pins);
    back(&second);
    out(&first);
    MUST(!cudaFree(first.at)); /* freed while it is out */
    MUST(usage().registered == 20 * MIB && sim_count("cuMemHostRegister_v2") == pins);
}

/* MEMSTOW_CUDA_PINNED=40M: under pressure, pinned memory that holds no content is unpinned. */
static void pinned_under_pressure(void) {
    load();
    out(&first);
    out(&second);
    back(&first);
    MUST(usage().registered == 30 * MIB && memstow_trigger_(MEMSTOW_RUN_ENDED, "") >= 0);
    MUST(usage().registered == 30 * MIB && memstow_trigger_(MEMSTOW_PRESSURE, "") >= 0);
    MUST(usage().registered == 10 * MIB);
    back(&second);
    MUST(memstow_trigger_(MEMSTOW_PRESSURE, "") >= 0 && !usage().registered);
}

/* MEMSTOW_CUDA_PINNED=24M, MEMSTOW_CUDA_HOST=24M: pinned memory without content is unpinned, because the limit for host
 * memory leaves no room for the first model beside it. */
static void pinned_makes_room(void) {
    load();
    out(&second);
    back(&second);
    MUST(usage().registered == 10 * MIB);
    sim_fail("cuMemHostRegister_v2", 1, OUT_OF_MEMORY, 1);
    out(&first);
    MUST(!usage().registered);
    back(&first);
}

/* MEMSTOW_CUDA_HOST=12M: the first model has no room on the host, but its content may be discarded. It leaves without a
 * copy, and comes back with other content, because the double fills fresh memory with noise. The program may write to
 * this memory. The other model keeps its content. */
static void discarded(void) {
    load();
    MUST(memstow_stow_(first.owner) == -ENOMEM && !memstow_owner_discard_(first.owner, 1));
    uint64_t used = usage().used;
    sim_count_reset();
    out(&first);
    MUST(usage().used == used - 20 * MIB && model_out(&first) == 20 * MIB && !sim_count("cuMemcpyDtoHAsync_v2"));
    out(&second);
    MUST(memstow_restore_(first.owner) == (int64_t)(20 * MIB) && !model_out(&first) && !model_holds(&first));
    MUST(!sim_count("cuMemcpyHtoDAsync_v2"));
    model_fill(&first);
    MUST(model_holds(&first));
    back(&second);
}

/* Whether content is given up is decided when the memory leaves; later calls of memstow_owner_discard do not change
 * that. Memory that is out may be freed. */
static void discarded_later(void) {
    load();
    out(&first);
    MUST(!memstow_owner_discard_(first.owner, 1));
    back(&first);
    out(&first);
    MUST(!memstow_owner_discard_(first.owner, 0));
    MUST(memstow_restore_(first.owner) == (int64_t)(20 * MIB) && !model_holds(&first));
    model_fill(&first);
    out(&first);
    back(&first);
    MUST(!memstow_owner_discard_(second.owner, 1));
    uint64_t used = usage().used;
    out(&second);
    MUST(!cudaFree(second.at) && usage().used == used - 10 * MIB);
}

/* By default no model goes to pinned memory. */
static void not_pinned(void) {
    load();
    out(&first);
    out(&second);
    MUST(!usage().registered && !in_files());
    back(&first);
    back(&second);
}

/* MEMSTOW_CUDA_KEEP=24M: the host keeps its copy of a model that has come back. If nobody has written to the model, it
 * leaves the device again without a new copy. Under pressure, the memory of the kept copy is given back. */
static void kept(void) {
    load();
    out(&first);
    back(&first);
    uint64_t copies = sim_count_ok("cuMemcpyDtoHAsync_v2");
    out(&first);
    MUST(sim_count_ok("cuMemcpyDtoHAsync_v2") == copies);
    back(&first);
    MUST(memstow_trigger_(MEMSTOW_RUN_ENDED, "") >= 0);
    out(&first);
    back(&first);
    MUST(memstow_trigger_(MEMSTOW_PRESSURE, "") >= 0);
    out(&first);
    MUST(sim_count_ok("cuMemcpyDtoHAsync_v2") > copies);
    back(&first);
}

/* MEMSTOW_CUDA_KEEP=24M, but the driver refuses memstow's kernel: everything is copied, and the trace says why. */
static void kept_without_kernels(void) {
    load();
    sim_fail("cuModuleLoadData", 1, 222, 1);
    for (int i = 0; i < 2; i++) {
        uint64_t copies = sim_count_ok("cuMemcpyDtoHAsync_v2");
        out(&first);
        MUST(sim_count_ok("cuMemcpyDtoHAsync_v2") > copies);
        back(&first);
    }
}

/* The driver refuses to pin memory, so the model moves out into ordinary memory. */
static void cannot_be_pinned(void) {
    load();
    sim_fail("cuMemHostRegister_v2", 1, OUT_OF_MEMORY, 1);
    out(&first);
    MUST(!usage().registered);
    back(&first);
}

/* MEMSTOW_CUDA_HOST=12M, MEMSTOW_CUDA_DISK=40M: what does not fit into memory goes to a disk. */
static void to_disk(void) {
    load();
    out(&first);
    MUST(in_files() == 20 * MIB);
    out(&second);
    MUST(in_files() == 20 * MIB);
    back(&first);
    MUST(!in_files());
    back(&second);
    out(&first);
    MUST(!cudaFree(first.at) && !in_files());
}

/* Both models are stowed and stay out until the end. The test reads the ledger. */
static void stays_out(void) {
    load();
    out(&first);
    out(&second);
}

/* A full disk or a limit refuses the move. memstow_stow returns `expected`, and the memory stays in place,
 * unchanged. */
static int64_t expected;
static void refused(void) {
    load();
    int64_t answer = memstow_stow_(first.owner);
    if (answer != expected) fprintf(stderr, "%lld: %s\n", (long long)answer, memstow_error_());
    MUST(answer == expected && !model_out(&first) && !in_files() && model_holds(&first));
    out(&second); /* there is room in memory */
    back(&second);
}

/* A move of device memory is refused. When a later move of host memory is refused, too, memstow_error() must not give
 * the reason of the first move. */
static void whose_reason(void) {
    struct model host = model_open("host");
    load();
    MUST(memstow_stow_(first.owner) == -ENOTSUP && strstr(memstow_error_(), "no usable directory"));
    MUST(!memstow_scope_enter_(host.owner) && (host.at = malloc(8 * MIB)) && !memstow_scope_leave_(host.owner));
    memset(host.at, 1, 8 * MIB);
    MUST(memstow_stow_(host.owner) == -ENOTSUP && strstr(memstow_error_(), "the trace has the reasons"));
}

/* The simulated device is a file, too, so the limit on file sizes is set only for the move. */
static void file_limit(void) {
    struct rlimit before, small;
    load();
    MUST(!getrlimit(RLIMIT_FSIZE, &before));
    small = (struct rlimit){8 * MIB, before.rlim_max};
    MUST(!setrlimit(RLIMIT_FSIZE, &small) && memstow_stow_(first.owner) == -ENOSPC);
    MUST(!setrlimit(RLIMIT_FSIZE, &before) && !model_out(&first) && model_holds(&first));
}

/* The content of the first model is in a file, and the end of this file is cut off. Restoring the model fails, and the
 * model stays out. The program lives on, and can use the second model. */
static void unreadable(void) {
    char line[512], path[64] = "";
    load();
    out(&first);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (!strstr(line, "/#") || sscanf(line, "%lx-%lx", &start, &end) != 2) continue;
        snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", start, end);
    }
    fclose(maps);
    MUST(*path);
    if (truncate(path, 10 * MIB)) return; /* the test may not be able to reach the file */
    uint64_t used = usage().used;
    MUST(memstow_restore_(first.owner) == -EIO && model_out(&first) == 20 * MIB && usage().used == used);
    MUST(memstow_restore_(first.owner) == -EIO && model_holds(&second));
}

/* kill -9 in the middle of writing. */
static void *kill_at_the_second(void *unused) {
    uint64_t before = sim_count("cuEventSynchronize");
    while (sim_count("cuEventSynchronize") == before) usleep(100);
    kill(getpid(), SIGKILL);
    return unused;
}

static void killed(void) {
    pthread_t thread;
    load();
    MUST(!pthread_create(&thread, NULL, kill_at_the_second, NULL));
    sim_set_latency_us(50000);
    memstow_stow_(first.owner);
    MUST(!"still there");
}

/* --- fork, while something is out --- */

/* Whether the page at this address is mapped. */
static int is_mapped(uintptr_t at) {
    unsigned char there;
    return !mincore((void *)(at & ~(uintptr_t)4095), 4096, &there);
}

static void in_child(uintptr_t backup) {
    struct memstow_figures figures = {.size = sizeof figures};
    uint64_t calls = sim_count("*");
    MUST(!memstow_owner_figures_(first.owner, &figures) && !figures.cuda_bytes && !figures.device_stowed_bytes);
    MUST(!memstow_owner_figures_(second.owner, &figures) && !figures.cuda_bytes && !figures.device_stowed_bytes);
    MUST(memstow_restore_(first.owner) == 0 && memstow_stow_(second.owner) >= 0);
    MUST(sim_count("*") == calls); /* the device is not asked for anything */
    MUST(!is_mapped(backup) && !in_files());
}

/* Finds memstow's copy by its first bytes, which are nowhere else. */
static uintptr_t find_backup(const struct model *self) {
    char line[512], start_of[64];
    uintptr_t found = 0;
    for (size_t i = 0; i < sizeof start_of; i++) start_of[i] = (char)(i * 13 + self->owner);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (!found && fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx rw", &start, &end) != 2 || !strstr(line, "rw-p")) continue;
        for (uintptr_t at = start; at + self->bytes <= end && !found; at += 4096)
            if (!memcmp((void *)at, start_of, sizeof start_of)) found = at;
    }
    fclose(maps);
    return found;
}

static void forked(void) {
    int status;
    load();
    out(&first);
    out(&second);
    uintptr_t backup = find_backup(&second);
    MUST(backup && is_mapped(backup));
    pid_t child = fork();
    if (!child) {
        in_child(backup);
        _exit(42);
    }
    MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
    back(&first);
    back(&second);
}

/* --- memory that does not leave: other code may know its address, or it belongs to several models --- */

enum { BLOCK = 2 * MIB };

static char *block_of(uint32_t owner) {
    void *at;
    MUST(!memstow_scope_enter_(owner) && !cudaMalloc(&at, BLOCK) && !memstow_scope_leave_(owner));
    return at;
}

static int why_is(int64_t result, const char *text) {
    if (result == -EPERM && strstr(memstow_error_(), text)) return 1;
    fprintf(stderr, "%lld: %s\n", (long long)result, memstow_error_());
    return 0;
}

/* Five models each have a block that cannot leave, and memstow_error() has the text of the reason. A sixth model has
 * two blocks that cannot leave, for different reasons, and one block that can. */
static void others_know(void) {
    static const char *const names[] = {"handle", "range", "attribute", "token"};
    struct model each[4], mixed = model_open("mixed"), vae = model_open("vae"), all = model_open("all");
    CUmemGenericAllocationHandle handle;
    int shared, on = 1;
    uint64_t tokens[2];
    char *at;
    for (int i = 0; i < 4; i++) {
        each[i] = model_open(names[i]);
        each[i].at = block_of(each[i].owner);
        MUST(!memstow_owner_idle_(each[i].owner, 1));
    }
    MUST(!cuMemRetainAllocationHandle(&handle, each[0].at));
    MUST(!cuMemGetHandleForAddressRange(&shared, (CUdeviceptr)each[1].at, BLOCK, 1, 0));
    cuPointerSetAttribute(&on, CU_POINTER_SYNC_MEMOPS, (CUdeviceptr)each[2].at + 4096);
    cuPointerGetAttribute(tokens, 5, (CUdeviceptr)each[3].at);
    MUST(why_is(memstow_stow_(each[0].owner), "cuMemRetainAllocationHandle"));
    MUST(why_is(memstow_stow_(each[1].owner), "exported"));
    MUST(why_is(memstow_stow_(each[2].owner), "GPUDirect RDMA"));
    MUST(why_is(memstow_stow_(each[3].owner), "GPUDirect RDMA"));
    at = block_of(mixed.owner);
    MUST(!memstow_owner_idle_(mixed.owner, 1) && !memstow_assign_(vae.owner, at + MIB, MIB));
    MUST(!memstow_assign_(all.owner, at, 4096) && why_is(memstow_stow_(mixed.owner), "belong to other owners"));
    at = block_of(all.owner);
    MUST(!cuMemRetainAllocationHandle(&handle, at) && !memstow_assign_(vae.owner, block_of(all.owner), MIB));
    block_of(all.owner);
    MUST(!memstow_owner_idle_(all.owner, 1) && memstow_stow_(all.owner) == BLOCK && model_out(&all) == BLOCK);
}

/* MEMSTOW_CUDA_HOST=12M. One block can never move, one moves, and one finds no room. Each reason is reported with its
 * bytes. */
static void two_reasons(void) {
    struct model all = model_open("all");
    CUmemGenericAllocationHandle handle;
    void *at;
    MUST(!memstow_scope_enter_(all.owner) && !cudaMalloc(&at, 20 * MIB));
    MUST(!cudaMalloc(&all.at, 8 * MIB) && !memstow_scope_leave_(all.owner));
    MUST(!cuMemRetainAllocationHandle(&handle, block_of(all.owner)) && !memstow_owner_idle_(all.owner, 1));
    MUST(memstow_stow_(all.owner) == 8 * (int64_t)MIB && model_out(&all) == 8 * MIB);
    MUST(memstow_stow_(all.owner) == -ENOMEM && strstr(memstow_error_(), "no host memory"));
}

int main(int argc, char **argv) {
    static const struct model_case cases[] = {{"pinned", pinned},
                                              {"pinned_makes_room", pinned_makes_room},
                                              {"pinned_under_pressure", pinned_under_pressure},
                                              {"not_pinned", not_pinned},
                                              {"kept", kept},
                                              {"kept_without_kernels", kept_without_kernels},
                                              {"discarded", discarded},
                                              {"discarded_later", discarded_later},
                                              {"cannot_be_pinned", cannot_be_pinned},
                                              {"whose_reason", whose_reason},
                                              {"two_reasons", two_reasons},
                                              {"to_disk", to_disk},
                                              {"stays_out", stays_out},
                                              {"refused", refused},
                                              {"file_limit", file_limit},
                                              {"unreadable", unreadable},
                                              {"killed", killed},
                                              {"forked", forked},
                                              {"others_know", others_know}};
    if (argc > 2) expected = atoi(argv[2]);
    return model_main(argc, argv, cases, sizeof cases / sizeof *cases, NULL);
}
