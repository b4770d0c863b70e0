/* nvml.c — a simulated NVML, a test double: our own libnvidia-ml.so.1 beside the simulated driver, in a folder of its
 * own, so that programs find it only where a test says so. It knows the simulated devices by their uuids. The
 * environment decides what it tells about them:
 *
 *   SIMNVML_USED=BYTES            how much memory of each device is in use; each device has 1 GiB
 *   SIMNVML_PROCESSES=PID:BYTES,… which processes compute, with what each uses; "-" as BYTES: NVML does not tell
 *   SIMNVML_DRAWS=PID:BYTES,…     which processes draw, with what each uses
 *   SIMNVML_MPS=PID:BYTES,…       which processes are clients of MPS, with what each uses
 *   SIMNVML_INIT=N                nvmlInit answers with error N
 *   SIMNVML_LISTS=N               lists of processes are refused with error N
 *
 * With -DFIRST it has the first generation of lists only. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default"))) int
#define DEVICES 16
enum { OK = 0, UNINITIALIZED = 1, NOT_FOUND = 6, TOO_SMALL = 7 };
static int begun;
static char devices[DEVICES];

static unsigned long long number(const char *key) {
    const char *text = getenv(key);
    return text ? strtoull(text, NULL, 10) : 0;
}

API nvmlInit_v2(void);
API nvmlInit_v2(void) {
    begun = number("SIMNVML_INIT") == 0;
    return (int)number("SIMNVML_INIT");
}

API nvmlShutdown(void);
API nvmlShutdown(void) {
    begun = 0;
    return OK;
}

/* As in the simulated driver, the last byte of a uuid is the device's ordinal. */
API nvmlDeviceGetHandleByUUID(const char *uuid, void **out);
API nvmlDeviceGetHandleByUUID(const char *uuid, void **out) {
    char whole[64], slice[64];
    if (!begun) return UNINITIALIZED;
    for (int i = 0; i < DEVICES; i++) {
        snprintf(whole, sizeof whole, "GPU-73696d75-6c61-7465-642d-6465766963%02x", i);
        snprintf(slice, sizeof slice, "MIG-73696d75-6c61-7465-642d-736c696365%02x", i);
        if (strcmp(uuid, whole) && strcmp(uuid, slice)) continue;
        *out = &devices[i];
        return OK;
    }
    return NOT_FOUND;
}

struct memory {
    unsigned long long total, available, used;
};
API nvmlDeviceGetMemoryInfo(void *device, struct memory *out);
API nvmlDeviceGetMemoryInfo(void *device, struct memory *out) {
    if (!begun || (char *)device < devices || (char *)device >= devices + DEVICES) return UNINITIALIZED;
    unsigned long long used = number("SIMNVML_USED");
    *out = (struct memory){1ull << 30, (1ull << 30) - used, used};
    return OK;
}

struct process {
    unsigned pid;
    unsigned long long bytes;
#ifndef FIRST
    unsigned instance, part;
#endif
};

static int list(const char *key, unsigned *count, struct process *out) {
    const char *text = getenv(key);
    unsigned found = 0, room = *count;
    if (number("SIMNVML_LISTS")) return (int)number("SIMNVML_LISTS");
    while (text && *text) {
        char *end;
        unsigned pid = (unsigned)strtoul(text, &end, 10);
        if (*end != ':') break;
        unsigned long long bytes = end[1] == '-' ? ~0ull : strtoull(end + 1, NULL, 10);
        if (found < room) out[found] = (struct process){.pid = pid, .bytes = bytes};
        found++;
        text = strchr(text, ',');
        if (text) text++;
    }
    *count = found;
    return found > room ? TOO_SMALL : OK;
}

#ifdef FIRST
#define SHARED nvmlDeviceGetMPSComputeRunningProcesses
#define COMPUTE nvmlDeviceGetComputeRunningProcesses
#define GRAPHICS nvmlDeviceGetGraphicsRunningProcesses
#else
#define SHARED nvmlDeviceGetMPSComputeRunningProcesses_v3
#define COMPUTE nvmlDeviceGetComputeRunningProcesses_v3
#define GRAPHICS nvmlDeviceGetGraphicsRunningProcesses_v3
#endif
API COMPUTE(void *device, unsigned *count, struct process *out);
API COMPUTE(void *device, unsigned *count, struct process *out) {
    return (void)device, list("SIMNVML_PROCESSES", count, out);
}
API GRAPHICS(void *device, unsigned *count, struct process *out);
API GRAPHICS(void *device, unsigned *count, struct process *out) {
    return (void)device, list("SIMNVML_DRAWS", count, out);
}
API SHARED(void *device, unsigned *count, struct process *out);
API SHARED(void *device, unsigned *count, struct process *out) { return (void)device, list("SIMNVML_MPS", count, out); }
