/* hash.h — the hash of device memory, in C: what memstow's kernel memstow_hash computes on a GPU
 * (preload/copies/vram_hash_text.h). It is written anew here, so that tests can compare the two. */
#ifndef SIMCUDA_HASH_H
#define SIMCUDA_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct hash_sums {
    uint64_t x, y;
};

static inline void hash_word(struct hash_sums *sums, uint64_t word, uint64_t number, uint64_t seed1, uint64_t seed2) {
    uint64_t x = word ^ (seed1 + number * 0x9e3779b97f4a7c15u);
    x = (x ^ x >> 32) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 29) * 0x94d049bb133111ebu;
    x ^= x >> 32;
    uint64_t y = x ^ seed2;
    y = (y ^ y >> 31) * 0xff51afd7ed558ccdu;
    y ^= y >> 33;
    sums->x += x;
    sums->y += y;
}

/* Adds memory to the sums. `number` is the number of the memory's first word. */
static inline void hash_add(struct hash_sums *sums, const void *at, size_t bytes, uint64_t number, uint64_t seed1,
                            uint64_t seed2) {
    for (size_t i = 0; i < bytes / 8; i++) {
        uint64_t word;
        memcpy(&word, (const char *)at + i * 8, 8);
        hash_word(sums, word, number + i, seed1, seed2);
    }
}

#endif
