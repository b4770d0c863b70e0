/* leaks_retired.c — memory that retired owners left behind, and where it was allocated; see leaks.h. */
#include "tools/reader/cuda_image.h"
#include "tools/base/list.h"
#include "tools/leaks/leaks.h"
#include "tools/views/stacks.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* what the owners left is a small remainder if it is less than 1/SHARE of what they had allocated, as in
     * preload/shared/policy.c */
    SHARE = 20,
    LITTLE = 64 * 1024, /* less memory than this is a small remainder in any case */
};

/* --- owners by name --- */

struct had {
    uint64_t live_bytes, live_blocks, allocated;
};

/* Returns an array with the memory of each owner, by the owner's index in the image. NULL: the array cannot be
 * allocated. The caller frees the array. */
static struct had *sum_owners(const struct image *image) {
    struct had *had = calloc(image->owner_count + 1, sizeof *had);
    for (size_t i = 0; had && i < cuda_every_count(image); i++) {
        struct total of, *total = &of;
        if (!cuda_every_total(image, i, total)) continue;
        const struct snap_owner *owner = image_owner(image, image_tag(image, total->tag)->model);
        if (!owner || total->flags & TOTAL_INHERITED) continue;
        struct had *sum = &had[owner - image->owners];
        sum->live_bytes += total_live_bytes(total);
        sum->live_blocks += total_live_blocks(total);
        sum->allocated += total->alloc_bytes;
    }
    return had;
}

/* Whether the owner was retired so recently that its memory may still be freed: the process is alive, and runs have
 * ended in it, but none of them after the owner was retired. `since`: how many runs ended after the owner was
 * retired. */
static bool is_just_gone(const struct leaks *self, uint32_t since) {
    return self->sites->run_count && self->image->header.state == SNAP_RUNNING && !since;
}

bool leaks_is_too_much(uint64_t live, uint64_t allocated) { return live >= LITTLE && live >= allocated / SHARE; }

/* Adds an owner to the group of its name. Judges the owner by itself, too: an owner that leaks everything must not be
 * hidden by many owners of that name that left a little. */
static void leaks_retired_add_owner(struct leaks *self, const struct snap_owner *owner, const struct had *had,
                                    struct leak_retired *to) {
    uint32_t since = leaks_runs_since(self, owner->end_ns);
    to->owners++;
    to->live_bytes += had->live_bytes;
    to->live_blocks += had->live_blocks;
    to->allocated_bytes += had->allocated;
    if (since > to->runs_since) to->runs_since = since;
    if (is_just_gone(self, since)) return;
    to->old_live_bytes += had->live_bytes;
    to->old_allocated_bytes += had->allocated;
    to->is_leak |= leaks_is_too_much(had->live_bytes, had->allocated);
}

/* --- where retired owners' memory was allocated --- */

/* The memory that the retired owners of one name (a group) left at one call stack. */
struct piece {
    uint32_t group;
    struct leak_stack stack;
};

static int by_path(const void *left, const void *right) {
    const struct piece *a = left, *b = right;
    if (a->group != b->group) return a->group < b->group ? -1 : 1;
    return a->stack.path < b->stack.path ? -1 : a->stack.path > b->stack.path;
}

/* Inserts the stack into the group's list of its largest stacks. */
static void leaks_retired_rank(struct leak_retired *group, const struct leak_stack *stack) {
    uint32_t at = group->stack_count < LEAKS_STACKS ? group->stack_count++ : LEAKS_STACKS;
    for (; at > 0 && group->stacks[at - 1].live_bytes < stack->live_bytes; at--)
        if (at < LEAKS_STACKS) group->stacks[at] = group->stacks[at - 1];
    if (at < LEAKS_STACKS) group->stacks[at] = *stack;
}

static void rank_all(struct leaks *self, struct piece *pieces, size_t count) {
    if (count) qsort(pieces, count, sizeof *pieces, by_path);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && by_path(&pieces[i], &pieces[next]) == 0; next++) {
            pieces[i].stack.live_bytes += pieces[next].stack.live_bytes;
            pieces[i].stack.live_blocks += pieces[next].stack.live_blocks;
        }
        leaks_retired_rank(&self->retired[pieces[i].group], &pieces[i].stack);
    }
}

static struct leak_stack leak_stack_of(const struct image *image, const uint64_t *hashes, const struct total *total) {
    uint32_t stack = total->stack < image->node_count ? total->stack : 0;
    return (struct leak_stack){.stack = stack,
                               .module = total->module,
                               .path = hashes[stack] ? hashes[stack] : total->module,
                               .live_bytes = total_live_bytes(total),
                               .live_blocks = total_live_blocks(total)};
}

/* Finds the largest stacks of each group. groups[i] is for the owner image->owners[i]: 1 + the index of its group, or 0
 * if the owner is in no group. */
static int find_stacks(struct leaks *self, const uint32_t *groups) {
    const struct image *image = self->image;
    uint64_t *hashes = stack_hashes(image);
    struct piece *pieces = NULL;
    size_t count = 0, capacity = 0;
    int result = hashes ? 0 : -1;
    for (size_t i = 0; result == 0 && i < cuda_every_count(image); i++) {
        struct total of, *total = &of;
        if (!cuda_every_total(image, i, total)) continue;
        const struct snap_owner *owner = image_owner(image, image_tag(image, total->tag)->model);
        uint32_t group = owner ? groups[owner - image->owners] : 0;
        if (!group || !total_live_bytes(total)) continue;
        if (!LIST_GROW(pieces, count, capacity)) {
            result = -1;
            break;
        }
        pieces[count++] = (struct piece){group - 1, leak_stack_of(image, hashes, total)};
    }
    if (result == 0) rank_all(self, pieces, count);
    free(hashes);
    free(pieces);
    return result;
}

/* --- the list of retired owners --- */

static int worst_first(const void *left, const void *right) {
    const struct leak_retired *a = left, *b = right;
    if (a->is_leak != b->is_leak) return a->is_leak ? -1 : 1;
    if (a->live_bytes != b->live_bytes) return a->live_bytes > b->live_bytes ? -1 : 1;
    return a->name < b->name ? -1 : a->name > b->name;
}

/* 1 + the index of the group for an owner's name. Makes the group if it is new. `by_name` has the results so far. */
static uint32_t group_of(struct leaks *self, uint32_t *by_name, uint32_t name) {
    if (!by_name[name]) {
        self->retired[self->retired_count].name = name;
        by_name[name] = (uint32_t)++self->retired_count;
    }
    return by_name[name];
}

static int make_groups(struct leaks *self, uint32_t *groups, const struct had *had) {
    const struct image *image = self->image;
    struct leak_sites *names = self->sites; /* all owners with memory have a name there */
    uint32_t *by_name = calloc(names->name_count + 1, sizeof *by_name);
    self->retired = calloc(names->name_count + 1, sizeof *self->retired);
    if (!by_name || !self->retired) {
        free(by_name);
        return -1;
    }
    for (size_t i = 0; i < image->owner_count; i++) {
        if (!leak_owner_is_gone(&image->owners[i]) || !had[i].live_bytes) continue;
        uint32_t known = names->name_count, name = leak_sites_name(names, image, image->owners[i].id);
        if (!name || name == UINT32_MAX || name >= known) continue;
        groups[i] = group_of(self, by_name, name);
        leaks_retired_add_owner(self, &image->owners[i], &had[i], &self->retired[groups[i] - 1]);
    }
    free(by_name);
    return 0;
}

static int mark_findings(struct leaks *self) {
    bool *retired = calloc(self->sites->name_count + 1, sizeof *retired);
    if (!retired) return -1;
    for (size_t i = 0; i < self->retired_count; i++) retired[self->retired[i].name] = true;
    for (size_t i = 0; i < self->count; i++) self->list[i].is_retired |= retired[self->list[i].model];
    free(retired);
    return 0;
}

static void judge_groups(struct leaks *self) {
    for (size_t i = 0; i < self->retired_count; i++) {
        struct leak_retired *retired = &self->retired[i];
        retired->is_leak |= leaks_is_too_much(retired->old_live_bytes, retired->old_allocated_bytes);
        self->retired_leaks += retired->is_leak;
    }
    if (self->retired_count) qsort(self->retired, self->retired_count, sizeof *self->retired, worst_first);
}

int leaks_find_retired(struct leaks *self) {
    struct had *had = sum_owners(self->image);
    uint32_t *groups = calloc(self->image->owner_count + 1, sizeof *groups);
    int result = had && groups ? make_groups(self, groups, had) : -1;
    if (result == 0 && self->retired_count) result = find_stacks(self, groups);
    free(had);
    free(groups);
    if (result < 0) return -1;
    judge_groups(self);
    return mark_findings(self);
}
