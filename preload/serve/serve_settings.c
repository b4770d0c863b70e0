/* serve_settings.c — see serve_settings.h. */
#include "preload/serve/serve_settings.h"

#include <string.h>

#include "preload/serve/rescue.h"
#include "preload/shared/os.h"
#include "preload/shared/pressure.h"
#include "preload/vram/vram_ahead.h"
#include "preload/vram/vram_spare.h"

bool serve_wanted;
struct serve_settings serve_settings;

static const char *unreadable;

/* The bytes of a setting; 0 if it is not set or cannot be read. If it cannot be read, `unreadable` gets `complaint`. */
static uint64_t size_of(const char *name, const char *complaint) {
    uint64_t bytes;
    const char *text = os_variable(name);
    if (!pressure_bytes(text, &bytes) && *text && strcmp(text, "0") != 0) unreadable = complaint;
    return bytes;
}

static void read_spare(const char *text) {
    uint64_t most;
    if (pressure_bytes(text, &most) || !strcmp(text, "0"))
        vram_spare_most = most;
    else if (*text)
        unreadable = "MEMSTOW_CUDA_SPARE is not a size like 1G: it counts as not set";
}

/* The threshold is at least a granule, because each served block takes whole granules. */
__attribute__((constructor)) static void read_wish(void) {
    unreadable = NULL;
    serve_settings.limits.memory =
        size_of("MEMSTOW_CUDA_HOST", "MEMSTOW_CUDA_HOST is not a size like 8G: it counts as not set");
    serve_settings.limits.pinned =
        size_of("MEMSTOW_CUDA_PINNED", "MEMSTOW_CUDA_PINNED is not a size like 8G: it counts as not set");
    serve_settings.limits.disk =
        size_of("MEMSTOW_CUDA_DISK", "MEMSTOW_CUDA_DISK is not a size like 64G: it counts as not set");
    serve_settings.limits.standby =
        size_of("MEMSTOW_CUDA_KEEP", "MEMSTOW_CUDA_KEEP is not a size like 8G: it counts as not set");
    serve_settings.threshold =
        size_of("MEMSTOW_CUDA_MOVES", "MEMSTOW_CUDA_MOVES is not a size like 64M: it counts as not set");
    read_spare(os_variable("MEMSTOW_CUDA_SPARE"));
    serve_settings.verifies = !strcmp(os_variable("MEMSTOW_CUDA_VERIFY"), "1");
    serve_settings.exports = !strcmp(os_variable("MEMSTOW_CUDA_IPC"), "1");
    vram_ahead_wanted = strcmp(os_variable("MEMSTOW_CUDA_AHEAD"), "0") != 0;
    serve_settings.keeps_total = !strcmp(os_variable("MEMSTOW_CUDA_TOTAL"), "1");
    const char *complaint = rescue_wish(os_variable("MEMSTOW_CUDA_RESCUE"));
    if (complaint) unreadable = complaint;
    serve_wanted = serve_settings.threshold != 0;
    if (serve_settings.threshold < VRAM_GRANULE) serve_settings.threshold = VRAM_GRANULE;
}

const char *serve_settings_unreadable(void) {
    read_wish(); /* the ledger may begin before this library's constructors have run */
    return unreadable;
}
