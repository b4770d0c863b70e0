/* moving_proof.h — shared by the unit tests of device memory that moves (simcuda_moving.c, simcuda_waits.c,
 * simcuda_random.c): the simulated CUDA driver (a test double) for vram_driver.h, and blocks with known content. */
#ifndef UNIT_MOVING_PROOF_H
#define UNIT_MOVING_PROOF_H

#include <pthread.h>
#include <string.h>

#include "proof.h"
#include "preload/vram/vram_contexts.h"
#include "preload/copies/vram_driver.h"
#include "preload/vram/vram_memory.h"
#include "preload/vram/vram_move.h"
#include "preload/vram/vram_owned.h"
#include "preload/vram/vram_sums.h"

/* The driver's function of that name. */
static inline void *moving_function(const char *name) {
#define F(function_name, parameters)                                                                                   \
    if (!strcmp(name, #function_name)) return (void *)function_name;
    VRAM_FUNCTIONS(F)
    VRAM_KERNEL_FUNCTIONS(F)
#undef F
    return NULL;
}

/* `function` is moving_function, or the test's own function, which calls moving_function and replaces some of its
 * answers. */
static inline void moving_begin(void *(*function)(const char *)) {
    proof_begin();
    cr_assert(vram_driver_begin(function));
}

static const struct vram_move_options ANY = {.milliseconds = 2000, .verify = true};

static inline int serve(uint64_t bytes, uint32_t owner, uint64_t *at) {
    struct vram_request request = {.bytes = bytes, .owner = owner, .context = (cuda_handle)proof_context};
    return vram_memory_serve(&request, at);
}

static inline uint64_t served(uint64_t bytes, uint32_t owner) {
    uint64_t at;
    OK(serve(bytes, owner, &at));
    return at;
}

static inline uint64_t served_in_stream(uint64_t bytes, uint32_t owner) {
    struct vram_request request = {
        .bytes = bytes, .owner = owner, .context = (cuda_handle)proof_context, .in_stream = true};
    uint64_t at;
    OK(vram_memory_serve(&request, &at));
    return at;
}

static inline enum vram_refusal out(struct vram_move_options options, uint64_t *moved) {
    enum vram_refusal refusal;
    int error;
    *moved = vram_move_out(&options, &refusal, &error);
    return refusal;
}

static inline enum vram_refusal in(struct vram_move_options options, uint64_t *moved) {
    enum vram_refusal refusal;
    int error;
    *moved = vram_move_in(&options, &refusal, &error);
    return refusal;
}

/* The seed of a block says where in the noise its content begins. */
enum { MOST = 40 << 20, SEEDS = 1 << 18, NOISE = MOST / 4 + SEEDS };
static uint32_t noise[NOISE];
static __thread uint32_t *words; /* room for the largest block */

static inline void make_noise(void) {
    for (uint32_t i = 0; i < NOISE; i++) noise[i] = i * 2654435761u ^ i >> 3;
}

static inline const uint32_t *wanted(uint32_t seed) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_noise);
    if (!words) words = malloc(MOST);
    return noise + seed % SEEDS;
}

static inline void fill(uint64_t at, uint64_t bytes, uint32_t seed) {
    const uint32_t *from = wanted(seed);
    while (cuMemcpyHtoD_v2(at, from, bytes)) continue;
}

static inline bool holds(uint64_t at, uint64_t bytes, uint32_t seed) {
    const uint32_t *like = wanted(seed);
    while (cuMemcpyDtoH_v2(words, at, bytes)) continue;
    return !memcmp(words, like, bytes);
}

#endif
