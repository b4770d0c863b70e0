// Pinned memory that stays. It is pinned once, in large pieces and within limits, and is used again and again until it
// is given back. After its context has ended, it is pinned again. If the driver refuses to unpin it, it is not given
// back. The driver is a test double of a few functions. The start of threads is wrapped, to count them.
// build: -Wl,--wrap=stow_thread_start
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "preload/cuda/cuda_blocks.h"
#include "preload/shared/os.h"
#include "preload/stow/stow_thread.h"
#include "preload/vram/vram_block.h"
#include "preload/copies/vram_ring.h"
#include "preload/copies/vram_stock.h"

#define GRANULES(n) ((n)*VRAM_GRANULE)
enum { REFUSED = 719, MOST = 8 };

static int pins, unpins, pin_error, unpin_error;
static uint64_t pinned_bytes;
static int one, other; /* contexts */

static int get_current(cuda_handle *context) {
    *context = NULL;
    return 0;
}
static int set_current(cuda_handle context) { return context == &pins; }
static int exchange_mode(int *mode) { return *mode = 0; }
static int register_memory(void *at, size_t bytes, unsigned flags) {
    if (pin_error || !at || !flags) return REFUSED;
    const volatile char *first = at, *last = first + bytes - 1;
    pins += 1 + 0 * (*first + *last); /* both can be read */
    pinned_bytes += bytes;
    return 0;
}
static int unregister(void *at) {
    if (unpin_error || !at) return REFUSED;
    unpins++;
    return 0;
}

static const struct vram_driver driver = {.cuCtxGetCurrent = get_current,
                                          .cuCtxSetCurrent = set_current,
                                          .cuThreadExchangeStreamCaptureMode = exchange_mode,
                                          .cuMemHostRegister_v2 = register_memory,
                                          .cuMemHostUnregister = unregister};

static struct vram_stock_wish wish_of(uint64_t granules, uint64_t expected) {
    return (struct vram_stock_wish){.bytes = GRANULES(granules),
                                    .expected = GRANULES(expected),
                                    .most = GRANULES(MOST),
                                    .most_new = UINT64_MAX,
                                    .context = &one};
}

static char *take(uint64_t granules, uint64_t expected) {
    struct vram_stock_wish wish = wish_of(granules, expected);
    return vram_stock_take(&driver, &wish);
}

Test(vram_stock, a_move_pins_once_what_all_of_its_blocks_take) {
    char *first = take(1, 6), *second = take(2, 5), *third = take(3, 3);
    cr_assert(first && second == first + GRANULES(1) && third == first + GRANULES(3));
    cr_assert(pins == 1 && pinned_bytes == GRANULES(6) && vram_stock_bytes() == GRANULES(6));
    cr_assert_eq(vram_stock_whole(second, GRANULES(2)), GRANULES(2));
}

/* --- how the memory of a piece is made: in huge pages, by several threads at once */

static int threads_started;
struct stow_thread *__real_stow_thread_start(void (*)(void *), void *, bool *);
struct stow_thread *__wrap_stow_thread_start(void (*work)(void *), void *context, bool *own_files);
struct stow_thread *__wrap_stow_thread_start(void (*work)(void *), void *context, bool *own_files) {
    threads_started++;
    return __real_stow_thread_start(work, context, own_files);
}

/* Whether the mapping at this address has this flag of /proc/self/smaps ("hg": the program asks for huge pages). */
static bool has_flag(const char *at, const char *flag) {
    char line[512];
    bool inside = false, has = false;
    unsigned long from, to;
    FILE *smaps = fopen("/proc/self/smaps", "r");
    cr_assert(smaps);
    while (fgets(line, sizeof line, smaps)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) inside = (uintptr_t)at >= from && (uintptr_t)at < to;
        if (inside && !strncmp(line, "VmFlags:", 8)) has = strstr(line, flag) != NULL;
    }
    fclose(smaps);
    return has;
}

/* How many bytes of this range have memory behind them. */
static uint64_t resident(char *at, uint64_t bytes) {
    static unsigned char there[GRANULES(MOST) / 4096];
    uint64_t pages = 0;
    cr_assert(!mincore(at, bytes, there));
    for (uint64_t i = 0; i < bytes / 4096; i++) pages += there[i] & 1;
    return pages * 4096;
}

Test(vram_stock, a_piece_is_made_of_huge_pages_by_several_threads) {
    char *first = take(MOST, MOST);
    cr_assert(first && has_flag(first, " hg"));
    cr_assert_not(has_flag((char *)&one, " hg"));
    cr_assert_eq(threads_started, VRAM_COPIERS - 1, "besides the caller");
    cr_assert_eq(resident(first, GRANULES(MOST)), GRANULES(MOST), "the driver need not touch pages one by one");
}

Test(vram_stock, a_small_piece_takes_no_more_threads_than_granules) {
    cr_assert(take(2, 2));
    cr_assert_eq(threads_started, VRAM_COPIERS < 2 ? 0 : 1);
}

Test(vram_stock, what_was_given_is_taken_again_without_a_call) {
    char *first = take(4, 4);
    memset(first, 7, GRANULES(4));
    vram_stock_give(first, GRANULES(4));
    cr_assert_eq(take(2, 2), first);
    cr_assert_eq(take(2, 2), first + GRANULES(2));
    cr_assert(pins == 1 && !unpins);
}

Test(vram_stock, no_more_than_the_limits) {
    cr_assert(take(5, 100) && !take(4, 4) && take(3, 3));
    cr_assert(vram_stock_bytes() == GRANULES(MOST) && !take(1, 1) && !take(MOST + 1, 1));
}

Test(vram_stock, no_more_than_the_host_can_spare) {
    struct vram_stock_wish wish = wish_of(2, 8);
    wish.most_new = GRANULES(1);
    cr_assert_null(vram_stock_take(&driver, &wish));
    wish.most_new = GRANULES(3);
    cr_assert(vram_stock_take(&driver, &wish) && vram_stock_bytes() == GRANULES(3));
}

/* Content that lies in two pieces is copied in two calls. */
Test(vram_stock, a_range_may_lie_in_several_pieces) {
    char *first = take(1, 1), *second = take(1, 1);
    vram_stock_give(first, GRANULES(1));
    vram_stock_give(second, GRANULES(1));
    cr_assert_eq(take(4, 4), first);
    cr_assert_eq(pins, 3);
    cr_assert_eq(vram_stock_whole(first, GRANULES(4)), GRANULES(1));
    cr_assert_eq(vram_stock_whole(first + 100, 50), 50);
    cr_assert_eq(vram_stock_whole(first + GRANULES(2), GRANULES(2)), GRANULES(2));
}

Test(vram_stock, only_what_is_unused_is_given_back) {
    char *first = take(2, 2), *second = take(2, 2);
    vram_stock_give(first, GRANULES(2));
    vram_stock_shrink(&driver);
    cr_assert(unpins == 1 && vram_stock_bytes() == GRANULES(2));
    *second = 1;
    cr_assert_eq(take(1, 1), first);
    cr_assert_eq(*(first + 1), 0, "it is new memory");
}

Test(vram_stock, what_the_driver_does_not_unpin_stays) {
    char *first = take(2, 2);
    vram_stock_give(first, GRANULES(2));
    unpin_error = REFUSED;
    vram_stock_shrink(&driver);
    cr_assert_eq(vram_stock_bytes(), GRANULES(2));
    cr_assert(take(2, 2) == first && pins == 1);
    vram_stock_give(first, GRANULES(2));
    unpin_error = 0;
    vram_stock_shrink(&driver);
    cr_assert_eq(vram_stock_bytes(), 0);
}

Test(vram_stock, nothing_is_left_of_what_the_driver_does_not_pin) {
    pin_error = REFUSED;
    cr_assert(!take(2, 2) && !vram_stock_bytes());
    pin_error = 0;
    cr_assert(take(2, 2) && vram_stock_bytes() == GRANULES(2));
}

/* When a context ends, its pinning ends. The content of the piece stays where it is, and the piece is pinned again when
 * memory is next taken from it. */
Test(vram_stock, what_a_context_has_pinned_ends_with_it) {
    char *first = take(1, 3);
    *first = 7;
    vram_stock_forget(&other);
    cr_assert(take(1, 1) && pins == 1);
    vram_stock_forget(&one);
    cr_assert(take(1, 1) && pins == 2 && *first == 7);
    vram_stock_give(first, GRANULES(3));
    vram_stock_forget(&one);
    vram_stock_shrink(&driver);
    cr_assert(!vram_stock_bytes() && !unpins, "there is nothing to unpin");
}

/* The reader of the ledger sees the pinned memory as a buffer of memstow's. */
Test(vram_stock, the_ledger_lists_it_once) {
    struct snap_cuda_block record;
    char *first = take(2, 2);
    cr_assert(take(2, 2) && cuda_blocks_find(CUDA_RANGE, (uintptr_t)first - OS_PAGE, &record));
    cr_assert(record.kind == SNAP_CUDA_BUFFER && record.size == OS_PAGE + GRANULES(4));
    vram_stock_give(first, GRANULES(4));
    vram_stock_shrink(&driver);
    cr_assert_not(cuda_blocks_find(CUDA_RANGE, (uintptr_t)first - OS_PAGE, &record));
}

static bool ahead(uint64_t granules, cuda_handle context) {
    struct vram_stock_wish wish = wish_of(granules, 0);
    wish.context = context;
    return vram_stock_ahead(&driver, &wish);
}

Test(vram_stock, what_was_pinned_ahead_is_taken_without_a_call) {
    cr_assert(ahead(3, &one) && ahead(2, &one) && pins == 2 && pinned_bytes == GRANULES(5));
    cr_assert(take(5, 5) && pins == 2);
    cr_assert(!ahead(0, &one) && !ahead(1, NULL));
    cr_assert(ahead(100, &one) && vram_stock_bytes() == GRANULES(MOST) && !ahead(1, &one), "the limit");
}

Test(vram_stock, what_was_given_back_is_not_pinned_ahead_before_a_move_has_pinned) {
    cr_assert(ahead(3, &one));
    vram_stock_shrink(&driver);
    cr_assert(!vram_stock_bytes() && !ahead(3, &one));
    cr_assert(take(2, 2) && ahead(3, &one) && vram_stock_bytes() == GRANULES(5));
}

Test(vram_stock, what_the_driver_refuses_is_not_tried_ahead_again) {
    pin_error = REFUSED;
    cr_assert(!ahead(2, &one) && !vram_stock_bytes());
    pin_error = 0;
    cr_assert(!ahead(2, &one) && !pins);
    cr_assert(take(2, 2) && ahead(2, &one));
}

Test(vram_stock, what_a_context_has_unpinned_is_pinned_ahead_in_the_next) {
    cr_assert(ahead(3, &one));
    vram_stock_forget(&one);
    cr_assert(ahead(0, &other) && pins == 2 && vram_stock_bytes() == GRANULES(3));
    cr_assert(!ahead(0, &other) && take(3, 3) && pins == 2);
}

Test(vram_stock, it_serves_the_context_while_a_move_uses_it) {
    char *at = take(2, 2);
    cr_assert(at && vram_stock_serves(&one) && !vram_stock_serves(&other));
    vram_stock_give(at, GRANULES(2));
    cr_assert(!vram_stock_serves(&one));
    cr_assert(take(1, 1) == at && vram_stock_serves(&one));
    vram_stock_forget(&one);
    cr_assert(!vram_stock_serves(&one));
}

static uint64_t address_space(void) {
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    cr_assert(file && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    return pages * OS_PAGE;
}

Test(vram_stock, addresses_that_cannot_be_reserved_cost_nothing) {
    const struct rlimit limit = {address_space() + (64 << 20), RLIM_INFINITY};
    struct vram_stock_wish wish = wish_of(1, 1);
    wish.most = (uint64_t)4 << 40;
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    uint64_t before = address_space();
    for (int i = 0; i < 100; i++) cr_assert_null(vram_stock_take(&driver, &wish));
    cr_assert_lt(address_space() - before, 4 << 20);
}
