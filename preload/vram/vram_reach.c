/* vram_reach.c — see vram_reach.h. */
#include "preload/vram/vram_reach.h"

#include <string.h>

#include "preload/vram/vram_block.h"
#include "preload/base/forked.h"

static uint64_t works_on;             /* the devices on which the program works, as bits */
static uint64_t can[VRAM_DEVICES];    /* for each device: the devices that can access its memory, as bits */
static uint64_t pooled[VRAM_DEVICES]; /* for each device: the devices that may use its default pool, as bits */
static uint32_t devices;              /* how many devices there are */

static uint64_t vram_reach_bit(uint32_t device) { return (uint64_t)1 << device; }

typedef int ask_peer(int *, int, int);

static uint64_t who_can_reach(ask_peer *ask, uint32_t device) {
    uint64_t found = vram_reach_bit(device);
    for (uint32_t by = 0; by < devices; by++) {
        int may = 0;
        if (by != device && !ask(&may, (int)by, (int)device) && may) found |= vram_reach_bit(by);
    }
    return found;
}

bool vram_reach_begin(void *(*find)(const char *name)) {
    int (*count)(int *) = (int (*)(int *))find("cuDeviceGetCount");
    ask_peer *ask = (ask_peer *)find("cuDeviceCanAccessPeer");
    int found = 0;
    if (!count || !ask || count(&found) || found < 1 || found > VRAM_DEVICES) return false;
    devices = (uint32_t)found;
    for (uint32_t i = 0; i < devices; i++) __atomic_store_n(&can[i], who_can_reach(ask, i), __ATOMIC_RELEASE);
    return true;
}

bool vram_reach_works_on(uint32_t device) {
    if (device >= VRAM_DEVICES || __atomic_load_n(&works_on, __ATOMIC_ACQUIRE) & vram_reach_bit(device)) return false;
    return !(__atomic_fetch_or(&works_on, vram_reach_bit(device), __ATOMIC_ACQ_REL) & vram_reach_bit(device));
}

void vram_reach_pool(uint32_t device, uint32_t by, bool may) {
    if (device >= VRAM_DEVICES || by >= VRAM_DEVICES) return;
    if (may)
        __atomic_fetch_or(&pooled[device], vram_reach_bit(by), __ATOMIC_ACQ_REL);
    else
        __atomic_fetch_and(&pooled[device], ~vram_reach_bit(by), __ATOMIC_ACQ_REL);
}

uint64_t vram_reach_of(uint32_t device, bool in_stream) {
    if (in_stream) return vram_reach_bit(device) | __atomic_load_n(&pooled[device], __ATOMIC_ACQUIRE);
    return vram_reach_bit(device) |
           (__atomic_load_n(&works_on, __ATOMIC_ACQUIRE) & __atomic_load_n(&can[device], __ATOMIC_ACQUIRE));
}

bool vram_reach_is_whole(uint32_t device) {
    uint64_t all = devices < VRAM_DEVICES ? vram_reach_bit(devices) - 1 : UINT64_MAX;
    return device < VRAM_DEVICES && __atomic_load_n(&can[device], __ATOMIC_ACQUIRE) == all;
}

static void vram_reach_abandon(void) {
    works_on = 0;
    memset(can, 0, sizeof can);
    memset(pooled, 0, sizeof pooled);
    devices = 0;
}
FORKED(vram_reach_abandon);
