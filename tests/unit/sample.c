// Which blocks are samples. The distances between picked bytes are exponentially distributed. Each distance is compared
// with one that is computed by libm's log(): they may differ by one byte plus one part in 100 million. Each block is
// taken with its own chance, whatever came before.
#include <criterion/criterion.h>
#include <math.h>

#include "preload/count/probe.h"
#include "preload/count/sample.h"
#include "preload/count/thread_inside.h"

enum { DRAWS = 4000000 };
static const uint64_t MEAN = 512 * 1024;

/* SplitMix64, as published. */
static uint64_t random_of(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

Test(sample, distances_are_logarithms) {
    uint64_t ours = 1, same = 1, mean = SNAP_SAMPLE_MOST;
    for (int i = 0; i < DRAWS; i++) {
        double x = (double)((random_of(&same) >> 11) + 1) * 0x1p-53, expected = -log(x) * (double)mean;
        double distance = (double)sample_distance(&ours, mean);
        cr_assert(fabs(distance - expected) <= 1 + 1e-8 * expected, "%.17g: %.17g, not %.17g", x, distance, expected);
    }
}

/* The limits are three standard errors: MEAN/sqrt(n) for the mean, sqrt(8/n) times the variance for the variance. */
Test(sample, distances_have_the_mean_and_variance_of_an_exponential) {
    uint64_t state = 20261121;
    double sum = 0, squares = 0, mean = (double)MEAN;
    for (int i = 0; i < DRAWS; i++) {
        double distance = (double)sample_distance(&state, MEAN);
        cr_assert(distance >= 1);
        sum += distance;
        squares += distance * distance;
    }
    double found = sum / DRAWS, variance = squares / DRAWS - found * found;
    cr_expect_float_eq(found, mean + .5, 3 * mean / sqrt(DRAWS), "%f", found);
    cr_expect_float_eq(variance, mean * mean, 3 * mean * mean * sqrt(8. / DRAWS), "%f", variance);
}

Test(sample, the_least_mean_takes_nearly_everything) {
    uint64_t state = 3;
    for (int i = 0; i < DRAWS; i++) cr_assert(sample_distance(&state, 1) <= 38);
}

/* How many of the blocks of this size are samples. Other blocks come in between: the countdown runs over all blocks. */
static double rate_of(uint64_t size) {
    static const uint64_t others[] = {0, 16, 100, 4000, 1 << 20};
    int taken = 0, blocks = DRAWS / 4;
    for (int i = 0; i < blocks; i++) {
        sample_takes(others[i % 5]);
        taken += sample_takes(size);
    }
    return (double)taken / blocks;
}

static void check_rates(void) {
    static const uint64_t sizes[] = {1, 1000, 64 * 1024, 512 * 1024, 2 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double chance = -expm1(-(double)sizes[i] / (double)MEAN), found = rate_of(sizes[i]);
        cr_expect_float_eq(found, chance, 4 * sqrt(chance * (1 - chance) / (DRAWS / 4)), "%f, not %f", found, chance);
    }
    for (int i = 0; i < DRAWS; i++) cr_assert_not(sample_takes(0), "no byte of it can be picked");
}

Test(sample, a_block_is_taken_with_its_chance) {
    static struct thread thread;
    static struct snap_counter here;
    sample_bytes = MEAN;
    thread.random = 42;
    thread.here = &here;
    sample_begin(&thread);
    thread_self = &thread;
    check_rates();
}

Test(sample, and_so_for_threads_without_a_slot) {
    sample_bytes = MEAN;
    cr_assert_eq(thread_self, &thread_nobody);
    check_rates();
}

Test(sample, there_is_no_countdown_without_samples) {
    static struct thread thread;
    static struct snap_counter here;
    sample_begin(&thread);
    cr_expect_eq(thread.until, 0, "every block has its stack");
    thread.here = &here;
    sample_begin(&thread);
    cr_expect_eq(thread.until, 0, "no block is looked at");
    cr_expect_eq(thread.always, thread.here);
}

/* The weight of a sample is its size divided by its chance. The test computes the chance with libm's expm1. */
Test(sample, weights_are_sizes_by_their_chances) {
    static const uint64_t sizes[] = {1, 16, 1000, 65536, 524288, 600000, 10 << 20, UINT64_C(1) << 40};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double expected = (double)sizes[i] / -expm1(-(double)sizes[i] / (double)MEAN);
        double weight = (double)probe_weight(sizes[i], MEAN);
        cr_assert(fabs(weight - expected) <= 1 + 1e-8 * expected, "%llu: %.17g, not %.17g",
                  (unsigned long long)sizes[i], weight, expected);
    }
    cr_assert_eq(probe_weight(0, MEAN), 0);
}
