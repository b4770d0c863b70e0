/* nvml.h — NVIDIA's management library: how much of a device is in use, and by which processes.
 * In: the uuid of a device. Out: NVML's answer. The library is opened by name at the first question, and never linked.
 * nvml.c declares the interface itself, as versions 11 and 12 of NVIDIA's nvml.h do. */
#ifndef MEMSTOW_NVML_H
#define MEMSTOW_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NVML_NOT_TOLD UINT64_MAX /* a process's `bytes` when NVML cannot or may not look into the process */
enum { NVML_PROCESSES = 1024 };

struct nvml_process {
    uint32_t pid;
    uint64_t bytes;
};
struct nvml_device {
    uint64_t total, used;
    bool lists_processes;
    size_t process_count; /* how many entries of the array are filled */
    struct nvml_process processes[NVML_PROCESSES];
};

/* Asks NVML about a device, or about an instance of a device (MIG), which has a uuid of its own. Returns an enum
 * snap_nvml_state; for SNAP_NVML_ERROR, *error is NVML's error number. The list has the processes that compute and
 * those that draw, each process once. */
uint32_t nvml_ask(const uint8_t uuid[16], struct nvml_device *out, int32_t *error);
/* Closes the library. */
void nvml_end(void);

/* A uuid as NVML writes it: "GPU-73696d75-6c61-7465-642d-646576696300", or with `mig` "MIG-…". */
struct nvml_uuid {
    char s[48];
};
struct nvml_uuid nvml_uuid(const uint8_t uuid[16], bool mig);

#endif
