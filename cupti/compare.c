/* compare.c — see compare.h. */
#include "cupti/compare.h"

#include <stdio.h>
#include <string.h>

#include "cupti/compare_physical.h"
#include "cupti/compare_pools.h"
#include "cupti/seen.h"

struct comparison {
    const struct cupti_sections *sections;
    uint64_t until_ns;
    bool again;
    size_t named;
};

static void add_bytes(struct snap_cupti_sum *sum, uint64_t bytes) {
    sum->blocks++;
    sum->bytes += bytes;
}

static void compare_note_named(struct comparison *self, const struct snap_cupti_block *difference, const char *source) {
    if (self->named == SNAP_CUPTI_BLOCKS) return;
    struct snap_cupti_block *to = &self->sections->differences[self->named++];
    *to = *difference;
    snprintf(to->source, sizeof to->source, "%s", source);
}

/* Makes the block suspect, and returns whether its difference counts. In the first comparison each difference counts.
 * In later comparisons a difference counts only if the block was suspect already. The block is no longer suspect when
 * a newer record of its address comes, or when a comparison finds equal sizes. */
static bool compare_differs(const struct comparison *self, struct seen *seen) {
    bool counts = !self->again || seen->suspect;
    seen->suspect = true;
    return counts;
}

static void look_for(enum cuda_space space, const struct snap_cuda_block *block, void *context) {
    struct comparison *self = context;
    struct snap_cupti *head = self->sections->head;
    if (space != CUDA_ADDRESS || block->birth_ns > self->until_ns) return;
    struct seen *seen = seen_at(block->address);
    struct snap_cupti_block difference = {.state = SNAP_CUPTI_ONLY_LEDGER,
                                          .kind = block->kind,
                                          .device = block->device,
                                          .address = block->address,
                                          .ledger_bytes = block->size};
    if (!seen) {
        add_bytes(&head->only_ledger, block->size);
        compare_note_named(self, &difference, "");
        return;
    }
    seen->matched = true;
    if (seen->bytes == block->size) {
        seen->suspect = false;
        add_bytes(&head->same, block->size);
        return;
    }
    if (!compare_differs(self, seen)) return;
    add_bytes(&head->sizes, seen->bytes);
    difference.state = SNAP_CUPTI_SIZES;
    difference.bytes = seen->bytes;
    compare_note_named(self, &difference, seen_source(seen));
}

static void look_at_seen(struct seen *seen, void *context) {
    struct comparison *self = context;
    struct snap_cupti *head = self->sections->head;
    if (!seen_is_compared(seen)) {
        add_bytes(&head->others, seen->bytes);
        return;
    }
    if (seen->matched || !compare_differs(self, seen)) return;
    struct snap_cupti_block difference = {.state = SNAP_CUPTI_ONLY_CUPTI,
                                          .kind = seen->kind,
                                          .device = seen->device,
                                          .address = seen->address,
                                          .bytes = seen->bytes};
    add_bytes(&head->only_cupti, seen->bytes);
    compare_note_named(self, &difference, seen_source(seen));
}

static void forget_match(struct seen *seen, void *context) {
    (void)context;
    seen->matched = false;
}

uint64_t compare(const struct cupti_sections *sections, compare_blocks *blocks, uint64_t until_ns, bool again) {
    struct snap_cupti *head = sections->head;
    struct comparison self = {.sections = sections, .until_ns = until_ns, .again = again};
    head->same = head->only_cupti = head->only_ledger = head->sizes = head->others = (struct snap_cupti_sum){0};
    memset(sections->differences, 0, SNAP_CUPTI_BLOCKS * sizeof *sections->differences);
    seen_all(forget_match, NULL);
    head->addresses_same = head->addresses_other = (struct snap_cupti_sum){0};
    blocks(look_for, &self);
    seen_all(look_at_seen, &self);
    if (!head->no_calls) self.named = compare_physical(sections, blocks, self.named, again);
    if (!head->no_pools) self.named = compare_pools(sections, blocks, self.named, again);
    return head->only_cupti.blocks + head->only_ledger.blocks + head->sizes.blocks + head->addresses_other.blocks +
           head->pools_other;
}
