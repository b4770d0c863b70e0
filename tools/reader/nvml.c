/* nvml.c — see nvml.h. */
#include "tools/reader/nvml.h"
#include "preload/shared/snapshot.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { DONE = 0 };

typedef void *handle;
struct memory {
    unsigned long long total, available, used;
};
struct process { /* the layout in the second and later generations of the interface */
    unsigned pid;
    unsigned long long bytes;
    unsigned instance, part;
};
struct first_process {
    unsigned pid;
    unsigned long long bytes;
};

static struct {
    void *library;
    uint32_t state; /* 0: NVML was not asked yet */
    int32_t error;
} opened;

static void *symbol_find(const char *name) { return opened.library ? dlsym(opened.library, name) : NULL; }

static void open_library(void) {
    opened.state = SNAP_NVML_NO_LIBRARY;
    opened.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!opened.library) return;
    int (*begin)(void) = (int (*)(void))symbol_find("nvmlInit_v2");
    opened.error = begin ? begin() : -1;
    opened.state = opened.error ? SNAP_NVML_ERROR : SNAP_NVML_KNOWN;
}

void nvml_end(void) {
    int (*end)(void) = (int (*)(void))symbol_find("nvmlShutdown");
    if (end && opened.state == SNAP_NVML_KNOWN) end();
    if (opened.library) dlclose(opened.library);
    memset(&opened, 0, sizeof opened);
}

struct nvml_uuid nvml_uuid(const uint8_t uuid[16], bool mig) {
    struct nvml_uuid text;
    int used = snprintf(text.s, sizeof text.s, "%s-", mig ? "MIG" : "GPU");
    for (int i = 0; i < 16; i++)
        used += snprintf(text.s + used, sizeof text.s - (size_t)used, "%s%02x",
                         i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
    return text;
}

/* Finds a device, or an instance of a device (MIG), by its uuid. The caller need not know which of the two it is. */
static handle device_of(const uint8_t uuid[16]) {
    int (*ask)(const char *, handle *) = (int (*)(const char *, handle *))symbol_find("nvmlDeviceGetHandleByUUID");
    handle device;
    for (int mig = 0; ask && mig < 2; mig++)
        if (!ask(nvml_uuid(uuid, mig).s, &device)) return device;
    return NULL;
}

static void process_add(struct nvml_device *out, uint32_t pid, uint64_t bytes) {
    for (size_t i = 0; i < out->process_count; i++)
        if (out->processes[i].pid == pid) return;
    if (out->process_count < NVML_PROCESSES) out->processes[out->process_count++] = (struct nvml_process){pid, bytes};
}

/* Adds processes to out->processes. Asks the first function of `names` that the library has. False: it has none of
 * them, the function failed, or the array is too small. */
static bool add_list(handle device, struct nvml_device *out, const char *const names[3]) {
    typedef int ask(handle, unsigned *, void *);
    static struct process list[NVML_PROCESSES];
    unsigned count = NVML_PROCESSES;
    int found = 0;
    while (found < 3 && !symbol_find(names[found])) found++;
    if (found == 3) return false;
    int result = ((ask *)symbol_find(names[found]))(device, &count, list);
    if (result != DONE || count > NVML_PROCESSES) return false;
    for (unsigned i = 0; i < count; i++) {
        const struct first_process *first = (const struct first_process *)list + i;
        if (found == 2)
            process_add(out, first->pid, first->bytes);
        else
            process_add(out, list[i].pid, list[i].bytes);
    }
    return true;
}

/* A line for each kind of process: processes that compute, clients of MPS, processes that draw. Each line has the
 * functions that list such processes, the newest function first. */
static const char *const lists[][3] = {
    {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
     "nvmlDeviceGetComputeRunningProcesses"},
    {"nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2",
     "nvmlDeviceGetMPSComputeRunningProcesses"},
    {"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2",
     "nvmlDeviceGetGraphicsRunningProcesses"},
};

static int ask_device(handle device, struct nvml_device *out) {
    int (*ask)(handle, struct memory *) = (int (*)(handle, struct memory *))symbol_find("nvmlDeviceGetMemoryInfo");
    struct memory memory = {0};
    int error = ask ? ask(device, &memory) : -1;
    if (error) return error;
    out->total = memory.total;
    out->used = memory.used;
    out->lists_processes = add_list(device, out, lists[0]);
    add_list(device, out, lists[1]);
    add_list(device, out, lists[2]);
    return 0;
}

uint32_t nvml_ask(const uint8_t uuid[16], struct nvml_device *out, int32_t *error) {
    memset(out, 0, offsetof(struct nvml_device, processes));
    if (!opened.state) open_library();
    *error = opened.error;
    if (opened.state != SNAP_NVML_KNOWN) return opened.state;
    handle device = device_of(uuid);
    if (!device) return SNAP_NVML_NO_DEVICE;
    *error = ask_device(device, out);
    return *error ? SNAP_NVML_ERROR : SNAP_NVML_KNOWN;
}
