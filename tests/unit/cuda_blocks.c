// The table of CUDA memory and its counters. Tests compare the table with a model, use it from several threads, assign
// parts of blocks, and count over many runs.
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "preload/count/account.h"
#include "preload/cuda/cuda_blocks.h"
#include "preload/cuda/cuda_counts.h"
#include "preload/serve/cuda_parts.h"
#include "preload/ledger/ledger.h"
#include "preload/owners/owners.h"
#include "preload/count/site.h"
#include "preload/count/tags.h"

static void begin(void) {
    struct ledger_identity who = {.name = "unit", .exe = "unit", .command = "unit"};
    cr_assert(ledger_begin(&who));
    account_begin();
    site_begin(SNAP_STACKS_NONE, UINT64_MAX, "unit");
}

static struct snap_cuda_block some(uint64_t address, uint64_t size) {
    return (struct snap_cuda_block){.kind = SNAP_CUDA_DEVICE_MEMORY, .address = address, .size = size};
}

Test(cuda_blocks, numbers_of_spaces_are_different_things, .init = begin) {
    struct snap_cuda_block in = some(0x7f0000000000, 5), out;
    cr_assert(cuda_blocks_add(CUDA_ADDRESS, &in));
    cr_assert_not(cuda_blocks_find(CUDA_MAPPING, in.address, &out));
    cr_assert(cuda_blocks_find(CUDA_ADDRESS, in.address, &out) && out.size == 5);
    in.size = 6;
    cr_assert(cuda_blocks_add(CUDA_MAPPING, &in));
    cr_assert(cuda_blocks_take(CUDA_ADDRESS, in.address, &out) && out.size == 5);
    cr_assert_not(cuda_blocks_take(CUDA_ADDRESS, in.address, &out));
    cr_assert(cuda_blocks_take(CUDA_MAPPING, in.address, &out) && out.size == 6);
}

/* Handles may be any number. */
Test(cuda_blocks, large_numbers, .init = begin) {
    struct snap_cuda_block out;
    for (uint64_t i = 0; i < 64; i++) {
        struct snap_cuda_block in = some((uint64_t)1 << i, i);
        cr_assert(cuda_blocks_add(CUDA_HANDLE, &in));
    }
    for (uint64_t i = 0; i < 64; i++) cr_assert(cuda_blocks_take(CUDA_HANDLE, (uint64_t)1 << i, &out) && out.size == i);
}

Test(cuda_blocks, random_operations, .init = begin) {
    enum { ADDRESSES = 20000, OPERATIONS = 400000 };
    static uint64_t model[ADDRESSES];
    unsigned seed = 7;
    for (uint64_t i = 1; i <= OPERATIONS; i++) {
        uint32_t n = (uint32_t)rand_r(&seed) % ADDRESSES;
        uint64_t address = 0x7f0000000000 + (uint64_t)n * 512;
        struct snap_cuda_block out, in = some(address, i);
        cr_assert_eq(cuda_blocks_find(CUDA_ADDRESS, address, &out), model[n] != 0);
        if (model[n]) {
            cr_assert(cuda_blocks_take(CUDA_ADDRESS, address, &out) && out.size == model[n]);
            model[n] = 0;
        } else {
            cr_assert(cuda_blocks_add(CUDA_ADDRESS, &in));
            model[n] = i;
        }
    }
}

static void add_block(enum cuda_space space, const struct snap_cuda_block *block, void *context) {
    (void)space;
    *(uint64_t *)context += block->size;
}

static bool is_five(const struct snap_cuda_block *block, const void *context) {
    (void)context;
    return block->size == 5;
}

Test(cuda_blocks, only_what_it_is_thought_to_be_is_taken, .init = begin) {
    struct snap_cuda_block five = some(4096, 5), six = some(8192, 6), out;
    struct cuda_hold hold;
    cr_assert(cuda_blocks_add(CUDA_ADDRESS, &five) && cuda_blocks_add(CUDA_ADDRESS, &six));
    cr_assert_not(cuda_blocks_take_if(CUDA_ADDRESS, 8192, is_five, NULL, &out));
    cr_assert(cuda_blocks_take_if(CUDA_ADDRESS, 4096, is_five, NULL, &out) && out.size == 5);
    cr_assert_not(cuda_blocks_take_if(CUDA_ADDRESS, 4096, is_five, NULL, &out));
    struct snap_cuda_block *held = cuda_blocks_hold(CUDA_ADDRESS, 8192, &hold);
    cr_assert(held && held->size == 6);
    held->users = 3;
    uint64_t listed = 0;
    cuda_blocks_all(add_block, &listed);
    cr_assert_eq(listed, 6, "also while it is held");
    cuda_blocks_let_go(&hold);
    cr_assert_null(cuda_blocks_hold(CUDA_ADDRESS, 4096, &hold));
    cr_assert(cuda_blocks_find(CUDA_ADDRESS, 8192, &out) && out.users == 3);
}

/* A take gives up after a while if the record is held: the holder may be the very thread that the taking signal handler
 * has interrupted. */
Test(cuda_blocks, a_record_that_stays_held_is_counted_as_lost, .init = begin) {
    struct snap_cuda_block in = some(4096, 5), out;
    struct cuda_hold hold;
    cr_assert(cuda_blocks_add(CUDA_ADDRESS, &in) && cuda_blocks_hold(CUDA_ADDRESS, 4096, &hold));
    uint64_t lost = ledger_head->lost[SNAP_LOST_CUDA];
    cr_assert_not(cuda_blocks_take(CUDA_ADDRESS, 4096, &out));
    cr_assert_eq(ledger_head->lost[SNAP_LOST_CUDA], lost + 1);
    cuda_blocks_let_go(&hold);
    cr_assert(cuda_blocks_take(CUDA_ADDRESS, 4096, &out));
    cr_assert_eq(ledger_head->lost[SNAP_LOST_CUDA], lost + 1);
}

enum { THREADS = 4, EACH = 60000 };

/* Each thread has addresses of its own, like threads that allocate. All threads share the counters. */
static void *churn(void *context) {
    uint64_t base = (uint64_t)(uintptr_t)context << 32;
    unsigned seed = (unsigned)(uintptr_t)context;
    static __thread uint64_t live[256];
    for (int i = 0; i < EACH; i++) {
        uint32_t n = (uint32_t)rand_r(&seed) % 256;
        struct snap_cuda_block block = some(base + n * 4096, 1 + (uint64_t)rand_r(&seed) % 1000);
        if (live[n]) {
            cr_assert(cuda_blocks_take(CUDA_ADDRESS, block.address, &block) && block.size == live[n]);
            cuda_counts_remove(block.count, block.size, 1);
            live[n] = 0;
        } else {
            uint32_t site = SNAP_SITE_FIRST + (uint32_t)rand_r(&seed) % 50;
            block.count = cuda_counts_add(site, 0, SNAP_CUDA_DEVICE_MEMORY, n % 3, live[n] = block.size);
            cr_assert(cuda_blocks_add(CUDA_ADDRESS, &block));
        }
    }
    uint64_t sum = 0;
    for (int n = 0; n < 256; n++) sum += live[n];
    return (void *)(uintptr_t)sum;
}

static void add_live(const struct snap_cuda_site *site, void *context) {
    *(uint64_t *)context += site->counter.alloc_bytes - site->counter.free_bytes;
}

static uint64_t live_of_sites(void) {
    uint64_t sum = 0;
    cuda_counts_visit(add_live, &sum);
    return sum;
}

Test(cuda_blocks, threads, .init = begin) {
    pthread_t threads[THREADS];
    uint64_t wanted = 0, listed = 0;
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) {
        void *sum;
        pthread_join(threads[i], &sum);
        wanted += (uintptr_t)sum;
    }
    cuda_blocks_all(add_block, &listed);
    cr_assert_eq(listed, wanted);
    cr_assert_eq(live_of_sites(), wanted);
    cr_assert_eq((uint64_t)cuda_counts_head()->live, wanted);
    uint64_t of_devices = 0;
    for (uint32_t i = 0; i < 3; i++) of_devices += (uint64_t)cuda_counts_device(i)->live;
    cr_assert_eq(of_devices, wanted);
    cr_assert_geq(cuda_counts_head()->peak, wanted);
}

/* --- parts --- */

struct shares {
    uint32_t model;
    uint64_t bytes, blocks;
};

static void add_share(const struct snap_cuda_site *site, void *context) {
    struct shares *shares = context;
    if (tags_at(site->tag).model != shares->model) return;
    shares->bytes += site->counter.alloc_bytes - site->counter.free_bytes;
    shares->blocks += site->counter.alloc_blocks - site->counter.free_blocks;
}

static uint64_t share_of(uint32_t model) {
    struct shares shares = {.model = model};
    cuda_counts_visit(add_share, &shares);
    return shares.bytes;
}

static uint64_t add_segment(uint64_t address, uint64_t size) {
    struct snap_cuda_block block = some(address, size);
    block.count = cuda_counts_add(SNAP_SITE_FIRST, 0, SNAP_CUDA_DEVICE_MEMORY, 0, size);
    cr_assert(cuda_blocks_add(CUDA_ADDRESS, &block));
    return address;
}

static uint32_t model(const char *name) {
    int64_t id = owners_open(MEMSTOW_MODEL, name, "", (const uint64_t[2]){0, 0});
    cr_assert(id > 0);
    return (uint32_t)id;
}

Test(cuda_parts, each_byte_is_counted_once, .init = begin) {
    uint32_t a = model("a"), b = model("b");
    uint64_t at = add_segment(0x700000000000, 20000);
    cr_assert_eq(cuda_parts_assign(at + 1000, 5000, a), 0);
    cr_assert_eq(cuda_parts_assign(at + 6000, 4000, b), 0);
    cr_assert(share_of(0) == 11000 && share_of(a) == 5000 && share_of(b) == 4000);
    cr_assert_eq(cuda_parts_assign(at + 3000, 4000, b), 0); /* over both */
    cr_assert(share_of(0) == 11000 && share_of(a) == 2000 && share_of(b) == 7000);
    cr_assert_eq(cuda_parts_assign(at + 1500, 500, 0), 0); /* out of the middle */
    cr_assert(share_of(0) == 11500 && share_of(a) == 1500 && share_of(b) == 7000);
    cr_assert_eq(cuda_parts_assign(at + 19999, 2, a), -ENXIO);
    cr_assert_eq(cuda_parts_assign(at - 1, 2, a), -ENXIO);
    struct snap_cuda_block block;
    cr_assert(cuda_blocks_take(CUDA_ADDRESS, at, &block));
    cuda_counts_remove(block.count, block.size - cuda_parts_end(&block), 1);
    cr_assert(share_of(0) == 0 && share_of(a) == 0 && share_of(b) == 0);
    uint64_t left = 0;
    cuda_blocks_all(add_block, &left);
    cr_assert_eq(left, 0);
    cr_assert_eq(cuda_counts_head()->live, 0);
}

Test(cuda_parts, a_whole_block_changes_hands, .init = begin) {
    uint32_t a = model("a"), b = model("b");
    uint64_t at = add_segment(0x700000000000, 4096);
    cr_assert_eq(cuda_parts_assign(at, 1000, a), 0);
    cr_assert_eq(cuda_parts_assign(at, 4096, b), 0);
    cr_assert(share_of(0) == 0 && share_of(a) == 0 && share_of(b) == 4096);
    struct shares shares = {.model = b};
    cuda_counts_visit(add_share, &shares);
    cr_assert_eq(shares.blocks, 1);
    cr_assert_eq(cuda_parts_assign(at, 4096, 0), 0);
    cr_assert(share_of(0) == 4096 && share_of(b) == 0);
}

/* One thread adds and removes segments. Another thread assigns the segments to owners, sometimes whole and sometimes
 * in parts. */
enum { SEGMENTS = 2, SEGMENT = 1 << 20, ASSIGNED = 8000, OTHERS = 1000 };
static bool assigned_enough;

static uint64_t segment_at(uint32_t n) { return 0x700000000000 + (uint64_t)n * 2 * SEGMENT; }

static void *segments_come_and_go(void *context) {
    for (uint32_t n = 0; !__atomic_load_n(&assigned_enough, __ATOMIC_RELAXED); n = (n + 1) % SEGMENTS) {
        struct snap_cuda_block block;
        add_segment(segment_at(n), SEGMENT);
        for (volatile int turn = 0; turn < 20000; turn++)
            ;
        cr_assert(cuda_blocks_take(CUDA_ADDRESS, segment_at(n), &block), "whoever holds it is awaited");
        uint64_t parts = block.flags & SNAP_CUDA_PARTS ? cuda_parts_end(&block) : 0;
        cuda_counts_remove(block.count, block.size - parts, 1);
    }
    return context;
}

Test(cuda_parts, of_blocks_that_end_meanwhile, .init = begin) {
    uint32_t models[] = {model("a"), model("b"), 0};
    pthread_t thread;
    unsigned seed = 3;
    for (uint64_t i = 1; i <= OTHERS; i++) { /* so that the search for parts takes a while */
        struct snap_cuda_block other = some(0x600000000000 + i * 4096, 0);
        cr_assert(cuda_blocks_add(CUDA_ADDRESS, &other));
    }
    pthread_create(&thread, NULL, segments_come_and_go, NULL);
    for (int i = 0; i < ASSIGNED; i++) {
        uint64_t at = segment_at((uint32_t)rand_r(&seed) % SEGMENTS);
        uint64_t start = rand_r(&seed) % 2 ? SEGMENT / 4 : 0, length = start ? SEGMENT / 4 : SEGMENT;
        int result = cuda_parts_assign(at + start, length, models[rand_r(&seed) % 3]);
        cr_assert(result == 0 || result == -ENXIO);
    }
    __atomic_store_n(&assigned_enough, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    for (int i = 0; i < 3; i++) cr_assert_eq(share_of(models[i]), 0);
    uint64_t left = 0;
    cuda_blocks_all(add_block, &left);
    cr_assert_eq(left, 0);
    cr_assert_eq(cuda_counts_head()->live, 0);
}

/* --- many runs --- */

struct counted {
    uint64_t records, alloc_bytes;
};

static void count_record(const struct snap_cuda_site *site, void *context) {
    struct counted *counted = context;
    counted->records++;
    counted->alloc_bytes += site->counter.alloc_bytes;
}

Test(cuda_counts, runs_that_are_over_make_room, .init = begin) {
    enum { RUNS = 400, SITES = 60 };
    for (int run = 0; run < RUNS; run++) {
        int64_t id = owners_begin_run("run");
        uint32_t tag = tags_number((struct snap_tag){.run = (uint32_t)id});
        for (uint32_t site = 0; site < SITES; site++) {
            uint32_t count = cuda_counts_add(SNAP_SITE_FIRST + site, tag, SNAP_CUDA_POOL_MEMORY, 0, 10);
            if (run || site) cuda_counts_remove(count, 10, 1);
        }
        cr_assert_eq(owners_end_run((uint32_t)id, 0), 0);
    }
    struct counted counted = {0};
    cuda_counts_visit(count_record, &counted);
    cr_assert_eq(counted.alloc_bytes, (uint64_t)RUNS * SITES * 10, "nothing that was counted is lost");
    cr_assert_lt(counted.records, 6000);
    cr_assert_eq(cuda_counts_head()->live, 10);
    cr_assert_eq(live_of_sites(), 10);
}
