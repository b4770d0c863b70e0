// memstow_blocks tells owners, call stack and size of the blocks at given addresses. Where there is no block, it tells
// nothing.
// run:
// run: --stacks=none
// run: --allocator=mimalloc
// needs: mimalloc
#include "abi.h"
#include "expect.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { MIB = 1 << 20 };

#define look_up abi_memstow_blocks

static struct memstow_block at(const void *address, uint32_t how) {
    struct memstow_block block;
    uint64_t number = (uintptr_t)address;
    int64_t found = look_up(&number, 1, how, &block, sizeof block);
    MUST(found == (block.size != 0));
    return block;
}

// Checks start and size of the block at the address. Returns all that is known of the block.
static struct memstow_block must_be(const void *address, uint32_t how, const void *start, uint64_t size) {
    struct memstow_block block = at(address, how);
    MUST(block.start == (uintptr_t)start && block.size == size);
    return block;
}

static void must_be_nobodys(struct memstow_block block) { MUST(!block.model && !block.node && !block.run); }

__attribute__((noinline)) static char *take(size_t size) {
    char *volatile block = malloc(size);
    MUST(block);
    memset(block, 1, size);
    return block;
}

__attribute__((noinline)) static char *take_again(void) { return take(100); }

// One stack for two blocks, and another one for the third.
static void stacks_are_told_apart(bool recorded) {
    char *same[2], *other = take(100);
    for (volatile int i = 0; i < 2; i++) same[i] = take_again();
    uint32_t stacks[] = {at(same[0], 0).stack, at(same[1], 0).stack, at(other, 0).stack};
    MUST(stacks[0] == stacks[1] && (stacks[0] != 0) == recorded && (stacks[0] != stacks[2]) == recorded);
    for (int i = 0; i < 2; i++) free(same[i]);
    free(other);
}

static void small_and_large(void) {
    char *small = take(33), *large = take(3 * MIB), *aligned = aligned_alloc(4096, 8192);
    must_be_nobodys(must_be(small, 0, small, 33));
    must_be_nobodys(must_be(large, 0, large, 3 * MIB));
    must_be(aligned, 0, aligned, 8192);
    must_be(large + MIB + 1, MEMSTOW_INSIDE, large, 3 * MIB);
    MUST(!at(large + MIB, 0).size && !at(small + 16, 0).size && !at(small + 16, MEMSTOW_INSIDE).size);
    free(aligned);
    free(small);
    free(large);
    MUST(!at(large, MEMSTOW_INSIDE).size);
}

static void mappings(void) {
    char *map = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(map != MAP_FAILED);
    must_be(map + MIB - 1, MEMSTOW_INSIDE, map, MIB);
    MUST(!at(map, 0).size); // it is no block of the heap
    MUST(munmap(map, MIB) == 0 && !at(map, MEMSTOW_INSIDE).size);
    map = mmap(NULL, MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(!at(map, MEMSTOW_INSIDE).size); // only reserved
    munmap(map, MIB);
}

static void owners(void) {
    uint32_t model = (uint32_t)abi_memstow_owner_open(MEMSTOW_MODEL, "model", "", 1, 1);
    uint32_t provisional = (uint32_t)abi_memstow_owner_open(MEMSTOW_MODEL, "provisional", "", 2, 2);
    uint32_t node = (uint32_t)abi_memstow_owner_open(MEMSTOW_NODE, "node", "", 3, 3);
    uint32_t run = (uint32_t)abi_memstow_run_begin("run");
    MUST(abi_memstow_scope_enter(provisional) == 0 && abi_memstow_scope_enter(node) == 0);
    char *small = take(33), *large = take(3 * MIB);
    MUST(abi_memstow_scope_leave(node) == 0 && abi_memstow_scope_leave(provisional) == 0);
    MUST(abi_memstow_run_end(run, MEMSTOW_OK) == 0 && abi_memstow_owner_adopt(model, provisional) == 0);
    struct memstow_block blocks[] = {must_be(small, 0, small, 33), must_be(large, 0, large, 3 * MIB)};
    for (int i = 0; i < 2; i++) MUST(blocks[i].model == model && blocks[i].node == node && blocks[i].run == run);
    char *given = take(MIB);
    MUST(abi_memstow_assign(model, given, MIB) == 0 && at(given, 0).model == model && !at(given, 0).run);
    free(small);
    free(large);
    free(given);
}

// Looks up a block among invalid addresses and addresses of other things. Passes structures of other sizes, and invalid
// pointers.
static void nonsense(void) {
    struct memstow_block block = {0};
    char shorter[16];
    char *small = take(64);
    const uint64_t addresses[] = {0, 1, 16, 4096, UINT64_MAX, (uintptr_t)&block, (uintptr_t)small, (uintptr_t)nonsense};
    struct memstow_block all[8];
    MUST(look_up(addresses, 8, MEMSTOW_INSIDE, all, sizeof *all) == 1 && all[6].size == 64);
    MUST(look_up(addresses + 6, 1, 0, (struct memstow_block *)shorter, sizeof shorter) == 1);
    MUST(memcmp(shorter, &all[6], sizeof shorter) == 0);
    MUST(look_up(addresses, 0, 0, NULL, sizeof block) == 0);
    errno = 77;
    MUST(look_up(addresses, 1, 2, &block, sizeof block) == -EINVAL && look_up(addresses, 1, 0, &block, 0) == -EINVAL);
    MUST(look_up(NULL, 1, 0, &block, sizeof block) == -EFAULT && look_up(addresses, 1, 0, NULL, 40) == -EFAULT);
    MUST(look_up((const uint64_t *)16, 1, 0, &block, sizeof block) == -EFAULT && errno == 77);
    free(small);
}

static void many(void) {
    enum { COUNT = 1000 };
    static uint64_t addresses[COUNT];
    static struct memstow_block blocks[COUNT];
    for (int i = 0; i < COUNT; i++) addresses[i] = (uintptr_t)take(16 + (size_t)i);
    MUST(look_up(addresses, COUNT, 0, blocks, sizeof *blocks) == COUNT);
    for (int i = 0; i < COUNT; i++) MUST(blocks[i].start == addresses[i] && blocks[i].size == 16 + (uint64_t)i);
    for (int i = 0; i < COUNT; i++) free((void *)(uintptr_t)addresses[i]);
}

int main(void) {
    const char *options = getenv("MEMSTOW_STACKS");
    abi_find();
    if (has_memstow) {
        stacks_are_told_apart(!options || strcmp(options, "none") != 0);
        small_and_large();
        mappings();
        owners();
        nonsense();
        many();
    }
    puts("ok");
    return 0;
}
