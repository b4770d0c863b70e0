/* compare_pools.c — see compare_pools.h.
 * - Pools that the program made are compared one by one. CUPTI's records and the ledger both list them.
 * - Memory from pools is compared by device, not by pool, because the ledger does not know the pool of each block. If
 *   the program's call names no pool, the driver takes the device's present pool, which may be another one than the
 *   default pool.
 *
 * CUPTI counts memory from pools in multiples of 512 bytes. So CUPTI's bytes of a device are right if they lie between
 * the ledger's bytes and the ledger's bytes with each block rounded up. */
#include "cupti/compare_pools.h"

#include <string.h>

#include "cupti/pools.h"

enum { MOST = 256, DEVICES = SNAP_CUDA_DEVICES, UNIT = 512 };

static struct {
    uint64_t pools[MOST];
    uint16_t devices[MOST];
    size_t count;
    uint64_t live[DEVICES], rounded[DEVICES]; /* bytes of blocks from pools: exact, and rounded up */
} ledger;
/* Figures by device. `used` has the bytes that CUPTI counts as handed out. In the previous comparison, before[][0] was
 * `used`, and before[][1] was `ledger.live`. */
static uint64_t used[DEVICES], before[DEVICES][2];

struct comparison {
    const struct cupti_sections *sections;
    size_t named;
    bool again;
};

static void compare_pools_differs(struct comparison *self, struct snap_cupti_block difference) {
    self->sections->head->pools_other++;
    difference.kind = SNAP_CUDA_POOL;
    if (self->named < SNAP_CUPTI_BLOCKS) self->sections->differences[self->named++] = difference;
}

static void note_ledger(enum cuda_space space, const struct snap_cuda_block *block, void *context) {
    (void)context;
    if (space == CUDA_POOL && ledger.count < MOST) {
        ledger.devices[ledger.count] = block->device;
        ledger.pools[ledger.count++] = block->address;
    }
    if (space != CUDA_ADDRESS || block->kind != SNAP_CUDA_POOL_MEMORY || block->device >= DEVICES) return;
    ledger.live[block->device] += block->size;
    ledger.rounded[block->device] += (block->size + UNIT - 1) / UNIT * UNIT;
}

static void look_at_pool(const struct pool *pool, void *context) {
    struct comparison *self = context;
    struct snap_cupti *head = self->sections->head;
    head->pool_reserved += pool->reserved;
    head->pool_used += pool->used;
    if (pool->device < DEVICES) used[pool->device] += pool->used;
    if (!pool->born || pool->died) return;
    for (size_t i = 0; i < ledger.count; i++)
        if (ledger.pools[i] == pool->address) {
            ledger.pools[i] = 0;
            head->pools_same++;
            return;
        }
    compare_pools_differs(self, (struct snap_cupti_block){.state = SNAP_CUPTI_ONLY_CUPTI,
                                                          .device = pool->device,
                                                          .address = pool->address,
                                                          .bytes = pool->reserved});
}

/* Compares the memory from pools of one device. In a repetition (`again`), a difference counts only if neither CUPTI's
 * bytes nor the ledger's bytes have changed since the previous comparison. If they have, allocations are in
 * progress. */
static void compare_device(struct comparison *self, uint16_t device) {
    bool same = used[device] >= ledger.live[device] && used[device] <= ledger.rounded[device];
    bool still = before[device][0] == used[device] && before[device][1] == ledger.live[device];
    before[device][0] = used[device];
    before[device][1] = ledger.live[device];
    if (same || (self->again && !still)) return;
    compare_pools_differs(self, (struct snap_cupti_block){.state = SNAP_CUPTI_SIZES,
                                                          .device = device,
                                                          .bytes = used[device],
                                                          .ledger_bytes = ledger.live[device]});
}

size_t compare_pools(const struct cupti_sections *sections, compare_blocks *blocks, size_t named, bool again) {
    struct comparison self = {sections, named, again};
    struct snap_cupti *head = sections->head;
    memset(&ledger, 0, sizeof ledger);
    memset(used, 0, sizeof used);
    head->pools_same = head->pools_other = 0;
    head->pool_reserved = head->pool_used = 0;
    blocks(note_ledger, NULL);
    pools_all(look_at_pool, &self);
    for (size_t i = 0; i < ledger.count; i++)
        if (ledger.pools[i])
            compare_pools_differs(&self, (struct snap_cupti_block){.state = SNAP_CUPTI_ONLY_LEDGER,
                                                                   .device = ledger.devices[i],
                                                                   .address = ledger.pools[i]});
    for (uint16_t device = 0; device < DEVICES && head->pool_records; device++) compare_device(&self, device);
    return self.named;
}
