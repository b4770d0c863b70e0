/* probe.h — tells programs outside, such as OpenTelemetry's eBPF profiler, which blocks are samples (sample.h).
 * In: a block that was counted or is freed. Out: the USDT probes otel_memory:alloc(address, size, weight) and
 * otel_memory:free(address). As long as their semaphores are 0, nobody listens, and nothing is computed. If the library
 * is built without sys/sdt.h (Debian: systemtap-sdt-dev), there are no probes. */
#ifndef MEMSTOW_PROBE_H
#define MEMSTOW_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#if __has_include(<sys/sdt.h>)
/* Tools outside add 1 while they listen. */
extern volatile unsigned short otel_memory_alloc_semaphore, otel_memory_free_semaphore;
static inline bool probe_hears_alloc(void) { return __builtin_expect(otel_memory_alloc_semaphore != 0, 0); }
static inline bool probe_hears_free(void) { return __builtin_expect(otel_memory_free_semaphore != 0, 0); }
#else
static inline bool probe_hears_alloc(void) { return false; }
static inline bool probe_hears_free(void) { return false; }
#endif

/* probe_alloc is for a new block, probe_free for a block that is about to be freed. They leave out blocks that are no
 * samples. */
void probe_alloc(const void *block, uint64_t size, uint32_t site);
void probe_free(const void *block, uint32_t site);

/* How many allocated bytes a sample of `size` bytes represents on average: `size` divided by the probability that a
 * block of this size is a sample. `mean` is as sample_bytes. */
uint64_t probe_weight(uint64_t size, uint64_t mean);

#pragma GCC visibility pop

#endif
