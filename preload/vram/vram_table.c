/* vram_table.c — see vram_table.h. Each free on a device looks here. Blocks are found by a hash of their start. */
#include "preload/vram/vram_table.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>

#include "preload/base/arena.h"
#include "preload/shared/os.h"
#include "preload/base/forked.h"

enum { BUCKET_BITS = 10 };

static struct vram_block *blocks, *unused, *buckets[1 << BUCKET_BITS];
static uint32_t lock, turn; /* futexes: the lock (2: threads wait); a count of blocks that were given back */
static uint32_t count;
static uint64_t numbers;

void vram_table_lock(void) {
    uint32_t was = 0;
    if (__atomic_compare_exchange_n(&lock, &was, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    while (__atomic_exchange_n(&lock, 2, __ATOMIC_ACQUIRE)) os_call(SYS_futex, &lock, FUTEX_WAIT_PRIVATE, 2, NULL);
}

void vram_table_let_go(void) {
    if (__atomic_exchange_n(&lock, 0, __ATOMIC_RELEASE) == 2) os_call(SYS_futex, &lock, FUTEX_WAKE_PRIVATE, 1);
}

void vram_table_wait(void) {
    uint32_t seen = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);
    vram_table_let_go();
    os_call(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, seen, NULL);
    vram_table_lock();
}

void vram_table_changed(void) {
    __atomic_fetch_add(&turn, 1, __ATOMIC_RELEASE);
    os_call(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

static struct vram_block **bucket_of(uint64_t address) {
    return &buckets[address / VRAM_GRANULE * 0x9E3779B97F4A7C15u >> (64 - BUCKET_BITS)];
}

struct vram_block *vram_table_first(void) {
    return blocks;
}

struct vram_block *vram_table_around(uint64_t address) {
    for (struct vram_block *block = blocks; block; block = block->next)
        if (block->state != VRAM_WRECK && address - block->at < block->size) return block;
    return NULL;
}

struct vram_block *vram_table_starting(uint64_t address) {
    for (struct vram_block *block = *bucket_of(address); block; block = block->in_bucket)
        if (block->at == address && block->state != VRAM_WRECK) return block;
    return NULL;
}

struct vram_block *vram_table_take(uint64_t address) {
    for (;;) {
        struct vram_block *block = vram_table_starting(address);
        if (!block || block->state == VRAM_FREEING) return NULL;
        if (!block->moving) {
            block->moving = true;
            return block;
        }
        vram_table_wait();
    }
}

struct vram_block *vram_table_new(void) {
    struct vram_block *self = unused;
    if (self)
        unused = self->next;
    else
        self = arena_take(sizeof *self);
    if (self) memset(self, 0, sizeof *self);
    return self;
}

void vram_table_add(struct vram_block *self) {
    struct vram_block **bucket = bucket_of(self->start = self->at);
    self->next = blocks;
    blocks = self;
    self->in_bucket = *bucket;
    *bucket = self;
    __atomic_fetch_add(&count, 1, __ATOMIC_RELEASE);
}

void vram_table_drop(struct vram_block *self) {
    struct vram_block **link = &blocks, **in_bucket = bucket_of(self->start);
    while (*link != self) link = &(*link)->next;
    *link = self->next;
    while (*in_bucket != self) in_bucket = &(*in_bucket)->in_bucket;
    *in_bucket = self->in_bucket;
    self->next = unused;
    unused = self;
    __atomic_fetch_sub(&count, 1, __ATOMIC_RELEASE);
}

uint64_t vram_table_number(void) { return __atomic_add_fetch(&numbers, 1, __ATOMIC_SEQ_CST); }

uint64_t vram_table_last_number(void) { return __atomic_load_n(&numbers, __ATOMIC_SEQ_CST); }

/* Our ids are above the driver's, which count up from the bottom. */
uint64_t vram_table_id(void) { return (uint64_t)1 << 62 | vram_table_number(); }

uint32_t vram_table_count(void) { return __atomic_load_n(&count, __ATOMIC_ACQUIRE); }

static void vram_table_abandon(void) {
    blocks = unused = NULL;
    memset(buckets, 0, sizeof buckets);
    lock = turn = count = 0;
}
FORKED(vram_table_abandon);
