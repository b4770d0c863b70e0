/* sample.c — see sample.h. */
#include "preload/count/sample.h"
#include "preload/count/thread_inside.h"
#include "preload/base/forked.h"
#include "preload/ledger/ledger.h"

uint64_t sample_bytes;
uint32_t sample_here;

static uint64_t sample_mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* SplitMix64. The state changes atomically, because threads without a slot share one. */
static uint64_t next_random(uint64_t *random) {
    return sample_mix(__atomic_add_fetch(random, 0x9E3779B97F4A7C15u, __ATOMIC_RELAXED));
}

/* -log(x) for x from 2^-53 to 1, wrong by at most one part in 100 million. The library must not depend on libm. The
 * fraction m is brought near 1, where log(m) = 2 atanh((m-1)/(m+1)), and five terms of its series are enough. */
static double minus_log(double x) {
    union {
        double number;
        uint64_t bits;
    } m = {x};
    int exponent = (int)(m.bits >> 52) - 1023;
    m.bits = (m.bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1023 << 52;
    if (m.number > 1.4142135623730951) {
        m.number /= 2;
        exponent++;
    }
    double t = (m.number - 1) / (m.number + 1), t2 = t * t;
    double sum = 1 + t2 * (1. / 3 + t2 * (1. / 5 + t2 * (1. / 7 + t2 / 9)));
    return -(exponent * 0.69314718055994531 + 2 * t * sum);
}

uint64_t sample_distance(uint64_t *random, uint64_t mean) {
    double x = (double)((next_random(random) >> 11) + 1) * 0x1p-53;
    return 1 + (uint64_t)(minus_log(x) * (double)mean);
}

/* When a slot gets a new thread, a new countdown (`until`) is as good as the rest of the old one: the distance to the
 * next picked byte does not depend on the past. */
void sample_begin(struct thread *self) {
    if (!self->random) self->random = sample_mix(os_now() ^ (uintptr_t)self) ^ ledger_head->pid;
    self->until = self->here && sample_bytes ? sample_distance(&self->random, sample_bytes) : 0;
    self->always = sample_bytes ? NULL : self->here;
}

/* A thread without a countdown (`until`) draws a distance for each block. Its blocks have the same chance to be samples
 * as with a countdown, because the distance does not depend on the past. */
bool sample_takes(uint64_t size) {
    struct thread *self = thread_self;
    uint64_t until = self->here ? os_load(&self->until) : sample_distance(&self->random, sample_bytes);
    bool taken = size >= until;
    if (self->here) os_store(&self->until, taken ? sample_distance(&self->random, sample_bytes) : until - size);
    return taken;
}

static void sample_abandon(void) { sample_here = 0; }
FORKED(sample_abandon);
