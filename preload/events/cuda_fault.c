/* cuda_fault.c — see cuda_fault.h. The driver tells neither the address nor the kernel, and any later call may return
 * the error. So this file names memory that was not there for a kernel: stowed memory, and the blocks that were freed
 * most recently.
 *
 * Frees are kept in a ring. A writer sets the address of a record to 0 first, and to the block's address last. A reader
 * copies a record, and takes the copy only if the address was the same before and after: otherwise another thread was
 * writing it. */
#include "preload/events/cuda_fault.h"

#include <string.h>

#include "preload/base/forked.h"
#include "preload/base/notice.h"
#include "preload/base/seal.h"
#include "preload/count/misuse_records.h"
#include "preload/count/owner.h"
#include "preload/count/site.h"
#include "preload/count/tags.h"
#include "preload/count/thread.h"
#include "preload/cuda/cuda_counts.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/trace.h"
#include "preload/shared/os.h"
#include "preload/vram/vram_owned.h"

/* BLOCKS_TOLD: how many stowed blocks, and how many freed blocks, get a record. OWNERS_TOLD: owners in the trace.
 * OWNERS_NAMED: owners in the line on standard error. FAULTS_MOST: how many faults of a process are told. */
enum { RING = 64, BLOCKS_TOLD = 8, OWNERS_TOLD = 16, OWNERS_NAMED = 4, FAULTS_MOST = 4 };

struct freed {
    uint64_t address, size, ns;
    uint32_t made, made_tag, by; /* made, made_tag: site and tag of the allocation; by: the site of the free, 0 if not
                                  * known */
    uint32_t owner;              /* the model of the allocation; 0: none */
};
static struct freed ring[RING];
static uint64_t freed_count;     /* frees so far; free n is at ring[n % RING] */
static uint32_t faults, told_at; /* told_at: 1 + how many contexts had ended at the newest fault; 0: no fault yet */

/* --- the ring of blocks that were freed most recently --- */

/* Whether the call stack of the block's free is recorded. For memory of cudaMalloc it always is: such a free waits for
 * the device, so a call stack adds little to its cost. A free in the order of a stream (cuMemFreeAsync) is cheap. So
 * for all other memory, the stack is recorded only if the block belongs to a model. It costs 200 of the 6,300
 * instructions of a pair of cuMemAllocAsync and cuMemFreeAsync in a model's scope. */
static bool has_stack(const struct snap_cuda_block *block, uint32_t owner) {
    return owner || block->kind == SNAP_CUDA_DEVICE_MEMORY;
}

void cuda_fault_freed(const struct cuda_call *call, const struct snap_cuda_block *block) {
    if (!snap_cuda_on_device(block->kind)) return;
    struct cuda_made made = cuda_counts_at(block->count);
    struct freed *to = &ring[__atomic_fetch_add(&freed_count, 1, __ATOMIC_RELAXED) % RING];
    os_store(&to->address, 0);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    to->size = block->size;
    to->ns = os_now();
    to->made = made.site;
    to->made_tag = made.tag;
    to->owner = made.tag ? tags_at(made.tag).model : 0;
    to->by = has_stack(block, to->owner) ? site_of_call(call->caller) : 0;
    __atomic_store_n(&to->address, block->address, __ATOMIC_RELEASE);
}

static bool read_freed(uint64_t number, struct freed *out) {
    const struct freed *from = &ring[number % RING];
    uint64_t address = __atomic_load_n(&from->address, __ATOMIC_ACQUIRE);
    *out = *from;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return address && os_load(&from->address) == address;
}

/* The blocks that were freed most recently, the latest first. Returns their number. */
static uint32_t last_freed(struct freed *to) {
    uint64_t end = os_load(&freed_count);
    uint32_t count = 0;
    for (uint64_t number = end; number && end - number < RING && count < BLOCKS_TOLD; number--)
        count += read_freed(number - 1, &to[count]);
    return count;
}

/* --- blocks that are off their device, and their owners --- */

struct stowed {
    struct owner_stowed {
        /* ns, trigger: when and by which trigger the owner's newest stowed block was moved */
        uint64_t bytes, ns, trigger;
        uint32_t owner, blocks;
    } owners[OWNERS_TOLD];
    struct vram_stowed blocks[BLOCKS_TOLD]; /* the largest, in descending order */
    uint32_t owner_count, block_count;
    uint64_t bytes; /* all stowed bytes, also those of owners and blocks that are left out here */
};

static void cuda_fault_add_owner(struct stowed *self, const struct vram_stowed *block) {
    uint32_t i = 0, owner = owner_final(block->owner);
    while (i < self->owner_count && self->owners[i].owner != owner) i++;
    if (i == OWNERS_TOLD) return;
    if (i == self->owner_count) self->owners[self->owner_count++] = (struct owner_stowed){.owner = owner};
    struct owner_stowed *to = &self->owners[i];
    to->bytes += block->bytes;
    to->blocks++;
    if (block->ns < to->ns) return;
    to->ns = block->ns;
    to->trigger = block->trigger;
}

static void add_stowed(const struct vram_stowed *block, void *context) {
    struct stowed *self = context;
    uint32_t at = self->block_count;
    self->bytes += block->bytes;
    cuda_fault_add_owner(self, block);
    while (at && self->blocks[at - 1].bytes < block->bytes) at--;
    if (at == BLOCKS_TOLD) return;
    if (self->block_count < BLOCKS_TOLD) self->block_count++;
    memmove(&self->blocks[at + 1], &self->blocks[at], (self->block_count - 1 - at) * sizeof *self->blocks);
    self->blocks[at] = *block;
}

/* --- records in the ledger --- */

static uint32_t cuda_fault_tagged(uint32_t site, uint32_t tag) { return site && tag ? site_tagged(site, tag) : site; }

static void cuda_fault_record(struct snap_misuse *what, uint32_t made, uint32_t made_tag, uint32_t by, uint32_t now) {
    const uint32_t sites[SNAP_MISUSE_SITES] = {[SNAP_MISUSE_ALLOCATED] = cuda_fault_tagged(made, made_tag),
                                               [SNAP_MISUSE_FREED_FIRST] = by,
                                               [SNAP_MISUSE_NOW] = now};
    what->call = SNAP_MISUSE_END;
    what->thread = thread_slot();
    for (int i = 0; i < SNAP_MISUSE_SITES; i++) {
        if (sites[i]) site_keep(sites[i]);
        what->sites[i].site = sites[i];
    }
    misuse_records_write(misuse_records_next(), what);
}

static void record_stowed(const struct vram_stowed *block, uint32_t now) {
    struct snap_cuda_block known = {0};
    struct cuda_made made = {0};
    struct snap_misuse what = {
        .kind = SNAP_MISUSE_STOWED_FAULT, .address = block->at, .size = block->asked, .time_ns = block->ns};
    if (cuda_blocks_find(CUDA_ADDRESS, block->at, &known)) made = cuda_counts_at(known.count);
    cuda_fault_record(&what, made.site, made.tag, 0, now);
}

static void record_freed(const struct freed *block, uint32_t now) {
    struct snap_misuse what = {
        .kind = SNAP_MISUSE_FREED_FAULT, .address = block->address, .size = block->size, .time_ns = block->ns};
    cuda_fault_record(&what, block->made, block->made_tag, block->by, now);
}

/* --- lines in the trace, and the line on standard error --- */

static void trace_stowed(const struct owner_stowed *owner) {
    struct line line;
    line_begin(&line, "FAULT_STOWED");
    line_number(&line, "owner", owner->owner);
    line_number(&line, "bytes", owner->bytes);
    line_number(&line, "blocks", owner->blocks);
    line_number(&line, "since_ns", owner->ns);
    if (owner->trigger) line_number(&line, "of_trigger", owner->trigger);
    trace_add_line(&line);
}

static void trace_freed(const struct freed *block) {
    struct line line;
    line_begin(&line, "FAULT_FREED");
    if (block->owner) line_number(&line, "owner", owner_final(block->owner));
    line_number(&line, "address", block->address);
    line_number(&line, "bytes", block->size);
    line_number(&line, "since_ns", block->ns);
    trace_add_line(&line);
}

static void trace_fault(const char *name, const struct stowed *stowed, const struct freed *freed, uint32_t count) {
    struct line line;
    line_begin(&line, "FAULT");
    line_number(&line, "cuda_error", CUDA_ILLEGAL_ADDRESS);
    line_string(&line, "call", name);
    line_number(&line, "bytes", stowed->bytes);
    trace_add_line(&line);
    for (uint32_t i = 0; i < stowed->owner_count; i++) trace_stowed(&stowed->owners[i]);
    for (uint32_t i = 0; i < count; i++) trace_freed(&freed[i]);
}

/* Writes the name and the origin of an owner, for example "unet (unet.safetensors)". Models of the same name have
 * different origins. */
static void put_owner(struct notice *self, uint32_t id) {
    const struct owner *owner = owner_known(id);
    notice_put(self, owner && owner->name ? owner->name : "no owner");
    if (!owner || !owner->origin || !*owner->origin) return;
    notice_put(self, " (");
    notice_put(self, owner->origin);
    notice_put(self, ")");
}

static void put_bytes(struct notice *self, uint64_t bytes) {
    notice_number(self, bytes >> 20 ? bytes >> 20 : bytes);
    notice_put(self, bytes >> 20 ? " MiB" : " bytes");
}

static void put_age(struct notice *self, uint64_t ns) {
    uint64_t ms = (os_now() - ns) / 1000000;
    notice_number(self, ms < 10000 ? ms : ms / 1000);
    notice_put(self, ms < 10000 ? " ms ago" : " s ago");
}

static void put_stowed(struct notice *self, const struct owner_stowed *owner) {
    put_bytes(self, owner->bytes);
    notice_put(self, " of ");
    put_owner(self, owner->owner);
    notice_put(self, ", stowed ");
    put_age(self, owner->ns);
    notice_put(self, owner->trigger ? " by trigger " : " by a request");
    if (owner->trigger) notice_number(self, owner->trigger);
}

static void put_owners(struct notice *self, const struct stowed *stowed) {
    for (uint32_t i = 0; i < stowed->owner_count && i < OWNERS_NAMED; i++) {
        notice_put(self, i ? ", " : "; memory off its device: ");
        put_stowed(self, &stowed->owners[i]);
    }
    if (!stowed->owner_count) notice_put(self, "; no memory was off its device");
}

static void put_freed(struct notice *self, const struct freed *block) {
    notice_put(self, "; the last block that was freed: ");
    put_bytes(self, block->size);
    notice_put(self, " of ");
    put_owner(self, owner_final(block->owner));
    notice_put(self, ", ");
    put_age(self, block->ns);
}

static void write_line(const char *how, const char *name, const struct stowed *stowed, const struct freed *freed,
                       uint32_t count) {
    struct notice line;
    if (seal_is_set()) return;
    notice_begin(&line);
    notice_put(&line, "illegal address on a device (error 700), ");
    notice_put(&line, how);
    notice_put(&line, name);
    put_owners(&line, stowed);
    if (count) put_freed(&line, freed);
    if (*ledger_path()) {
        notice_put(&line, "; more: memstow report ");
        notice_put(&line, ledger_path());
    }
    notice_write(&line);
}

/* --- what happens at a fault --- */

static bool is_first_of_context(void) {
    uint32_t now = 1 + cuda_device_contexts_ended(), last = os_load32(&told_at);
    if (last == now || os_load32(&faults) >= FAULTS_MOST) return false;
    return __atomic_compare_exchange_n(&told_at, &last, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void cuda_fault_tell(const struct cuda_call *call, const char *how, const char *name) {
    struct stowed stowed = {.bytes = 0};
    struct freed freed[BLOCKS_TOLD];
    if (!is_first_of_context()) return;
    __atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
    uint32_t now = site_of_call(call->caller), count = last_freed(freed);
    vram_owned_visit_stowed(add_stowed, &stowed);
    for (uint32_t i = 0; i < stowed.block_count; i++) record_stowed(&stowed.blocks[i], now);
    for (uint32_t i = 0; i < count; i++) record_freed(&freed[i], now);
    trace_fault(name, &stowed, freed, count);
    write_line(how, name, &stowed, freed, count);
}

void cuda_fault_seen(const struct cuda_call *call, const char *name) { cuda_fault_tell(call, "found by ", name); }

void cuda_fault_asked(const struct cuda_call *call, const char *name, int error) {
    if (unlikely(error == CUDA_ILLEGAL_ADDRESS)) cuda_fault_tell(call, "whose text the program asked of ", name);
}

static void cuda_fault_abandon(void) {
    memset(ring, 0, sizeof ring);
    freed_count = 0;
    faults = told_at = 0;
}
FORKED(cuda_fault_abandon);
