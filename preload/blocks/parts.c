/* parts.c — see parts.h. One array has all parts, ordered by block and start. That is enough, because few blocks have
 * parts. */
#include "preload/blocks/parts.h"

#include <string.h>

#include "preload/base/lock.h"
#include "preload/base/seal.h"
#include "preload/shared/os.h"
#include "preload/base/capacity.h"
#include "preload/base/forked.h"

static struct part *parts;
static uint32_t count, capacity;
static struct lock busy;

static uint64_t parts_end_of(const struct part *part) { return part->start + part->length; }

/* The position of the block's first part that ends after `start`. If there is none, the position after the block's
 * parts. */
static uint32_t position_of(uintptr_t block, uint64_t start) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct part *part = &parts[middle];
        if (part->block > block || (part->block == block && parts_end_of(part) > start))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void parts_insert(uint32_t at, const struct part *part) {
    memmove(parts + at + 1, parts + at, (count - at) * sizeof *parts);
    parts[at] = *part;
    count++;
}

static void remove_at(uint32_t at, uint32_t n) {
    memmove(parts + at, parts + at + n, (count - at - n) * sizeof *parts);
    count -= n;
}

/* Takes [start, end) out of the part at position `at`. The rest of the part stays, as one or two parts. Returns the
 * position of the next part behind the range. */
static uint32_t cut_out(uint32_t at, uint64_t start, uint64_t end) {
    struct part before = parts[at], behind = before;
    remove_at(at, 1);
    if (before.start < start) {
        before.length = start - before.start;
        parts_insert(at++, &before);
    }
    if (parts_end_of(&behind) > end) {
        behind.length = parts_end_of(&behind) - end;
        behind.start = end;
        parts_insert(at, &behind);
    }
    return at;
}

static uint64_t parts_overlap(const struct part *part, uint64_t start, uint64_t end) {
    uint64_t from = part->start > start ? part->start : start, to = parts_end_of(part) < end ? parts_end_of(part) : end;
    return to > from ? to - from : 0;
}

static bool parts_is_of(uint32_t at, uintptr_t block) { return at < count && parts[at].block == block; }

static void parts_add_part(const struct part *part, uint32_t rest, const struct parts_counts *counts) {
    uint64_t start = part->start, end = parts_end_of(part), fresh = part->length;
    uint32_t at = position_of(part->block, start);
    while (parts_is_of(at, part->block) && parts[at].start < end) {
        uint64_t bytes = parts_overlap(&parts[at], start, end);
        counts->shift(parts[at].site, part->site, bytes);
        fresh -= bytes;
        at = cut_out(at, start, end);
    }
    if (fresh) counts->shift(rest, part->site, fresh);
    if (part->site != rest) parts_insert(position_of(part->block, start), part);
}

static bool reserve_counts(uintptr_t block, uint32_t rest, const struct parts_counts *counts) {
    bool is = counts->reserve(rest);
    for (uint32_t at = position_of(block, 0); is && parts_is_of(at, block); at++) is = counts->reserve(parts[at].site);
    return is;
}

/* Makes sure that there is memory for two more parts (the new part, and one more if an earlier part is cut in two), and
 * for the counters of the new part's site and of all sites that the block has. False: there is not. */
static bool has_capacity(const struct part *part, uint32_t rest, const struct parts_counts *counts) {
    return (count + 2 <= capacity || capacity_grow(&parts, &capacity, count + 2, sizeof *parts)) &&
           counts->reserve(part->site) && reserve_counts(part->block, rest, counts);
}

bool parts_add(const struct part *part, uint32_t rest, const struct parts_counts *counts) {
    if (!lock_wait(&busy)) return false;
    bool done = has_capacity(part, rest, counts);
    if (done) parts_add_part(part, rest, counts);
    lock_let_go(&busy);
    return done;
}

static void parts_join_to(uintptr_t block, uint32_t rest, const struct parts_counts *counts) {
    uint32_t first = position_of(block, 0), n = 0;
    for (; parts_is_of(first + n, block); n++) counts->shift(parts[first + n].site, rest, parts[first + n].length);
    remove_at(first, n);
}

bool parts_join(uintptr_t block, uint32_t rest, const struct parts_counts *counts) {
    if (!lock_wait(&busy)) return false;
    bool done = reserve_counts(block, rest, counts);
    if (done) parts_join_to(block, rest, counts);
    lock_let_go(&busy);
    return done;
}

/* Takes the lock, and waits for it as long as it takes: if the parts of a freed block stayed, they would be taken for
 * parts of the next block at its address. In a sandbox it gives up after a while, and returns false, because signals
 * are not blocked there: the caller may be a signal handler that has interrupted the holder of the lock. */
static bool parts_hold(void) {
    if (seal_is_set()) return lock_wait(&busy);
    lock_hold(&busy);
    return true;
}

void parts_take(uintptr_t block, void (*visit)(const struct part *part, void *context), void *context) {
    if (!parts_hold()) return;
    uint32_t first = position_of(block, 0), n = 0;
    for (; parts_is_of(first + n, block); n++) visit(&parts[first + n], context);
    remove_at(first, n);
    lock_let_go(&busy);
}

enum { PARTS_BATCH = 16 }; /* parts that are copied while the lock is held */

struct part_batch {
    struct part parts[PARTS_BATCH];
    uint32_t count;
};

/* Copies the block's next parts, from the first one that ends after `start`. Leaves out parts beyond the block's size,
 * because they are those of an earlier block at the address. False: the lock stayed taken. */
static bool copy_parts(struct part_batch *to, const struct snap_large *block, uint64_t start) {
    to->count = 0;
    if (!lock_wait(&busy)) return false;
    for (uint32_t at = position_of(block->address, start);
         to->count < PARTS_BATCH && parts_is_of(at, block->address) && parts_end_of(&parts[at]) <= block->size; at++)
        to->parts[to->count++] = parts[at];
    lock_let_go(&busy);
    return true;
}

/* Visits the parts of a batch, and the bytes in front of each. `done` is how far the block has been visited before.
 * Parts may have changed since the previous batch, so the first part of this batch may begin in front of `done`.
 * Returns how far the block has been visited now. */
static uint64_t visit_batch(const struct part_batch *batch, uint64_t done, const struct snap_large *block,
                            parts_visit *visit, void *context) {
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct part *part = &batch->parts[i];
        uint64_t start = part->start > done ? part->start : done;
        if (start > done) visit(block->site, block->address + done, start - done, context);
        done = parts_end_of(part);
        visit(part->site, block->address + start, done - start, context);
    }
    return done;
}

void parts_each(const struct snap_large *block, parts_visit *visit, void *context) {
    struct part_batch batch = {.count = os_load32(&count) ? PARTS_BATCH : 0};
    uint64_t done = 0;
    while (batch.count == PARTS_BATCH) {
        if (!copy_parts(&batch, block, done)) return;
        done = visit_batch(&batch, done, block, visit, context);
    }
    if (done < block->size) visit(block->site, block->address + done, block->size - done, context);
}

static void parts_abandon(void) {
    count = 0;
    busy = (struct lock){0};
}
FORKED(parts_abandon);
