/* simcuda.h — how a test sets up the simulated CUDA driver, a test double. The double is our own libcuda.so.1; nothing
 * here is measured on a GPU. It exports the functions below beside CUDA's. Any thread may call them at any time.
 *
 * Environment, read at cuInit (sizes take K, M, G):
 *   SIMCUDA_DEVICES=1        how many devices there are; 0: cuInit returns 100
 *   SIMCUDA_CAPACITY=1G      memory of each device
 *   SIMCUDA_CONTEXT=8M       memory that a context takes for itself
 *   SIMCUDA_FRAGMENTED=0     memory in pieces that only requests below 2 MiB can use
 *   SIMCUDA_VERSION=13000    version of the driver; younger entries are not there
 *   SIMCUDA_LATENCY_US=0     how long each operation on a stream takes before its effect
 *   SIMCUDA_PAGEABLE=0       1: devices read all of the host's memory (HMM)
 *   SIMCUDA_PEERS=1          0: devices cannot reach each other's memory
 *   SIMCUDA_MIG=0            1: each device is an instance of a larger device, with its own uuid
 *   SIMCUDA_MPS=0            1: processes share the devices through a server
 *   SIMCUDA_MULTICAST=0      1: memory can be bound to multicast objects, as where there is an NVSwitch
 *   SIMCUDA_FILL=1           0: fresh memory is not filled with random bytes (for benchmarks)
 *   SIMCUDA_VMM_US=0         how long each call takes that makes, maps, opens, unmaps or frees physical memory
 *   SIMCUDA_COPY_MIB_S=0     how many MiB a second are copied between a device and the host; 0: no limit
 *   SIMCUDA_PIN_US_MIB=0     how long pinning or unpinning takes for each MiB
 *   SIMCUDA_DRAINS=0         1: unmapping and setting access first wait for all work on all devices
 *   SIMCUDA_FIRST=0          memory that a context takes at its first stream or pinned memory
 *   SIMCUDA_FAIL=NAME:N:ERROR[:TIMES],…   the N-th call of NAME ("*": of any) returns ERROR, TIMES times (default 1)
 *   SIMCUDA_LOG=FILE         a line for each call: number, thread, name, result, two details
 *   SIMCUDA_ASKED=FILE       a line for each request to cuGetProcAddress: name, version, flags, status
 *
 * As in the real driver, cuInit calls InitializeInjection of the library that CUDA_INJECTION64_PATH names.
 */
#ifndef SIMCUDA_H
#define SIMCUDA_H

#include <stddef.h>
#include <stdint.h>

/* The N-th call of `name` from now on ("*": of any entry) returns `error` and does nothing. times: how often in a row.
 * With `name` NULL, all such settings are removed. */
void sim_fail(const char *name, uint64_t nth, int error, uint64_t times);

/* Every call of `name` (a literal) begins this much later, as if the thread had lost its processor. If `name` is NULL,
 * no call is delayed any more. */
void sim_slow(const char *name, uint64_t us);

/* Every call of `name` (a literal) first calls this function of the program, without a lock, like the callbacks of
 * CUPTI. If `name` is NULL, no call does so any more. */
void sim_tell(const char *name, void (*function)(void));

/* How often `name` has been called ("*": all calls), and how often successfully. */
uint64_t sim_count(const char *name);
uint64_t sim_count_ok(const char *name);
void sim_count_reset(void);

/* Writes the last calls, oldest first, one line for each: "number thread name result a b". Returns the length without
 * the terminator. */
size_t sim_log_text(char *to, size_t room);

void sim_set_latency_us(uint64_t us);
void sim_set_capacity(int device, size_t bytes);
void sim_set_fragmented(int device, size_t bytes);

/* Changes the number of holds by `add`. While there is a hold, no stream executes any operation. */
void sim_hold(int add);

/* If `release` is 1, no kernel "sim_wait" waits any more: kernels that are waiting now end, and later kernels end at
 * once. If `release` is 0, later kernels wait again. */
void sim_release_kernels(int release);

/* What one device has given out, in bytes as the device counts them. */
struct sim_usage {
    uint64_t capacity, used;
    uint64_t contexts;           /* taken by contexts themselves */
    uint64_t physical, handles;  /* memory objects that live: bytes, number */
    uint64_t reserved_va;        /* of all devices */
    uint64_t blocks;             /* mapped addresses, of all devices: number */
    uint64_t pinned, registered; /* host memory, of all devices: bytes */
    uint64_t pending;            /* operations not executed, of all devices */
    uint64_t faults;             /* accesses that were refused at execution, of all devices */
};
void sim_usage(int device, struct sim_usage *out);

/* For the simulated CUPTI: after each successful call about an address, the driver calls the observer while it holds
 * its lock. It also calls the observer when a context ends; `name` is then "context", and only `context` is set. If
 * `call` is NULL, no observer is called any more. */
struct sim_event_of_memory {
    const char *name;
    uint64_t bytes, address, context;
    int device;
    uint64_t pool, pool_reserved, pool_used, pool_threshold; /* pool 0: none; figures after the call */
};
typedef void sim_observer(const struct sim_event_of_memory *event);
void sim_observe(sim_observer *call);

/* For the simulated CUPTI: the driver calls this observer before and after each call about physical memory and its
 * addresses. The observer runs on the calling thread, without a lock. `arguments` has 8 bytes for each argument of the
 * call. `shared` points to the same word before and after the call, so that the observer can keep something there. */
struct sim_call {
    const char *name;
    const int *result; /* NULL: before */
    const uint64_t *arguments;
    uint64_t *shared;
    uint64_t context;
};
typedef void sim_call_observer(const struct sim_call *call);
void sim_observe_calls(sim_call_observer *call);

/* Returns the address of an entry inside of the driver. memstow's hooks do not see calls of this address, because the
 * program has it neither from a symbol of CUDA nor from a resolver. `name` is "cuMemAlloc", "cuMemFree",
 * "cuMemAllocAsync", "cuMemCreate" or "cuMemAddressReserve". */
void *sim_inner_entry(const char *name);

/* Reads and writes device memory as a debugger does, beside all streams. Returns 0 or 700. */
int sim_peek(void *to, uint64_t device_address, size_t bytes);
int sim_poke(uint64_t device_address, const void *from, size_t bytes);

#endif
