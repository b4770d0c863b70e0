// A model's memory is moved out and back: large blocks, mappings and assigned memory; small blocks stay. Its content is
// there when it is used again. Blocks that are freed or resized meanwhile behave as if they had never been away.
// run: --stacks=full
// run: --stacks=none
#include "abi.h"
#include "expect.h"
#include "kernel.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>

enum { PAGE = 4096, MIB = 1 << 20, BLOCKS = 8, BLOCK = 5 * MIB + 123 };

static uint32_t model, other;
static unsigned char *blocks[BLOCKS], *mapping, *small;

static void fill(unsigned char *p, size_t size, uint32_t seed) {
    for (size_t i = 0; i < size; i += 64) memcpy(p + i, &(uint32_t){seed + (uint32_t)i}, size - i < 4 ? size - i : 4);
}

static bool holds(const unsigned char *p, size_t size, uint32_t seed) {
    for (size_t i = 0; i < size; i += 64)
        if (memcmp(p + i, &(uint32_t){seed + (uint32_t)i}, size - i < 4 ? size - i : 4)) return false;
    return true;
}

static struct memstow_figures figures_of(uint32_t owner) {
    struct memstow_figures figures = {.size = sizeof figures};
    MUST(abi_memstow_owner_figures(owner, &figures) == 0);
    return figures;
}

static void load(void) {
    MUST(CALL(0, memstow_scope_enter, model) == 0);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = i % 2 ? malloc(BLOCK) : calloc(1, BLOCK);
        MUST(blocks[i]);
        fill(blocks[i], BLOCK, (uint32_t)i);
    }
    small = malloc(1000);
    MUST(small);
    fill(small, 1000, 77);
    MUST(CALL(0, memstow_scope_leave, model) == 0);
    mapping = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(mapping != MAP_FAILED);
    fill(mapping, 4 * MIB, 99);
    MUST(CALL(0, memstow_assign, model, mapping, 4 * MIB) == 0);
}

static void all_is_there(void) {
    for (int i = 0; i < BLOCKS; i++) MUST(!blocks[i] || holds(blocks[i], BLOCK, (uint32_t)i));
    MUST(holds(mapping, 4 * MIB, 99) && holds(small, 1000, 77));
}

static void stow(void) {
    struct memstow_figures before = figures_of(model);
    int64_t left = abi_memstow_stow(model);
    struct memstow_figures after = figures_of(model);
    MUST(left == (int64_t)before.movable_bytes);
    MUST(before.resident_bytes >= 40 * MIB && after.resident_bytes < MIB);
    MUST(after.stowed_bytes == before.movable_bytes && after.live_bytes == before.live_bytes);
}

/* A block of one model, a part of which belongs to another model: each model moves its own part. */
static void part_of_a_block(void) {
    struct memstow_figures before[2] = {figures_of(model), figures_of(other)};
    unsigned char *block = malloc(8 * MIB);
    MUST(block);
    fill(block, 8 * MIB, 5);
    MUST(abi_memstow_assign(model, block, 8 * MIB) == 0);
    MUST(abi_memstow_assign(other, block + 2 * MIB, 4 * MIB) == 0);
    MUST(figures_of(model).live_bytes == before[0].live_bytes + 4 * MIB);
    MUST(figures_of(model).movable_bytes <= before[0].movable_bytes + 4 * MIB);
    MUST(figures_of(model).movable_bytes >= before[0].movable_bytes + 4 * MIB - 4 * PAGE);
    MUST(figures_of(other).movable_bytes >= before[1].movable_bytes + 4 * MIB - PAGE);
    int64_t left = abi_memstow_stow(other);
    MUST(left >= 4 * MIB - PAGE && left <= 4 * MIB);
    MUST(figures_of(model).stowed_bytes == before[0].stowed_bytes && (int64_t)figures_of(other).stowed_bytes == left);
    MUST(holds(block, 8 * MIB, 5));
    free(block);
    MUST(figures_of(model).live_bytes == before[0].live_bytes && figures_of(other).live_bytes == before[1].live_bytes);
    MUST(figures_of(other).stowed_bytes == before[1].stowed_bytes);
}

/* Only the process's own pages count as resident. The zero page does not count, and neither do pages of a file that are
 * only in the page cache. */
static void resident_is_what_the_process_has(void) {
    if (!kernel_is(6, 7)) return; /* older kernels do not tell the zero page from others */
    unsigned char *p = mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(p != MAP_FAILED && madvise(p, 8 * MIB, MADV_NOHUGEPAGE) == 0);
    MUST(abi_memstow_assign(model, p, 8 * MIB) == 0);
    fill(p, 4 * MIB, 3);
    for (int i = 4 * MIB; i < 8 * MIB; i += PAGE) MUST(!((volatile unsigned char *)p)[i]);
    MUST(abi_memstow_stow(model) >= 4 * MIB);
    MUST(figures_of(model).resident_bytes == 0);
    MUST(holds(p, 64, 3));
    MUST(figures_of(model).resident_bytes <= 64 * 1024); /* the kernel maps pages around it */
    MUST(abi_memstow_restore(model) >= 4 * MIB && holds(p, 4 * MIB, 3));
    MUST(munmap(p, 8 * MIB) == 0);
}

int main(void) {
    abi_find();
    model = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "model", "", 1, 0);
    other = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "other", "", 2, 0);
    load();
    if (has_memstow) {
        resident_is_what_the_process_has();
        part_of_a_block();
        MUST(abi_memstow_stow(0) == -ENOENT && abi_memstow_stow(4711) == -ENOENT);
        stow();
        all_is_there(); /* use brings it back */
        MUST(abi_memstow_restore(model) >= 0);
        MUST(figures_of(model).stowed_bytes == 0);
        all_is_there();
        stow();
        MUST(abi_memstow_owner_adopt(other, model) == 0);
        MUST(figures_of(other).stowed_bytes > 40 * MIB);
        model = other;
    }
    free(blocks[1]);
    blocks[1] = NULL;
    blocks[2] = realloc(blocks[2], 2 * BLOCK);
    MUST(blocks[2] && holds(blocks[2], BLOCK, 2));
    free(blocks[2]);
    blocks[2] = NULL;
    blocks[3][7] = 9; /* unchanged except for one byte */
    MUST(munmap(mapping + MIB, MIB) == 0);
    MUST(madvise(mapping + 2 * MIB, MIB, MADV_DONTNEED) == 0);
    MUST(mapping[2 * MIB] == 0 && mapping[3 * MIB - 1] == 0);
    MUST(holds(mapping + 3 * MIB, MIB, 99 + 3 * MIB));
    if (has_memstow) MUST(abi_memstow_restore(model) > 0);
    MUST(blocks[3][7] == 9 && holds(blocks[4], BLOCK, 4) && holds(mapping, MIB, 99));
    EXPECT("owners[name=other].live_bytes", 6 * BLOCK + 1000 + 3 * MIB);
    EXPECT("owners[name=other].stowed_bytes", 0);
    return 0;
}
