// Existing memory is assigned to an owner: a block, a part of a block, a part of a mapping. Then it is assigned to
// another owner, and freed.
// run: --stacks=full
// run: --stacks=none
#include "abi.h"
#include "expect.h"

#include <sys/mman.h>

enum { SMALL = 48, LARGE = 1 << 20, PART = 1000, PAGE = 4096, MAPPED = 16 * PAGE, IN_RUN = 5000 };

static uint32_t unet, vae;

static void assign(uint32_t owner, void *start, uint64_t length) {
    MUST(CALL(0, memstow_assign, owner, start, length) == 0);
}

static uint64_t live(uint32_t owner) {
    struct memstow_figures figures = {.size = sizeof figures};
    MUST(abi_memstow_owner_figures(owner, &figures) == 0);
    return figures.live_bytes;
}

static void *parts(void) {
    char *block = malloc(LARGE);
    uint64_t before[2] = {has_memstow ? live(unet) : 0, has_memstow ? live(vae) : 0};
    MUST(block);
    assign(unet, block + PART, 3 * PART);
    assign(vae, block + 2 * PART, PART);     /* from the middle of it */
    assign(unet, block + 2 * PART + 10, 10); /* and back */
    MUST(!has_memstow || (live(unet) == before[0] + 2 * PART + 10 && live(vae) == before[1] + PART - 10));
    return block;
}

/* If a range does not begin and end with a page, only its whole pages can be moved, and only these are counted as
 * resident. */
static void odd_part(void) {
    struct memstow_figures before = {.size = sizeof before}, after = before;
    char *map = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(map != MAP_FAILED);
    memset(map, 1, MAPPED);
    if (has_memstow) MUST(abi_memstow_owner_figures(vae, &before) == 0);
    assign(vae, map + 100, 3 * PAGE);
    if (has_memstow) {
        MUST(abi_memstow_owner_figures(vae, &after) == 0);
        MUST(after.mapped_bytes == before.mapped_bytes + 3 * PAGE);
        MUST(after.movable_bytes == before.movable_bytes + 2 * PAGE);
        MUST(after.resident_bytes == before.resident_bytes + 2 * PAGE);
    }
    munmap(map, MAPPED);
}

/* Memory that is allocated in a run and for a node keeps this run and node, whichever model it is assigned to. */
static void in_a_run(void) {
    uint32_t node = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_NODE, "node", "", 3, 0);
    int64_t run = CALL(1, memstow_run_begin, "run");
    MUST(run > 0 && CALL(0, memstow_scope_enter, node) == 0);
    char *block = malloc(IN_RUN);
    MUST(block && CALL(0, memstow_scope_leave, node) == 0);
    assign(unet, block, IN_RUN);
    MUST(CALL(0, memstow_run_end, (uint32_t)run, MEMSTOW_OK) == 0);
    EXPECT("owners[kind=run].live_bytes", IN_RUN);
    EXPECT("owners[name=node].live_bytes", IN_RUN);
    EXPECT("sites[run=run].live_bytes", IN_RUN);
    EXPECT("sites[node=node].live_bytes", IN_RUN);
}

int main(void) {
    abi_find();
    unet = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "unet", "", 1, 0);
    vae = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_CUSTOM, "vae", "", 2, 0);
    char *block = parts();
    odd_part();
    char *copy = realloc(block, 2 * LARGE); /* after realloc it is one whole again */
    MUST(copy && (!has_memstow || (live(unet) == 0 && live(vae) == 0)));
    free(copy);
    block = parts();
    assign(vae, block, LARGE); /* once all of it is assigned to one owner, the block is one whole, too */
    MUST(!has_memstow || (live(unet) == 0 && live(vae) == LARGE));
    free(block);
    block = parts();
    free(block);
    MUST(!has_memstow || (live(unet) == 0 && live(vae) == 0));

    char *aligned = NULL, *small = malloc(SMALL);
    MUST(posix_memalign((void **)&aligned, 64, SMALL) == 0);
    assign(unet, small, SMALL);
    assign(vae, aligned, SMALL);
    assign(unet, aligned, SMALL);
    MUST(CALL(0, memstow_release_range, small, SMALL) == 0);
    char *bare = aligned_alloc(PAGE, 2 * PAGE); /* without a header */
    assign(unet, bare, 2 * PAGE);
    char *whole = malloc(LARGE);
    assign(unet, whole, LARGE);
    free(whole);
    char *map = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(map != MAP_FAILED);
    assign(vae, map + PAGE, 3 * PAGE);
    munmap(map + 2 * PAGE, PAGE);
    char *kept = parts();
    MUST(kept);
    if (has_memstow) {
        int inside;
        MUST(abi_memstow_assign(unet, NULL, 1) < 0);
        MUST(abi_memstow_assign(unet, &inside, 1) < 0); /* a stack */
        MUST(abi_memstow_assign(unet, (void *)0x7fff12345670, 16) < 0);
        MUST(abi_memstow_assign(unet, small, SMALL + 1) < 0);
        MUST(abi_memstow_assign(unet, map + PAGE, 3 * PAGE) < 0); /* there is a hole in it */
        MUST(abi_memstow_assign(9999, small, SMALL) < 0);
        MUST(*abi_memstow_error());
        struct memstow_figures figures = {.size = sizeof figures};
        MUST(abi_memstow_owner_figures(vae, &figures) == 0);
        MUST(figures.mapped_bytes == 2 * PAGE && figures.host_bytes == PART - 10);
    }
    in_a_run();
    EXPECT("owners[name=unet].live_bytes", SMALL + 2 * PAGE + 2 * PART + 10 + IN_RUN);
    EXPECT("owners[name=unet].live_blocks", 3);
    EXPECT("sites[model=unet].live_bytes", SMALL + 2 * PAGE + 2 * PART + 10 + IN_RUN);
    EXPECT("owners[name=vae].live_bytes", 2 * PAGE + PART - 10);
    EXPECT("owners[name=untagged].live_bytes", SMALL + LARGE - 3 * PART + MAPPED - 3 * PAGE);
    return 0;
}
