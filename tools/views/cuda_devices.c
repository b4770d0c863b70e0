/* cuda_devices.c — see cuda_devices.h. */
#include "tools/views/cuda_devices.h"
#include "tools/reader/nvml.h"
#include "tools/reader/nvml_image.h"
#include "tools/base/text.h"

#include <stdio.h>
#include <string.h>

enum { PROCESSES_SHOWN = 3 };

static uint64_t cuda_devices_most(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t live_on(const struct snap_cuda_device *device) { return device->live > 0 ? (uint64_t)device->live : 0; }

static struct text signed_size(int64_t bytes) {
    return bytes < 0 ? text_size_change(bytes) : text_size((uint64_t)bytes);
}

bool cuda_line_of(const struct image *image, size_t index, struct cuda_line *out) {
    const struct snap_cuda_device *device = &image->cuda.devices[index];
    const struct snap_nvml *nvml = nvml_of(image, (uint32_t)index);
    *out = (struct cuda_line){.device = (uint32_t)index,
                              .live = live_on(device),
                              .pool_reserved = device->pool_reserved,
                              .gap = cuda_gap(device)};
    if (nvml) out->nvml = *nvml;
    memcpy(out->name, device->name, sizeof out->name);
    return device->used;
}

/* The rest of NVML's figure for this process: contexts, modules and fragments. It is NVML's figure minus the live
 * memory that is on the device, and minus the memory that the pool, graphs and memstow keep. False: NVML's or the
 * driver's figures are not known. */
static bool line_own_rest(const struct cuda_line *line, int64_t *bytes) {
    const struct cuda_gap *gap = &line->gap;
    if (line->nvml.state != SNAP_NVML_KNOWN || !(line->nvml.flags & SNAP_NVML_HAS_OWN) || !gap->known) return false;
    *bytes = (int64_t)(line->nvml.own - gap->live - gap->pool_idle - gap->graphs - gap->spare);
    return true;
}

static int64_t cuda_devices_unattributed(const struct snap_nvml *nvml) {
    return (int64_t)(nvml->used - nvml->own - nvml->others);
}

/* --- a device in one line --- */

void cuda_line_head(const char *label) {
    printf("%-14s %11s %11s %11s %11s\n", label, "live", "pool keeps", "in use", "the rest");
}

void cuda_line_text(const char *label, const struct cuda_line *line) {
    char where[32];
    int64_t own;
    snprintf(where, sizeof where, "device %u%s", line->device, label);
    printf("%-14s %11s", where, text_size(line->live).s);
    if (line->gap.known)
        printf(" %11s %11s %11s", text_size(line->gap.pool_idle).s, text_size(line->gap.used).s,
               signed_size(line->gap.rest).s);
    else
        printf(" %11s %11s %11s", "?", "?", "?");
    if (line_own_rest(line, &own))
        printf("  %s this process, %s others", signed_size(own).s, text_size(line->nvml.others).s);
    putchar('\n');
}

/* Writes the bytes, or null if they are not known. */
static void json_told(struct json *json, const char *key, bool known, uint64_t bytes) {
    if (known)
        json_number(json, key, bytes);
    else
        json_null(json, key);
}

static void json_figures(struct json *json, const struct cuda_line *line) {
    const struct cuda_gap *gap = &line->gap;
    json_number(json, "device", line->device);
    json_string(json, "name", *line->name ? line->name : NULL);
    json_number(json, "live_bytes", line->live);
    json_told(json, "pool_reserved_bytes", gap->known, line->pool_reserved);
    json_told(json, "spare_bytes", gap->known, gap->spare);
    json_told(json, "driver_used_bytes", gap->known, gap->used);
    if (gap->known)
        json_signed(json, "rest_bytes", gap->rest);
    else
        json_null(json, "rest_bytes");
}

static void json_shares(struct json *json, const struct cuda_line *line) {
    const struct snap_nvml *nvml = &line->nvml;
    bool known = nvml->state == SNAP_NVML_KNOWN, listed = known && nvml->flags & SNAP_NVML_PROCESSES;
    int64_t own;
    json_told(json, "process_bytes", known && nvml->flags & SNAP_NVML_HAS_OWN, nvml->own);
    if (line_own_rest(line, &own))
        json_signed(json, "process_rest_bytes", own);
    else
        json_null(json, "process_rest_bytes");
    json_told(json, "others_bytes", listed, nvml->others);
}

void cuda_line_json(struct json *json, const struct cuda_line *line) {
    json_object(json, NULL);
    json_figures(json, line);
    json_shares(json, line);
    json_end_object(json);
}

/* --- a device in full, as text --- */

static void text_identity(const struct snap_cuda_device *device) {
    if (device->kind & SNAP_CUDA_IS_MIG)
        printf("    an instance of a device (%s): the memory in use is the instance's\n",
               nvml_uuid(device->uuid, true).s);
    if (device->kind & SNAP_CUDA_IS_MPS)
        puts("    shared through MPS: memory of this process may count for others, or for the server");
}

static void text_others(const struct image *image, const struct snap_nvml *nvml) {
    uint32_t shown = 0;
    for (size_t i = 0; i < image->nvml.process_count && shown < PROCESSES_SHOWN; i++) {
        const struct snap_nvml_process *process = &image->nvml.processes[i];
        if (process->device != nvml->device) continue;
        printf("%s %s (pid %u) %s", shown++ ? "," : ":", *process->name ? TEXT_SAFE(process->name) : "a process",
               process->pid, process->bytes == NVML_NOT_TOLD ? "unknown" : text_size(process->bytes).s);
    }
    if (nvml->other_count > shown) printf(" and %s more", text_count(nvml->other_count - shown).s);
    putchar('\n');
}

static void text_own(const struct cuda_line *line) {
    int64_t own;
    if (!(line->nvml.flags & SNAP_NVML_HAS_OWN)) {
        puts(line->nvml.flags & SNAP_NVML_OWN_UNTOLD
                 ? "    NVML lists this process, but not how much memory it has"
                 : "    NVML does not list this process (a container has pids of its own)");
        return;
    }
    printf("    %12s this process", text_size(line->nvml.own).s);
    if (line_own_rest(line, &own)) printf(", of which %s are contexts, modules and fragments", signed_size(own).s);
    putchar('\n');
}

static void text_known(const struct image *image, const struct cuda_line *line) {
    const struct snap_nvml *nvml = &line->nvml;
    printf("    NVML, asked %s, has %s of %s in use:\n", image->nvml.now ? "now" : "when the snapshot was taken",
           text_size(nvml->used).s, text_size(nvml->total).s);
    if (!(nvml->flags & SNAP_NVML_PROCESSES)) {
        puts("    NVML lists no processes of this device");
        return;
    }
    text_own(line);
    printf("    %12s %s other process%s", text_size(nvml->others).s, text_count(nvml->other_count).s,
           nvml->other_count == 1 ? "" : "es");
    text_others(image, nvml);
    if (nvml->flags & SNAP_NVML_UNTOLD) puts("    NVML does not say how much memory some of them have");
    printf("    %12s of no process: the driver's own, and memory that NVML does not assign\n",
           signed_size(cuda_devices_unattributed(nvml)).s);
}

void cuda_device_text(const struct image *image, size_t index) {
    const struct snap_cuda_device *device = &image->cuda.devices[index];
    struct cuda_line line;
    if (!cuda_line_of(image, index, &line)) return;
    const struct cuda_gap *gap = &line.gap;
    printf("  device %-5zu %12s live, peak %s%s%s\n", index, text_size(line.live).s,
           text_size(cuda_devices_most(device->peak, line.live)).s, *device->name ? ", " : "", TEXT_SAFE(device->name));
    text_identity(device);
    if (!gap->known && device->pool_reserved)
        printf("    its pool has %s, of which %s are given out\n", text_size(device->pool_reserved).s,
               text_size(device->pool_used).s);
    if (!gap->known) return;
    printf("    when the driver was asked last, it had %s of %s in use:\n", text_size(gap->used).s,
           text_size(device->total).s);
    printf("    %12s live, %s kept by the pool, %s by graphs,\n", text_size(gap->live).s, text_size(gap->pool_idle).s,
           text_size(gap->graphs).s);
    if (gap->spare) printf("    %12s kept by memstow for the next requests,\n", text_size(gap->spare).s);
    printf("    %12s more: contexts, modules, fragments, other processes\n", signed_size(gap->rest).s);
    if (line.nvml.state == SNAP_NVML_KNOWN)
        text_known(image, &line);
    else if (line.nvml.state)
        printf("    which processes have this memory is not known: %s\n", nvml_why_not(&line.nvml).s);
}

/* --- a device in full, as JSON --- */

static void json_kind(struct json *json, const char *key, uint32_t kind, uint32_t knows, uint32_t is) {
    if (kind & knows)
        json_bool(json, key, kind & is);
    else
        json_null(json, key);
}

static void json_others(struct json *json, const struct image *image, uint32_t device) {
    json_array(json, "others");
    for (size_t i = 0; i < image->nvml.process_count; i++) {
        const struct snap_nvml_process *process = &image->nvml.processes[i];
        if (process->device != device) continue;
        json_object(json, NULL);
        json_number(json, "pid", process->pid);
        json_string(json, "name", *process->name ? process->name : NULL);
        json_told(json, "bytes", process->bytes != NVML_NOT_TOLD, process->bytes);
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_nvml(struct json *json, const struct image *image, const struct cuda_line *line) {
    const struct snap_nvml *nvml = &line->nvml;
    bool known = nvml->state == SNAP_NVML_KNOWN;
    if (!nvml->state) {
        json_null(json, "nvml");
        return;
    }
    json_object(json, "nvml");
    json_bool(json, "known", known);
    json_string(json, "why_not", known ? NULL : nvml_why_not(nvml).s);
    json_string(json, "asked", image->nvml.now ? "now" : "snapshot");
    json_told(json, "total_bytes", known, nvml->total);
    json_told(json, "used_bytes", known, nvml->used);
    json_shares(json, line);
    if (known && nvml->flags & SNAP_NVML_PROCESSES)
        json_signed(json, "unattributed_bytes", cuda_devices_unattributed(nvml));
    else
        json_null(json, "unattributed_bytes");
    json_bool(json, "some_not_told", nvml->flags & SNAP_NVML_UNTOLD);
    json_number(json, "other_count", nvml->other_count);
    json_others(json, image, line->device);
    json_end_object(json);
}

void cuda_device_json(struct json *json, const struct image *image, size_t index) {
    const struct snap_cuda_device *device = &image->cuda.devices[index];
    struct cuda_line line;
    if (!cuda_line_of(image, index, &line)) return;
    bool mig = device->kind & SNAP_CUDA_IS_MIG;
    json_object(json, NULL);
    json_number(json, "device", index);
    json_string(json, "name", *device->name ? device->name : NULL);
    json_string(json, "uuid", device->kind & SNAP_CUDA_HAS_UUID ? nvml_uuid(device->uuid, mig).s : NULL);
    json_kind(json, "mig", device->kind, SNAP_CUDA_KNOWS_MIG, SNAP_CUDA_IS_MIG);
    json_kind(json, "mps", device->kind, SNAP_CUDA_KNOWS_MPS, SNAP_CUDA_IS_MPS);
    json_number(json, "live_bytes", line.live);
    json_number(json, "peak_bytes", cuda_devices_most(device->peak, line.live));
    if (line.gap.known) {
        json_number(json, "total_bytes", device->total);
        json_number(json, "driver_used_bytes", line.gap.used);
        json_number(json, "pool_reserved_bytes", device->pool_reserved);
        json_number(json, "pool_used_bytes", device->pool_used);
        json_number(json, "graph_reserved_bytes", device->graph_reserved);
        json_number(json, "spare_bytes", line.gap.spare);
        json_signed(json, "rest_bytes", line.gap.rest);
    } else {
        json_null(json, "driver_used_bytes");
        if (device->pool_reserved) json_number(json, "pool_reserved_bytes", device->pool_reserved);
        if (device->pool_reserved) json_number(json, "pool_used_bytes", device->pool_used);
    }
    json_nvml(json, image, &line);
    json_end_object(json);
}
