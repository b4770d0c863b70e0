/* compare_physical.c — see compare_physical.h. The blocks of vmm.h and those of the ledger are listed and sorted, and
 * the two lists are compared side by side. The driver reuses handles, so physical memory counts as the same only if
 * handle and size are equal. */
#include "cupti/compare_physical.h"

#include <string.h>

#include "preload/shared/heapsort.h"
#include "preload/shared/os.h"

struct item {
    uint64_t order; /* lists are sorted by this number; equal items of two lists have the same number */
    struct snap_cuda_block block;
};
static uint64_t order_of(const struct item *item) { return item->order; }
HEAPSORT(struct item, sort, order_of)

struct list {
    struct item *items; /* NULL: the items are only counted */
    size_t count, capacity;
    enum cuda_space space;
};

struct comparison {
    const struct cupti_sections *sections;
    size_t named;
    bool again;
};

/* --- making lists of items --- */

static uint64_t order_in(enum cuda_space space, const struct snap_cuda_block *block) {
    if (space != CUDA_PHYSICAL) return block->address;
    return (block->stream ^ block->size << 20) * 0x9E3779B97F4A7C15u ^ block->stream;
}

static bool compare_physical_is_listed(enum cuda_space space, const struct snap_cuda_block *block) {
    return space != CUDA_PHYSICAL || block->kind == SNAP_CUDA_PHYSICAL;
}

static void compare_physical_put(enum cuda_space space, const struct snap_cuda_block *block, void *context) {
    struct list *list = context;
    if (space != list->space || !compare_physical_is_listed(space, block)) return;
    if (list->items && list->count < list->capacity)
        list->items[list->count] = (struct item){order_in(space, block), *block};
    list->count++;
}

static void compare_physical_ours(cupti_visit *visit, void *context) { cuda_blocks_all(visit, context); }

/* Counts the items, and then makes a list with room for 64 more, because items may be added meanwhile. Items that find
 * no room are left out. */
static struct list list_of(compare_blocks *blocks, enum cuda_space space) {
    struct list list = {.space = space};
    blocks(compare_physical_put, &list);
    list.capacity = list.count + 64;
    list.count = 0;
    list.items = os_map(list.capacity * sizeof *list.items);
    if (!list.items) return (struct list){.space = space};
    blocks(compare_physical_put, &list);
    if (list.count > list.capacity) list.count = list.capacity;
    sort(list.items, list.count);
    return list;
}

static void give_back(struct list *list) {
    if (list->items) os_unmap(list->items, list->capacity * sizeof *list->items);
}

/* --- finding differences --- */

/* before[0] has the differences of the previous comparison, before[1] those of the present comparison. Each difference
 * is one number. If the present comparison is a repetition (`again`), a difference counts only if the previous
 * comparison had the same difference, or had more differences than can be remembered. */
enum { REMEMBERED = 4096 };
static uint64_t before[2][REMEMBERED];
static size_t before_count[2];

static bool compare_physical_differed(enum snap_cupti_difference how, enum cuda_space space, const struct item *item,
                                      bool again) {
    uint64_t mark = item->order << 8 | (uint64_t)space << 2 | (uint64_t)how;
    bool known = before_count[0] > REMEMBERED;
    for (size_t i = 0; i < before_count[0] && i < REMEMBERED && !known; i++) known = before[0][i] == mark;
    if (before_count[1] < REMEMBERED) before[1][before_count[1]] = mark;
    before_count[1]++;
    return !again || known;
}

static void turn_the_page(void) {
    memcpy(before[0], before[1], sizeof before[0]);
    before_count[0] = before_count[1];
    before_count[1] = 0;
}

static void add_bytes(struct snap_cupti_sum *sum, uint64_t bytes) {
    sum->blocks++;
    sum->bytes += bytes;
}

static void compare_physical_name(struct comparison *self, enum snap_cupti_difference how, enum cuda_space space,
                                  const struct item *item, uint64_t ledger_bytes) {
    const struct snap_cuda_block *block = &item->block;
    if (self->named == SNAP_CUPTI_BLOCKS) return;
    self->sections->differences[self->named++] =
        (struct snap_cupti_block){.state = how,
                                  .kind = block->kind,
                                  .device = block->device,
                                  .address = space == CUDA_PHYSICAL ? block->stream : block->address,
                                  .bytes = how == SNAP_CUPTI_ONLY_LEDGER ? 0 : block->size,
                                  .ledger_bytes = ledger_bytes};
}

static void compare_physical_differs(struct comparison *self, enum snap_cupti_difference how, enum cuda_space space,
                                     const struct item *item, uint64_t ledger_bytes) {
    struct snap_cupti *head = self->sections->head;
    struct snap_cupti_sum *physical = how == SNAP_CUPTI_ONLY_CUPTI    ? &head->only_cupti
                                      : how == SNAP_CUPTI_ONLY_LEDGER ? &head->only_ledger
                                                                      : &head->sizes;
    if (!compare_physical_differed(how, space, item, self->again)) return;
    add_bytes(space == CUDA_PHYSICAL ? physical : &head->addresses_other, item->block.size);
    compare_physical_name(self, how, space, item, ledger_bytes);
}

static void compare_physical_agrees(struct comparison *self, enum cuda_space space, const struct item *seen,
                                    const struct item *kept) {
    struct snap_cupti *head = self->sections->head;
    if (seen->block.size != kept->block.size)
        compare_physical_differs(self, SNAP_CUPTI_SIZES, space, seen, kept->block.size);
    else
        add_bytes(space == CUDA_PHYSICAL ? &head->same : &head->addresses_same, seen->block.size);
}

static void compare_in(struct comparison *self, compare_blocks *blocks, enum cuda_space space) {
    struct list seen = list_of(compare_physical_ours, space), kept = list_of(blocks, space);
    size_t i = 0, k = 0;
    while (seen.items && kept.items && (i < seen.count || k < kept.count)) {
        const struct item *one = &seen.items[i], *other = &kept.items[k];
        if (k == kept.count || (i < seen.count && one->order < other->order)) {
            compare_physical_differs(self, SNAP_CUPTI_ONLY_CUPTI, space, one, 0);
            i++;
        } else if (i == seen.count || other->order < one->order) {
            compare_physical_differs(self, SNAP_CUPTI_ONLY_LEDGER, space, other, other->block.size);
            k++;
        } else {
            compare_physical_agrees(self, space, one, other);
            i++, k++;
        }
    }
    give_back(&seen);
    give_back(&kept);
}

size_t compare_physical(const struct cupti_sections *sections, compare_blocks *blocks, size_t named, bool again) {
    struct comparison self = {sections, named, again};
    if (!again) before_count[0] = 0;
    compare_in(&self, blocks, CUDA_PHYSICAL);
    compare_in(&self, blocks, CUDA_MAPPING);
    compare_in(&self, blocks, CUDA_RANGE);
    turn_the_page();
    return self.named;
}
