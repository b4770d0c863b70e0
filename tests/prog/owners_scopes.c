// The owners of a block: scopes of models and nodes on several threads, the run, adopted owners, and blocks that
// another thread frees or resizes.
// run: --stacks=full
// run: --stacks=none
// run: --stacks=sample:4096
// run: --stacks=full --allocator=mimalloc
// needs: mimalloc
#include "abi.h"
#include "expect.h"

#include <errno.h>
#include <pthread.h>

enum { MODEL = 1000, NODE = 300, BOTH = 70, RUN = 11, THREAD = 5000, ADOPTED = 777, RESIZED = 64 };

static uint32_t unet, clip, sampler, provisional;
static void *kept[16];

static void *allocate(size_t size) {
    void *p = malloc(size);
    MUST(p);
    memset(p, 1, size);
    return p;
}

static uint32_t open_owner(uint32_t kind, const char *name, uint64_t key) {
    return (uint32_t)CALL(1, memstow_owner_open, kind, name, "test", key, 0);
}

// Returns the live bytes under one tag, which it gets from memstow_shares. Checks also that memstow_shares returns the
// number of all shares if there is too little room for them.
static uint64_t share(uint32_t model, uint32_t node, uint32_t run) {
    struct memstow_share shares[64];
    int64_t count = abi_memstow_shares(shares, 64, sizeof *shares);
    uint64_t bytes = 0;
    MUST(count > 0 && count <= 64 && abi_memstow_shares(shares, 1, sizeof *shares) == count);
    MUST(abi_memstow_shares(NULL, 0, 0) == count && abi_memstow_shares(NULL, 1, 0) == -EINVAL);
    MUST(abi_memstow_shares((void *)0x10, 1, sizeof *shares) == -EFAULT);
    for (int64_t i = 0; i < count; i++)
        if (shares[i].model == model && shares[i].node == node && shares[i].run == run) bytes += shares[i].live_bytes;
    return bytes;
}

static void enter(uint32_t owner) { MUST(CALL(0, memstow_scope_enter, owner) == 0); }
static void leave(uint32_t owner) { MUST(CALL(0, memstow_scope_leave, owner) == 0); }

static void *elsewhere(void *scopes) {
    void *theirs = allocate(THREAD); /* for no owner: this thread has no scope yet */
    MUST(CALL(0, memstow_scope_swap, scopes, NULL) == 0);
    kept[8] = allocate(THREAD);
    MUST(CALL(0, memstow_scope_swap, NULL, NULL) == 0);
    free(kept[9]); /* the main thread's */
    return theirs;
}

int main(void) {
    abi_find();
    unet = open_owner(MEMSTOW_MODEL, "unet", 1);
    clip = open_owner(MEMSTOW_MODEL, "clip", 2);
    sampler = open_owner(MEMSTOW_NODE, "sampler", 3);
    provisional = open_owner(MEMSTOW_MODEL, "loading", 4);
    MUST(open_owner(MEMSTOW_MODEL, "other name", 1) == unet);

    enter(unet);
    kept[0] = allocate(MODEL);
    enter(sampler);
    kept[1] = allocate(BOTH);
    leave(unet); /* kinds may be left in any order */
    kept[2] = allocate(NODE);
    leave(sampler);

    uint32_t run = (uint32_t)CALL(9, memstow_run_begin, "first-run");
    MUST(!has_memstow || abi_memstow_run_begin("another") < 0);
    kept[3] = allocate(RUN);
    MUST(CALL(0, memstow_run_end, run, MEMSTOW_FAILED) == 0);
    kept[4] = allocate(RUN);

    enter(provisional);
    kept[5] = allocate(ADOPTED);
    MUST(CALL(0, memstow_owner_adopt, clip, provisional) == 0);
    kept[6] = allocate(ADOPTED); /* later allocations are adopted, too */
    leave(provisional);

    struct memstow_scopes scopes = {.size = sizeof scopes};
    enter(unet);
    enter(sampler);
    kept[9] = allocate(RESIZED);
    kept[10] = allocate(RESIZED);
    MUST(CALL(0, memstow_scope_save, &scopes) == 0);
    leave(sampler);
    leave(unet);
    enter(clip);
    kept[10] = realloc(kept[10], 4 * RESIZED); /* it belongs to the scope in which it is resized */
    leave(clip);
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, elsewhere, &scopes) == 0);
    MUST(pthread_join(thread, &kept[7]) == 0);

    EXPECT("owners[name=unet].live_bytes", MODEL + BOTH + THREAD);
    EXPECT("owners[name=unet].live_blocks", 3);
    EXPECT("owners[name=sampler].live_bytes", NODE + BOTH + THREAD);
    EXPECT("owners[name=clip].live_bytes", 2 * ADOPTED + 4 * RESIZED);
    EXPECT("owners[name=loading].live_bytes", 0);
    EXPECT("owners[name=first-run].live_bytes", RUN);
    struct memstow_figures figures = {.size = sizeof figures};
    MUST(CALL(0, memstow_owner_figures, unet, &figures) == 0);
    MUST(!has_memstow || figures.live_bytes == MODEL + BOTH + THREAD);
    MUST(!has_memstow || figures.allocated_bytes == MODEL + BOTH + THREAD + 2 * RESIZED);
    MUST(CALL(0, memstow_owner_figures, clip, &figures) == 0);
    MUST(!has_memstow || (figures.live_bytes == 2 * ADOPTED + 4 * RESIZED && figures.live_blocks == 3));
    MUST(!has_memstow || (share(unet, 0, 0) == MODEL && share(unet, sampler, 0) == BOTH + THREAD));
    MUST(!has_memstow || (share(0, sampler, 0) == NODE && share(0, 0, run) == RUN && share(0, 0, 0) == 0));
    MUST(!has_memstow || (share(clip, 0, 0) == 2 * ADOPTED + 4 * RESIZED && share(provisional, 0, 0) == 0));
    uint32_t parts = open_owner(MEMSTOW_MODEL, "parts", 5);
    char *block = malloc(3 * 4096);
    MUST(block && CALL(0, memstow_assign, parts, block, 4096) == 0);
    MUST(!has_memstow || share(parts, 0, 0) == 4096); /* bytes of a part, without a block */
    free(block);
    MUST(CALL(0, memstow_owner_figures, provisional, &figures) == 0);
    MUST(!has_memstow || (figures.live_bytes == 0 && figures.adopted_by == clip && figures.retired));
    return 0;
}
