/* host.c — see host.h. */
#include "preload/blocks/host.h"

#include "preload/base/seal.h"
#include "preload/blocks/blocks.h"
#include "preload/blocks/gone.h"

/* Reads the 16 bytes in front of p. If p is page-aligned, it depends on the allocator whether they can be read:
 *
 * - Over a foreign allocator, perhaps no memory is there. So host_look_at does not call this function for such a p.
 * - Over glibc and mimalloc, p is a block of ours or a chunk of glibc, and both have a header in front. */
bool host_has_header(const void *p) {
    const struct header *header = host_header(p);
    uint32_t mark = header_mark_in(header);
    return header_magic(mark) && header_size_fits(mark, header->size) && host_has_key(p, header) &&
           header_generation(mark) <= header_generation(tracked_mark);
}

static struct host_known in_table(void *p, const struct block *entry) {
    uint32_t distance = entry->mark & BLOCK_BARE ? 0 : header_distance(entry->mark);
    return (struct host_known){(char *)p - distance, entry->size, entry->site, entry->mark, true, true};
}

/* Whether the 16 bytes in front of p can be read. In a sandbox the kernel is not asked, and the program's pointer is
 * trusted. */
static bool may_read_header(const void *p) {
    struct header header;
    return seal_settles() ? os_peek(&header, host_header(p), sizeof header) : seal_is_for_good();
}

static bool may_be_bare(const void *p) { return host_on_page(p) || host_on_chunk(p); }

/* Whether p was a block in a mapping that is gone. Then the 16 bytes in front of p must not be read. */
static bool is_unmapped(const void *p) {
    struct block entry;
    return __builtin_expect(gone_has(p), 0) && !blocks_find((uintptr_t)p, &entry) && gone_is_unmapped(p);
}

struct host_known host_look_at(void *p) {
    struct block entry;
    bool foreign = next_found == NEXT_FOREIGN;
    if (may_be_bare(p) && blocks_find((uintptr_t)p, &entry) && (entry.mark & BLOCK_BARE || foreign))
        return in_table(p, &entry);
    if (host_on_page(p) && foreign) return (struct host_known){.raw = p};
    if (is_unmapped(p) || !host_has_header(p)) return (struct host_known){.raw = p};
    gone_forget(p);
    const struct header *header = host_header(p);
    uint32_t mark = header_mark_in(header);
    bool listed = mark & HEADER_LISTED;
    if (listed && blocks_find((uintptr_t)p, &entry) && entry.size != header->size) return (struct host_known){.raw = p};
    return (struct host_known){
        (char *)p - header_distance(mark), header->size, header_site(header), mark, true, listed};
}

/* Whether host_look_at may look at an address. Perhaps no block is there, or no memory. */
static bool may_look_at(uintptr_t address) {
    struct block entry;
    if (!address || address % HOST_BEFORE) return false;
    if (may_be_bare((void *)address) && blocks_find(address, &entry)) return true;
    return may_read_header((void *)address);
}

static bool find_listed_around(uintptr_t address, uintptr_t *start, struct block *entry) {
    *start = blocks_around(address, entry);
    return *start != 0;
}

static bool is_programs(uintptr_t address, const struct host_known *block, struct host_block *out) {
    *out = (struct host_block){address, block->size, block->site, (block->mark & HEADER_PARTS) != 0};
    return block->ours && !(block->mark & HEADER_EARLY) && tracked_page.stage == TRACKED_YES &&
           !host_is_inherited(block);
}

bool host_find_start(uintptr_t address, struct host_block *out) {
    struct host_known block = may_look_at(address) ? host_look_at((void *)address) : (struct host_known){0};
    return is_programs(address, &block, out);
}

bool host_find(uintptr_t address, struct host_block *out) {
    struct block entry;
    struct host_known block = may_look_at(address) ? host_look_at((void *)address) : (struct host_known){0};
    if (!block.ours && find_listed_around(address, &address, &entry)) block = in_table((void *)address, &entry);
    return is_programs(address, &block, out);
}

static uint32_t with_parts(uint32_t mark, bool parts) {
    return (mark & ~(uint32_t)HEADER_PARTS) | (parts ? HEADER_PARTS : 0);
}

void host_change(const struct host_block *block) {
    struct block entry;
    void *p = (void *)block->start;
    bool listed = blocks_find(block->start, &entry), bare = listed && entry.mark & BLOCK_BARE;
    if (!bare) host_write_header(p, block->size, with_parts(header_mark_in(host_header(p)), block->parts), block->site);
    if (!listed) return;
    entry.site = block->site;
    entry.mark = with_parts(entry.mark, block->parts);
    blocks_change(block->start, &entry);
}
