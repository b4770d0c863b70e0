// shows
/* costs.c — what the calls about physical memory cost, at several sizes; and which calls wait for a kernel that runs in
 * another stream. memstow makes such calls when it gives freed memory back. It does so when the program allocates, or
 * asks how much memory is free. So if the calls wait, the program waits. Each time includes memstow's hook and the
 * driver. With the simulated driver, a test double, no time is shown. */
#include "gpu.h"

enum { TIMES = 5, LARGEST = 1024, FEW = 1 << 20, MANY = 1 << 26 };
/* Sizes in MiB of the calls that are made while a kernel runs: BESIDE for the calls in the table STEPS below, PIECE for
 * those in the table MORE. MORE has only one size, because pinning more memory than this may take longer than the
 * kernel runs. */
static const size_t BESIDE[] = {2, 64, LARGEST};
enum { PIECE = 64 };
static const double ENOUGH = 0.3, LEAST = 0.05; /* seconds that the kernel should run, and must */

static CUdeviceptr at, worked_on, allocated, in_stream;
static CUmemGenericAllocationHandle memory;
static void *pinned;
static CUstream busy, other, fresh;
static size_t size, words = FEW;

static CUresult reserve(void) { return cu.reserve(&at, size, 0, 0, 0); }
static CUresult create(void) {
    CUmemAllocationProp is = {.type = 1, .location = {1, 0}};
    return cu.create(&memory, size, &is, 0);
}
static CUresult map(void) { return cu.map(at, size, 0, memory, 0); }
static CUresult open_it(void) { return cu.access(at, size, &(CUmemAccessDesc){.location = {1, 0}, .flags = 3}, 1); }
static CUresult unmap(void) { return cu.unmap(at, size); }
static CUresult release(void) { return cu.release(memory); }
static CUresult unreserve(void) { return cu.unreserve(at, size); }

static CUresult info(void) {
    size_t available, total;
    return cu.info(&available, &total);
}
static CUresult pin(void) { return cu.host_alloc(&pinned, size, 0); }
static CUresult unpin(void) { return cu.host_free(pinned); }
static CUresult make_stream(void) { return cu.stream(&fresh, 1); }
static CUresult alloc_async(void) { return cu.alloc_async(&in_stream, size, other); }
static CUresult free_async(void) { return cu.free_async(in_stream, other); }
static CUresult alloc(void) { return cu.alloc(&allocated, size); }
static CUresult free_it(void) { return cu.free(allocated); }

static const struct step {
    const char *name;
    CUresult (*call)(void);
} STEPS[] = {{"reserve", reserve}, {"create", create},      {"map", map}, {"access", open_it}, {"unmap", unmap},
             {"release", release}, {"unreserve", unreserve}},
  MORE[] = {{"info", info},
            {"pin", pin},
            {"unpin", unpin},
            {"stream", make_stream},
            {"alloc_async", alloc_async},
            {"free_async", free_async},
            {"alloc", alloc},
            {"free", free_it}};
enum { STEPS_COUNT = sizeof STEPS / sizeof *STEPS, MORE_COUNT = sizeof MORE / sizeof *MORE };

static double timed(const struct step *step) {
    double begin = gpu_seconds();
    gpu_ok(step->call(), step->name, __FILE__, __LINE__);
    return gpu_seconds() - begin;
}

/* --- the time of each call on a device that does nothing else --- */

static void costs(size_t mib) {
    double least[STEPS_COUNT];
    size = mib * MIB;
    for (int turn = 0; turn < TIMES; turn++)
        for (int i = 0; i < STEPS_COUNT; i++) {
            double took = timed(&STEPS[i]);
            if (!turn || took < least[i]) least[i] = took;
        }
    for (int i = 0; i < STEPS_COUNT && !gpu_is_double; i++)
        printf("figure us_%s_%zu %.1f\n", STEPS[i].name, mib, least[i] * 1e6);
}

/* --- which calls wait for a kernel of another stream --- */

/* Launches a kernel with few threads, each of which waits for the device's memory again and again. */
static void work(void) {
    uint64_t to = worked_on, count = words;
    void *arguments[] = {&to, &to, &count};
    OK(cu.launch(gpu_add_kernel, 1, 1, 1, 32, 1, 1, 0, busy, arguments, NULL));
}

static double work_takes(void) {
    double begin = gpu_seconds();
    work();
    OK(cu.stream_wait(busy));
    return gpu_seconds() - begin;
}

/* Finds for how many words a kernel takes long enough. A double's kernel takes as long as the double's latency says,
 * for any number of words. Returns false if this latency is too short. */
static bool find_words(void) {
    if (gpu_is_double) {
        words = 1;
        return work_takes() >= LEAST;
    }
    work_takes(); /* the first launch loads the kernel */
    double took = work_takes(), more = ENOUGH / took;
    if (more > 1) words = (double)words * more < MANY ? (size_t)((double)words * more) : MANY;
    took = work_takes();
    printf("the kernel takes %.0f ms\n", took * 1e3);
    MUST(took >= LEAST);
    return true;
}

static bool has_waited(const struct step *step, double *took) {
    work();
    MUST(cu.stream_query(busy) == CUDA_ERROR_NOT_READY);
    *took = timed(step);
    bool waited = cu.stream_query(busy) == CUDA_SUCCESS;
    OK(cu.stream_wait(busy));
    return waited;
}

/* A call counts as waiting only if it waits in each turn, because on a busy machine a call that does not wait may end
 * late in some turn. */
static void waits(const struct step *steps, int count, size_t mib) {
    enum { TURNS = 3, MOST = 32 };
    bool each_time[MOST];
    double took, least[MOST];
    MUST(count <= MOST);
    size = mib * MIB;
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < count; i++) {
            each_time[i] = has_waited(&steps[i], &took) && (!turn || each_time[i]);
            if (!turn || took < least[i]) least[i] = took;
        }
    for (int i = 0; i < count; i++) {
        printf("figure waits_%s_%zu %d\n", steps[i].name, mib, each_time[i]);
        if (!gpu_is_double) printf("figure us_%s_%zu_beside_a_kernel %.1f\n", steps[i].name, mib, least[i] * 1e6);
    }
}

static bool has_room(size_t mib) { return gpu_free_bytes() > 2 * mib * MIB; }

static void all_waits(void) {
    for (size_t i = 0; i < sizeof BESIDE / sizeof *BESIDE; i++)
        if (has_room(BESIDE[i])) waits(STEPS, STEPS_COUNT, BESIDE[i]);
    waits(MORE, MORE_COUNT, PIECE);
}

/* --- what the first stream, and the first pinned memory, take from the device --- */

static void first(void) {
    size_t before = gpu_free_bytes(), then;
    OK(cu.stream(&busy, 1));
    then = gpu_free_bytes();
    printf("figure first_stream_takes %lld\n", (long long)before - (long long)then);
    OK(cu.host_alloc(&pinned, 64 * MIB, 0));
    printf("figure first_pinned_takes %lld\n", (long long)then - (long long)gpu_free_bytes());
    OK(cu.host_free(pinned));
}

int main(void) {
    gpu_begin();
    first();
    OK(cu.stream(&other, 1));
    for (size_t mib = 2; mib <= LARGEST; mib *= 8)
        if (has_room(mib)) costs(mib);
    OK(cu.alloc(&worked_on, (size_t)MANY * 4));
    if (find_words()) all_waits();
    puts("ok");
    return 0;
}
