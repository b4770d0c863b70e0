/* probe.c — see probe.h. */
#include "preload/count/probe.h"
#include "preload/count/sample.h"
#include "preload/count/site.h"

#if __has_include(<sys/sdt.h>)
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#define SEMAPHORE __attribute__((section(".probes"), used))
volatile unsigned short otel_memory_alloc_semaphore SEMAPHORE, otel_memory_free_semaphore SEMAPHORE;
#else
#define DTRACE_PROBE3(provider, name, first, second, third) (void)(first), (void)(second), (void)(third)
#define DTRACE_PROBE1(provider, name, first) (void)(first)
#endif

/* exp(-x) for 0 to 40, wrong by less than one part in 100 million. The library must not depend on libm. exp(-x) is the
 * 1024th power of exp(-x/1024), for which five terms of the series are enough. */
static double probe_exp_minus(double x) {
    double y = -x / 1024, e = 1 + y * (1 + y / 2 * (1 + y / 3 * (1 + y / 4 * (1 + y / 5))));
    for (int i = 0; i < 10; i++) e *= e;
    return e;
}

uint64_t probe_weight(uint64_t size, uint64_t mean) {
    double x = (double)size / (double)mean;
    if (x > 40 || !size) return size;
    return (uint64_t)((double)size / (1 - probe_exp_minus(x)) + 0.5);
}

/* Blocks that are no samples are counted at sites without a stack. */
static bool is_sample(uint32_t site) {
    return sample_bytes && site >= SNAP_SITE_FIRST && site < site_count() && snap_site_stack(site_record(site));
}

void probe_alloc(const void *block, uint64_t size, uint32_t site) {
    if (is_sample(site)) DTRACE_PROBE3(otel_memory, alloc, block, size, probe_weight(size, sample_bytes));
}

void probe_free(const void *block, uint32_t site) {
    if (is_sample(site)) DTRACE_PROBE1(otel_memory, free, block);
}
