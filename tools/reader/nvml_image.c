/* nvml_image.c — see nvml_image.h. */
#include "tools/reader/nvml_image.h"
#include "tools/reader/nvml.h"
#include "tools/reader/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSES_KEPT = 64 }; /* for each device */

static void keep_at_most(size_t *count, size_t most) {
    if (*count > most) *count = most;
}

/* Cuts the tables to a limited length, because callers search them once for each device. */
int nvml_image_load(struct reader *reader) {
    struct nvml_image *nvml = &reader->image->nvml;
    if (reader_table(reader, SNAP_NVML, sizeof *nvml->devices, (void **)&nvml->devices, &nvml->device_count) < 0 ||
        reader_table(reader, SNAP_NVML_PROCESS, sizeof *nvml->processes, (void **)&nvml->processes,
                     &nvml->process_count) < 0)
        return -1;
    keep_at_most(&nvml->device_count, SNAP_CUDA_DEVICES);
    keep_at_most(&nvml->process_count, (size_t)SNAP_CUDA_DEVICES * PROCESSES_KEPT);
    for (size_t i = 0; i < nvml->process_count; i++) nvml->processes[i].name[sizeof nvml->processes->name - 1] = 0;
    return 0;
}

void nvml_image_clear(struct nvml_image *nvml) {
    free(nvml->devices);
    free(nvml->processes);
    *nvml = (struct nvml_image){0};
}

const struct snap_nvml *nvml_of(const struct image *image, uint32_t device) {
    for (size_t i = 0; i < image->nvml.device_count; i++)
        if (image->nvml.devices[i].device == device) return &image->nvml.devices[i];
    return NULL;
}

struct nvml_words nvml_why_not(const struct snap_nvml *nvml) {
    struct nvml_words words = {"NVML was not asked"};
    if (!nvml) return words;
    switch (nvml->state) {
    case SNAP_NVML_NO_LIBRARY:
        snprintf(words.s, sizeof words.s, "no libnvidia-ml.so.1");
        break;
    case SNAP_NVML_NO_DEVICE:
        snprintf(words.s, sizeof words.s, "NVML does not know the device");
        break;
    default:
        snprintf(words.s, sizeof words.s, "NVML answered with error %d", nvml->error);
    }
    return words;
}

/* --- asking NVML --- */

static void name_process(struct snap_nvml_process *process) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/comm", process->pid);
    FILE *file = fopen(path, "re");
    if (file && fgets(process->name, sizeof process->name, file)) process->name[strcspn(process->name, "\n")] = 0;
    if (file) fclose(file);
}

/* The bytes of a process; 0 if NVML did not tell them, so that this process comes last. */
static uint64_t nvml_image_told(uint64_t bytes) { return bytes == NVML_NOT_TOLD ? 0 : bytes; }

static int nvml_image_by_bytes(const void *left, const void *right) {
    const struct nvml_process *a = left, *b = right;
    if (nvml_image_told(a->bytes) != nvml_image_told(b->bytes))
        return nvml_image_told(a->bytes) > nvml_image_told(b->bytes) ? -1 : 1;
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static void processes_keep(struct nvml_image *nvml, const struct nvml_device *found, uint32_t device, uint32_t own,
                           struct snap_nvml *record) {
    uint32_t kept = 0;
    for (size_t i = 0; i < found->process_count; i++) {
        const struct nvml_process *process = &found->processes[i];
        if (process->pid == own) {
            record->flags |= process->bytes == NVML_NOT_TOLD ? SNAP_NVML_OWN_UNTOLD : SNAP_NVML_HAS_OWN;
            record->own = nvml_image_told(process->bytes);
            continue;
        }
        record->others += nvml_image_told(process->bytes);
        record->other_count++;
        if (kept++ >= PROCESSES_KEPT) continue;
        struct snap_nvml_process *to = &nvml->processes[nvml->process_count++];
        *to = (struct snap_nvml_process){.device = device, .pid = process->pid, .bytes = process->bytes};
        name_process(to);
    }
}

static void device_ask(struct nvml_image *nvml, const struct snap_cuda_device *device, uint32_t ordinal, uint32_t own) {
    static struct nvml_device found;
    struct snap_nvml *record = &nvml->devices[nvml->device_count++];
    *record = (struct snap_nvml){.device = ordinal, .state = SNAP_NVML_NO_DEVICE};
    if (!(device->kind & SNAP_CUDA_HAS_UUID)) return;
    record->state = nvml_ask(device->uuid, &found, &record->error);
    if (record->state != SNAP_NVML_KNOWN) return;
    record->total = found.total;
    record->used = found.used;
    if (found.lists_processes) record->flags |= SNAP_NVML_PROCESSES;
    for (size_t i = 0; i < found.process_count; i++)
        if (found.processes[i].bytes == NVML_NOT_TOLD) record->flags |= SNAP_NVML_UNTOLD;
    qsort(found.processes, found.process_count, sizeof *found.processes, nvml_image_by_bytes);
    processes_keep(nvml, &found, ordinal, own, record);
}

int nvml_image_ask(struct image *image, pid_t pid) {
    const struct cuda_image *cuda = &image->cuda;
    struct nvml_image *nvml = &image->nvml;
    if (!cuda->used || !pid) return 0;
    nvml_image_clear(nvml);
    nvml->devices = calloc(cuda->device_count + 1, sizeof *nvml->devices);
    nvml->processes = calloc(cuda->device_count * PROCESSES_KEPT + 1, sizeof *nvml->processes);
    if (!nvml->devices || !nvml->processes) return -1;
    nvml->now = true;
    for (size_t i = 0; i < cuda->device_count; i++)
        if (cuda->devices[i].used) device_ask(nvml, &cuda->devices[i], (uint32_t)i, (uint32_t)pid);
    nvml_end();
    return 0;
}
