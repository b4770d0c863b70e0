/* vram_stock.c — see vram_stock.h. One range of addresses, as large as the limit, is reserved for the whole stock. So
 * content lies in one row of addresses although it was pinned in several pieces. */
#include "preload/copies/vram_stock.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "preload/base/arena.h"
#include "preload/base/capacity.h"
#include "preload/base/forked.h"
#include "preload/base/lock.h"
#include "preload/cuda/cuda_blocks.h"
#include "preload/shared/os.h"
#include "preload/stow/stow_thread.h"
#include "preload/copies/vram_ring.h"

enum { PORTABLE = 1, ATTEMPTS = 3, POPULATE_WRITE = 23 /* MADV_POPULATE_WRITE, since Linux 5.14 */ };
enum { DRIVER_ENDED = 4, NO_CONTEXT = 201, CONTEXT_ENDED = 709, NOT_REGISTERED = 713 };
/* Limits in granules. PIECE: for a call of the driver (256 MiB). TOUCHED: for a call of the kernel (8 MiB).
 * GRANULES_MOST: for the whole stock (2 TiB). */
enum { PIECE = 128, TOUCHED = 4, GRANULES_MOST = 1 << 20 };

/* The states of a granule (VRAM_GRANULE bytes of the range). BARE: reserved addresses without memory. UNUSED: memory
 * that no move has taken. USED: a move has taken it. */
enum { BARE, UNUSED, USED };

/* A piece: memory that was pinned in one call. */
struct piece {
    uint32_t first, count; /* the first granule, and the number of granules */
    cuda_handle context;   /* the context in which the piece was pinned; NULL: it is not pinned any more */
};

static struct {
    struct lock lock;  /* for the states and the list of pieces */
    char *at;          /* the start of the reserved range; NULL: not reserved yet */
    uint8_t *states;   /* the state of each granule */
    uint32_t granules; /* how many granules the range has */
    struct piece *pieces;
    uint32_t count, capacity; /* of `pieces` */
    bool noted;               /* the ledger has a record of the stock */
    bool given_back;          /* pinning has failed, or memory was given back: nothing is pinned ahead of need */
} stock;
static uint64_t stock_bytes; /* of all pieces */

uint64_t vram_stock_bytes(void) { return os_load(&stock_bytes); }

static char *address_of(uint32_t granule) { return stock.at + granule * VRAM_GRANULE; }

/* The ledger has one record for the whole stock. The record's address is one page below the stock, because content that
 * lies at the start of the stock has a record with the stock's own address. No memory ever lies in the page below. */
static void vram_stock_note(uint32_t device) {
    struct snap_cuda_block record;
    uint32_t end = 0;
    uintptr_t start = (uintptr_t)stock.at - OS_PAGE;
    for (uint32_t i = 0; i < stock.count; i++)
        if (stock.pieces[i].first + stock.pieces[i].count > end) end = stock.pieces[i].first + stock.pieces[i].count;
    if (stock.noted) cuda_blocks_take(CUDA_RANGE, start, &record);
    stock.noted = end && cuda_blocks_add(CUDA_RANGE, &(struct snap_cuda_block){.kind = SNAP_CUDA_BUFFER,
                                                                               .device = (uint16_t)device,
                                                                               .address = start,
                                                                               .size = OS_PAGE + end * VRAM_GRANULE});
}

/* Reserves the addresses, on the first call. The limit is a setting, so later calls have the same limit. False: the
 * limit is below one granule, or there is no memory. */
static bool vram_stock_reserve(uint64_t limit) {
    if (stock.at) return true;
    uint64_t granules = limit / VRAM_GRANULE < GRANULES_MOST ? limit / VRAM_GRANULE : GRANULES_MOST;
    uint64_t length = (granules + 2) * VRAM_GRANULE;
    char *at = granules ? os_reserve_apart(length) : NULL;
    uint8_t *states = at ? arena_take(granules) : NULL;
    if (at && !states) os_unmap(at, length);
    if (!states) return false;
    stock.states = states;
    stock.granules = (uint32_t)granules;
    stock.at = (char *)os_round_up((uintptr_t)at + OS_PAGE, VRAM_GRANULE);
    os_call(SYS_madvise, stock.at, granules * VRAM_GRANULE, MADV_DONTFORK);
    os_call(SYS_madvise, stock.at, granules * VRAM_GRANULE, MADV_HUGEPAGE);
    return true;
}

/* Finds the first row of `count` granules below `end` that are all unused. If `may_be_bare` is true, the row may
 * also have bare granules. Returns false if there is no such row. */
static bool find_row(uint32_t count, bool may_be_bare, uint32_t end, uint32_t *first) {
    uint32_t row = 0;
    lock_hold(&stock.lock);
    for (uint32_t i = 0; i < end && row < count; i++) {
        row = stock.states[i] == UNUSED || (may_be_bare && stock.states[i] == BARE) ? row + 1 : 0;
        *first = i + 1 - row;
    }
    lock_let_go(&stock.lock);
    return row == count;
}

static void set_states(uint32_t first, uint32_t count, uint8_t state) {
    lock_hold(&stock.lock);
    memset(stock.states + first, state, count);
    lock_let_go(&stock.lock);
}

/* --- making pieces --- */

struct touched {
    char *at;
    uint64_t bytes;
};

/* The kernel holds the lock of the program's mappings during each call, so each call is for a few granules. */
static void touch_part(void *context) {
    const struct touched *self = context;
    const uint64_t most = TOUCHED * VRAM_GRANULE;
    for (uint64_t done = 0; done < self->bytes; done += most) {
        uint64_t rest = self->bytes - done;
        os_call(SYS_madvise, self->at + done, rest < most ? rest : most, POPULATE_WRITE);
    }
}

/* Touches the memory with `count` threads. Otherwise the driver would touch the pages one by one when it pins them.
 * If the kernel does not know MADV_POPULATE_WRITE, nothing is touched here, and the driver touches the pages. */
static void touch(char *at, uint64_t bytes, uint32_t count) {
    struct stow_thread *threads[VRAM_COPIERS] = {NULL};
    struct touched parts[VRAM_COPIERS];
    uint64_t each = os_round_up(bytes / count, VRAM_GRANULE);
    for (uint32_t i = 0; i < count && i * each < bytes; i++) {
        parts[i] = (struct touched){at + i * each, bytes - i * each < each ? bytes - i * each : each};
        if (i) threads[i] = stow_thread_start(touch_part, &parts[i], NULL);
        if (!threads[i]) touch_part(&parts[i]);
    }
    for (uint32_t i = 1; i < count; i++)
        if (threads[i]) stow_thread_join(threads[i]);
}

static void make_bare(uint32_t first, uint32_t count) {
    os_call(SYS_madvise, address_of(first), count * VRAM_GRANULE, MADV_DONTNEED);
    os_call(SYS_mprotect, address_of(first), count * VRAM_GRANULE, PROT_NONE);
}

static bool make_piece(const struct vram_driver *driver, uint32_t first, uint32_t count, cuda_handle context,
                       uint32_t threads) {
    uint64_t bytes = count * VRAM_GRANULE;
    lock_hold(&stock.lock);
    bool has_capacity = CAPACITY_FOR(&stock, pieces, capacity, stock.count + 1);
    lock_let_go(&stock.lock);
    if (!has_capacity || os_call(SYS_mprotect, address_of(first), bytes, PROT_READ | PROT_WRITE) < 0) return false;
    touch(address_of(first), bytes, threads);
    if (driver->cuMemHostRegister_v2(address_of(first), bytes, PORTABLE)) {
        make_bare(first, count);
        return false;
    }
    lock_hold(&stock.lock);
    stock.pieces[stock.count++] = (struct piece){first, count, context};
    memset(stock.states + first, UNUSED, count);
    lock_let_go(&stock.lock);
    __atomic_add_fetch(&stock_bytes, bytes, __ATOMIC_RELAXED);
    return true;
}

/* bare_from returns how many granules in a row are bare, from `first` on and before `end`. bare_within returns how
 * many of the `count` granules from `first` on are bare. */
static uint32_t bare_from(uint32_t first, uint32_t end) {
    uint32_t i = first;
    lock_hold(&stock.lock);
    while (i < end && stock.states[i] == BARE) i++;
    lock_let_go(&stock.lock);
    return i - first;
}

static uint32_t bare_within(uint32_t first, uint32_t count) {
    uint32_t bare = 0;
    lock_hold(&stock.lock);
    for (uint32_t i = first; i < first + count; i++) bare += stock.states[i] == BARE;
    lock_let_go(&stock.lock);
    return bare;
}

/* Makes pieces until no granule of the row is bare. A piece may reach beyond the row, so that it has memory for the
 * rest of the move, too. Returns false if that would pin more than the wish allows, if there is no memory, or if the
 * driver refuses. */
static bool fill_row(const struct vram_driver *driver, const struct vram_stock_wish *wish, uint32_t first,
                     uint32_t count, uint32_t end) {
    uint64_t most = wish->most_new / VRAM_GRANULE, needed = bare_within(first, count);
    uint64_t wanted = wish->expected / VRAM_GRANULE;
    if (needed > most) return false;
    if (wanted > most) wanted = most;
    if (wanted < needed) wanted = needed;
    for (uint32_t at = first; at < first + count;) {
        uint32_t bare = bare_from(at, end), length = bare < PIECE ? bare : PIECE;
        if (length > wanted) length = (uint32_t)wanted;
        if (length && !make_piece(driver, at, length, wish->context, VRAM_COPIERS)) return false;
        if (length) stock.given_back = false;
        wanted -= length;
        at += length ? length : 1;
    }
    return true;
}

/* Finds a piece that is not pinned any more and that has some of the `count` granules from `first` on. False: there is
 * none. */
static bool is_unpinned(uint32_t first, uint32_t count, struct piece *out) {
    bool any = false;
    lock_hold(&stock.lock);
    for (uint32_t i = 0; i < stock.count && !any; i++) {
        const struct piece *piece = &stock.pieces[i];
        any = !piece->context && piece->first < first + count && piece->first + piece->count > first;
        if (any) *out = *piece;
    }
    lock_let_go(&stock.lock);
    return any;
}

static void note_context(uint32_t first, cuda_handle context) {
    lock_hold(&stock.lock);
    for (uint32_t i = 0; i < stock.count; i++)
        if (stock.pieces[i].first == first) stock.pieces[i].context = context;
    lock_let_go(&stock.lock);
}

static bool pin_piece_again(const struct vram_driver *driver, const struct piece *piece, cuda_handle context) {
    if (driver->cuMemHostRegister_v2(address_of(piece->first), piece->count * VRAM_GRANULE, PORTABLE)) return false;
    note_context(piece->first, context);
    return true;
}

static bool pin_again(const struct vram_driver *driver, uint32_t first, uint32_t count, cuda_handle context) {
    for (struct piece piece; is_unpinned(first, count, &piece);)
        if (!pin_piece_again(driver, &piece, context)) return false;
    return true;
}

/* How many granules of the range the limit allows. */
static uint32_t end_of(const struct vram_stock_wish *wish) {
    uint64_t end = wish->most / VRAM_GRANULE;
    return end < stock.granules ? (uint32_t)end : stock.granules;
}

char *vram_stock_take(const struct vram_driver *driver, const struct vram_stock_wish *wish) {
    uint32_t first, count = (uint32_t)(wish->bytes / VRAM_GRANULE);
    if (!wish->context || !count || wish->bytes > wish->most || !vram_stock_reserve(wish->most)) return NULL;
    uint32_t end = end_of(wish);
    if (!find_row(count, false, end, &first) && !find_row(count, true, end, &first)) return NULL;
    bool filled = fill_row(driver, wish, first, count, end);
    vram_stock_note(wish->device);
    if (!filled || !pin_again(driver, first, count, wish->context)) return NULL;
    set_states(first, count, USED);
    return address_of(first);
}

/* --- pinning ahead of need --- */

/* Finds the first bare granule below `end`. Returns the length of the row of bare granules that begins there. */
static uint32_t first_bare(uint32_t end, uint32_t *first) {
    lock_hold(&stock.lock);
    const uint8_t *found = memchr(stock.states, BARE, end);
    lock_let_go(&stock.lock);
    *first = found ? (uint32_t)(found - stock.states) : end;
    return bare_from(*first, end);
}

static uint32_t least_of(uint32_t a, uint64_t b) { return a < b ? a : (uint32_t)b; }

/* One thread touches the pages, so that the program keeps its processors. */
static bool pin_piece_ahead(const struct vram_driver *driver, const struct vram_stock_wish *wish) {
    uint32_t first, bare = first_bare(end_of(wish), &first);
    uint32_t length = least_of(least_of(bare, PIECE), wish->bytes / VRAM_GRANULE);
    if (!length) return false;
    stock.given_back = !make_piece(driver, first, length, wish->context, 1);
    vram_stock_note(wish->device);
    return !stock.given_back;
}

bool vram_stock_ahead(const struct vram_driver *driver, const struct vram_stock_wish *wish) {
    struct piece piece;
    if (!wish->context || stock.given_back || !vram_stock_reserve(wish->most)) return false;
    if (!is_unpinned(0, stock.granules, &piece)) return pin_piece_ahead(driver, wish);
    stock.given_back = !pin_piece_again(driver, &piece, wish->context);
    return !stock.given_back;
}

void vram_stock_give(const char *at, uint64_t bytes) {
    set_states((uint32_t)((uint64_t)(at - stock.at) / VRAM_GRANULE), (uint32_t)(bytes / VRAM_GRANULE), UNUSED);
}

uint64_t vram_stock_whole(const char *at, uint64_t bytes) {
    uint64_t left = bytes;
    lock_hold(&stock.lock);
    for (uint32_t i = 0; i < stock.count; i++) {
        const char *start = address_of(stock.pieces[i].first), *end = start + stock.pieces[i].count * VRAM_GRANULE;
        if (at >= start && at < end && (uint64_t)(end - at) < left) left = (uint64_t)(end - at);
    }
    lock_let_go(&stock.lock);
    return left;
}

/* --- how pieces end: by unpinning, with their context, or in a forked child --- */

static bool vram_stock_is_gone(int error) {
    return !error || error == NOT_REGISTERED || error == NO_CONTEXT || error == CONTEXT_ENDED || error == DRIVER_ENDED;
}

/* Unpins a piece. If its context has ended, the piece may be unpinned already. False: the driver still has it
 * pinned. */
static bool vram_stock_unpin(const struct vram_driver *driver, const struct piece *self) {
    struct vram_visit visit;
    if (!self->context) return true;
    int error = vram_driver_enter(driver, self->context, &visit);
    if (error) return vram_stock_is_gone(error);
    for (int i = 0; i < ATTEMPTS && (error = driver->cuMemHostUnregister(address_of(self->first))); i++) continue;
    vram_driver_leave(driver, &visit);
    return vram_stock_is_gone(error);
}

static bool is_in_use(const struct piece *self) {
    return memchr(stock.states + self->first, USED, self->count) != NULL;
}

bool vram_stock_serves(cuda_handle context) {
    bool any = false;
    lock_hold(&stock.lock);
    for (uint32_t i = 0; i < stock.count && !any; i++)
        any = stock.pieces[i].context == context && is_in_use(&stock.pieces[i]);
    lock_let_go(&stock.lock);
    return any;
}

/* Finds the first piece without used memory, from piece *number on. *number becomes the number of the piece that was
 * found. False: there is none. */
static bool next_unused(uint32_t *number, struct piece *out) {
    lock_hold(&stock.lock);
    while (*number < stock.count && is_in_use(&stock.pieces[*number])) (*number)++;
    bool any = *number < stock.count;
    if (any) *out = stock.pieces[*number];
    lock_let_go(&stock.lock);
    return any;
}

static void drop_piece(uint32_t number, const struct piece *piece) {
    make_bare(piece->first, piece->count);
    lock_hold(&stock.lock);
    memset(stock.states + piece->first, BARE, piece->count);
    stock.pieces[number] = stock.pieces[--stock.count];
    lock_let_go(&stock.lock);
    __atomic_sub_fetch(&stock_bytes, piece->count * VRAM_GRANULE, __ATOMIC_RELAXED);
}

void vram_stock_shrink(const struct vram_driver *driver) {
    struct piece piece;
    uint64_t before = vram_stock_bytes();
    for (uint32_t number = 0; next_unused(&number, &piece);)
        if (vram_stock_unpin(driver, &piece))
            drop_piece(number, &piece);
        else
            number++;
    if (vram_stock_bytes() == before) return;
    stock.given_back = true;
    vram_stock_note(0);
}

void vram_stock_forget(cuda_handle context) {
    lock_hold(&stock.lock);
    for (uint32_t i = 0; i < stock.count; i++)
        if (stock.pieces[i].context == context) stock.pieces[i].context = NULL;
    lock_let_go(&stock.lock);
}

static void vram_stock_abandon(void) {
    memset(&stock, 0, sizeof stock);
    stock_bytes = 0;
}
FORKED(vram_stock_abandon);
