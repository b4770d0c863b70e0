/* register_blocks.c — the entry point of memstow.h that tells which owners have the blocks at some addresses.
 * In: addresses, which may lead nowhere. Out: owners and call stack of each block there. It changes nothing, and trusts
 * no address: the bytes in front of an address are read through the kernel. */
#include "include/memstow.h"

#include <errno.h>

#include "preload/cuda/cuda_blocks.h"
#include "preload/cuda/cuda_counts.h"
#include "preload/abi/entry.h"
#include "preload/blocks/host.h"
#include "preload/ledger/ledger.h"
#include "preload/blocks/mappings.h"
#include "preload/count/owner.h"
#include "preload/life/process.h"
#include "preload/count/site.h"
#include "preload/count/tags.h"
#include "preload/base/seal.h"

static struct memstow_block block_of(uint64_t start, uint64_t size, uint32_t tag, uint32_t stack) {
    struct snap_tag whose = tags_at(tag);
    return (struct memstow_block){start, size, owner_final(whose.model), whose.node, whose.run, stack};
}

static struct memstow_block block_at_site(uint64_t start, uint64_t size, uint32_t site) {
    struct snap_site record = site_record(site);
    if (record.word == SNAP_SITE_FREE) return (struct memstow_block){0}; /* the block has just been freed */
    return block_of(start, size, snap_site_tag(record), snap_site_stack(record));
}

/* --- the CUDA block at an address --- */

struct search {
    uint64_t address;
    struct snap_cuda_block block;
};

/* Looks at one block. If the address lies in a part (a piece of a block that was assigned to another owner), finds the
 * part and not the block around it. */
static void look_at_cuda_block(enum cuda_space space, const struct snap_cuda_block *block, void *context) {
    struct search *search = context;
    bool is_memory = space == CUDA_ADDRESS || space == CUDA_PART;
    if (!is_memory || search->address < block->address || search->address - block->address >= block->size) return;
    if (!search->block.size || space == CUDA_PART) search->block = *block;
}

static bool find_on_cuda(uint64_t address, struct memstow_block *out) {
    struct search search = {.address = address};
    if (!cuda_counts_begun()) return false;
    cuda_blocks_all(look_at_cuda_block, &search);
    if (!search.block.size || !search.block.count) return false;
    struct cuda_made made = cuda_counts_at(search.block.count);
    *out = block_of(search.block.address, search.block.size, made.tag, snap_site_stack(site_record(made.site)));
    return true;
}

/* --- the block of any kind at an address --- */

static bool find_around(uint64_t address, struct memstow_block *out) {
    struct host_block host;
    struct snap_mapping mapping;
    if (mappings_find(address, &mapping))
        *out = block_at_site(mapping.address, mapping.length, mapping.site);
    else if (host_find(address, &host))
        *out = block_at_site(host.start, host.size, host.site);
    else
        return find_on_cuda(address, out);
    return true;
}

static bool find_block(uint64_t address, uint32_t how, struct memstow_block *out) {
    struct host_block host;
    *out = (struct memstow_block){0};
    if (host_find_start(address, &host))
        *out = block_at_site(host.start, host.size, host.site);
    else if (how & MEMSTOW_INSIDE)
        find_around(address, out);
    return out->size != 0;
}

enum { AT_ONCE = 256 };

/* Writes the blocks to the caller's array `out`, whose structures have `size` bytes. False: the array cannot be
 * written. */
static bool hand_out(char *out, uint32_t size, const struct memstow_block *blocks, uint32_t count) {
    if (size == sizeof *blocks) return entry_out(out, blocks, count * sizeof *blocks);
    uint32_t part = size < sizeof *blocks ? size : sizeof *blocks;
    for (uint32_t i = 0; i < count; i++)
        if (!entry_out(out + (uint64_t)i * size, &blocks[i], part)) return false;
    return true;
}

/* Looks up at most AT_ONCE addresses, and writes the answers. Returns the number of blocks found, or -EFAULT. */
static int64_t find_some(const uint64_t *addresses, uint32_t count, uint32_t how, char *out, uint32_t size) {
    uint64_t some[AT_ONCE];
    struct memstow_block blocks[AT_ONCE];
    int64_t found = 0;
    if (!entry_in(some, addresses, count * sizeof *some)) return -EFAULT;
    for (uint32_t i = 0; i < count; i++) found += find_block(some[i], how, &blocks[i]);
    return hand_out(out, size, blocks, count) ? found : -EFAULT;
}

EXPORTED int64_t memstow_blocks(const uint64_t *addresses, uint32_t count, uint32_t how, struct memstow_block *out,
                                uint32_t size) {
    int64_t found = 0;
    if (!process_tracked()) return entry_not_tracked();
    if (!seal_settles()) return entry_fails(-ENODEV, "the process is in a sandbox, where addresses cannot be checked");
    if (!size || how & ~(uint32_t)MEMSTOW_INSIDE)
        return entry_fails(-EINVAL, "the size is 0, or there is an unknown flag");
    for (uint64_t i = 0; i < count; i += AT_ONCE) {
        uint32_t some = count - i < AT_ONCE ? (uint32_t)(count - i) : AT_ONCE;
        int64_t more = find_some(addresses + i, some, how, (char *)out + i * size, size);
        if (more < 0) return entry_fails(more, "the addresses cannot be read, or the blocks cannot be written there");
        found += more;
    }
    return found;
}
