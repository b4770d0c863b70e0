// env: MEMSTOW_CUDA_MOVES=2M MEMSTOW_CUDA_KEEP=1G
// shows
/* kept.c — the host keeps its copy of a model while the model is on the device (MEMSTOW_CUDA_KEEP). When the model
 * leaves again, memstow's kernel hashes the model on the device. Memory with the same hash as its copy is not copied
 * again. If one bit has changed, memstow notices this, and the model comes back with the change.
 *
 * The test also compares the kernel's hashes with those of a function in C. The simulated driver, a test double, runs
 * this function in place of the kernel; no time is shown there. */
#include "gpu.h"

#include "../../preload/copies/vram_hash_text.h"
#include "../simcuda/hash.h"

enum { PLAIN = 48 << 20, POOLED = 18 << 20, RESULT = 32, BLOCKS_MOST = 512 };

static uint32_t model;
static CUdeviceptr plain, pooled;
static CUstream stream;

/* --- the kernel by itself */

static struct hash_sums on_device(CUfunction kernel, char *sheet, CUdeviceptr at, size_t bytes, unsigned blocks,
                                  unsigned threads) {
    uint64_t units = bytes / 16, seed1 = 0x1234567890abcdef, seed2 = 0xfedcba0987654321, hashed = 0;
    void *arguments[] = {&at, &units, &seed1, &seed2, &sheet};
    struct hash_sums sums = {0, 0};
    memset(sheet, 0, (size_t)BLOCKS_MOST * RESULT);
    OK(cu.launch(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, NULL));
    OK(cu.stream_wait(stream));
    for (unsigned block = 0; block < BLOCKS_MOST; block++) {
        uint64_t words[3];
        memcpy(words, sheet + (size_t)block * RESULT, sizeof words);
        sums.x += words[0];
        sums.y += words[1];
        hashed += words[2];
    }
    MUST(hashed == units);
    return sums;
}

static void same_as_in_c(void) {
    static const size_t sizes[] = {16, 4096, 2 << 20, (18 << 20) + 16 * 77};
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr at = 0;
    void *sheet;
    OK(cu.module(&module, VRAM_HASH_TEXT));
    OK(cu.function(&kernel, module, "memstow_hash"));
    OK(cu.host_alloc(&sheet, (size_t)BLOCKS_MOST * RESULT, 1));
    OK(cu.alloc(&at, 64 * MIB));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct hash_sums wanted = {0, 0};
        uint64_t *content = malloc(sizes[i]);
        MUST(content);
        for (size_t k = 0; k < sizes[i] / 8; k++) content[k] = gpu_word(k, i);
        OK(cu.to_device(at, content, sizes[i]));
        hash_add(&wanted, content, sizes[i], 0, 0x1234567890abcdef, 0xfedcba0987654321);
        free(content);
        for (unsigned blocks = 1; blocks <= BLOCKS_MOST; blocks += 170) {
            struct hash_sums found = on_device(kernel, sheet, at, sizes[i], blocks, blocks % 2 ? 256 : 96);
            MUST(found.x == wanted.x && found.y == wanted.y);
        }
    }
    OK(cu.free(at));
    OK(cu.host_free(sheet));
}

/* --- a model that leaves and comes back */

/* Reads the lines of the trace behind `*seen`, and moves `*seen` to their end. Returns the bytes of the last line
 * UNCHANGED among these lines, or 0 if there is none. */
static uint64_t unchanged(uint64_t *seen) {
    static char line[8192];
    uint64_t bytes = 0, after;
    while (abi_memstow_decisions(line, sizeof line - 1, *seen, &after) > 0 && after > *seen) {
        const char *found = strstr(line, "\"UNCHANGED\""), *number = found ? strstr(found, "\"bytes\":") : NULL;
        if (number) bytes = strtoull(number + 8, NULL, 10);
        *seen = after;
    }
    return bytes;
}

static uint64_t seen;

/* Moves the model out and back. Returns the seconds that the move out took. */
static double go_round(uint64_t bytes_unchanged) {
    double begin = gpu_seconds();
    MUST(abi_memstow_stow(model) == PLAIN + POOLED);
    double took = gpu_seconds() - begin;
    MUST(gpu_out_of(model) == PLAIN + POOLED);
    MUST(unchanged(&seen) == bytes_unchanged);
    MUST(abi_memstow_restore(model) == PLAIN + POOLED);
    return took;
}

static void load(void) {
    model = gpu_model("unet");
    plain = gpu_alloc_for(model, PLAIN, NULL);
    pooled = gpu_alloc_for(model, POOLED, &stream);
    OK(cu.stream_wait(stream));
    gpu_write(plain, PLAIN, 1);
    gpu_write(pooled, POOLED, 2);
    MUST(!abi_memstow_owner_idle(model, 1));
}

static void out_without_a_copy(void) {
    go_round(0); /* the first one, which loads the kernel, too */
    gpu_write(plain, PLAIN, 3);
    double copied = go_round(POOLED), hashed = 1e9;
    for (int i = 0; i < 3; i++) {
        double took = go_round(PLAIN + POOLED);
        if (took < hashed) hashed = took;
    }
    MUST(gpu_holds(plain, PLAIN, 3) && gpu_holds(pooled, POOLED, 2));
    if (!gpu_is_double) printf("figure us_copied %.1f\nfigure us_unchanged %.1f\n", copied * 1e6, hashed * 1e6);
}

/* In each of five rounds, a kernel adds 1 to another word of `plain`: to the first, to the last, or to one of three in
 * between. */
static void one_word(void) {
    CUdeviceptr one = 0;
    OK(cu.alloc(&one, 4));
    gpu_fill(one, 1, 1, stream);
    for (size_t i = 0; i < 5; i++) {
        size_t word = (PLAIN / 4 - 1) * i / 4;
        uint32_t before, after;
        OK(cu.to_host(&before, plain + word * 4, 4));
        gpu_add(plain + word * 4, one, 1, stream);
        go_round(POOLED);
        OK(cu.to_host(&after, plain + word * 4, 4));
        MUST(after == before + 1);
        go_round(PLAIN + POOLED);
    }
    OK(cu.free(one));
}

/* Kernels of another thread keep the device busy while the hashes are computed. */
static bool stop;

static void *work(void *unused) {
    CUdeviceptr own;
    CUstream mine;
    OK(cu.set_current(gpu_context));
    OK(cu.stream(&mine, 1));
    OK(cu.alloc(&own, 64 * MIB));
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        for (int i = 0; i < 8; i++) gpu_fill(own, gpu_is_double ? 4096 : 16 * MIB, 7, mine);
        OK(cu.stream_wait(mine));
    }
    OK(cu.free(own));
    return unused;
}

static void beside_work(void) {
    pthread_t thread;
    MUST(!pthread_create(&thread, NULL, work, NULL));
    for (int i = 0; i < 3; i++) go_round(PLAIN + POOLED);
    __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
}

int main(void) {
    gpu_begin();
    OK(cu.stream(&stream, 1));
    same_as_in_c();
    load();
    out_without_a_copy();
    one_word();
    beside_work();
    puts("ok");
    return 0;
}
