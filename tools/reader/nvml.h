/* nvml.h — NVIDIA's management library, where there is one: how much of a device is in use, and by which processes.
 * In: the uuid of a device. Out: what it says. It is opened by name when it is first asked, and never linked; our own
 * words for its interface, which is that of nvml.h 11 and 12. */
#ifndef MEMSTOW_NVML_H
#define MEMSTOW_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NVML_NOT_TOLD UINT64_MAX /* what it says of processes that it may not, or cannot, look into */
enum { NVML_PROCESSES = 1024 };

struct nvml_process {
    uint32_t pid;
    uint64_t bytes;
};
struct nvml_device {
    uint64_t total, used;
    bool lists_processes;
    size_t process_count; /* as far as there is room */
    struct nvml_process processes[NVML_PROCESSES];
};

/* enum snap_nvml_state; *error is NVML's own number where that is SNAP_NVML_ERROR. An instance of a device (MIG) is
 * found by its own uuid. Processes that compute and those that draw are one list, each once. */
uint32_t nvml_ask(const uint8_t uuid[16], struct nvml_device *out, int32_t *error);
/* Lets go of it. */
void nvml_end(void);

/* "GPU-73696d75-6c61-7465-642d-646576696300"; `mig`: "MIG-…". */
struct nvml_uuid {
    char s[48];
};
struct nvml_uuid nvml_uuid(const uint8_t uuid[16], bool mig);

#endif
