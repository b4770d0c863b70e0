/* roster.c — see roster.h. */
#include "tools/views/roster.h"
#include "tools/reader/cuda_image.h"
#include "tools/proc/process.h"
#include "tools/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *roster_kind(const struct snap_owner *owner) {
    static const char *const kinds[] = {"custom", "model", "node", "run", "custom", "state"};
    return owner->kind < sizeof kinds / sizeof *kinds ? kinds[owner->kind] : "custom";
}

const char *roster_policy(const struct snap_owner *owner) {
    static const char *const policies[] = {NULL, "keep", "stow", "free"};
    return owner->policy < sizeof policies / sizeof *policies ? policies[owner->policy] : NULL;
}

const char *roster_outcome_word(uint32_t outcome) {
    static const char *const words[ROSTER_OUTCOMES] = {"ok", "failed", "cancelled", "out-of-memory"};
    return words[outcome];
}

const char *roster_outcome(const struct snap_owner *owner) {
    bool ended = owner->kind == SNAP_OWNER_RUN && roster_is_retired(owner);
    return ended && owner->outcome < ROSTER_OUTCOMES ? roster_outcome_word(owner->outcome) : NULL;
}

bool roster_is_retired(const struct snap_owner *owner) { return owner->state == SNAP_OWNER_RETIRED; }

const char *roster_state(const struct snap_owner *owner) { return roster_is_retired(owner) ? "retired" : "live"; }

static void row_add(struct roster *roster, const struct image *image, uint32_t id, const struct total *total) {
    const struct snap_owner *owner = image_owner(image, id);
    struct roster_row *row = owner ? &roster->rows[owner - image->owners] : &roster->untagged;
    row->live_bytes += total_live_bytes(total);
    row->live_blocks += total_live_blocks(total);
}

static void add_total(struct roster *roster, const struct image *image, const struct total *total) {
    const struct snap_tag *tag = image_tag(image, total->tag);
    if (total->flags & TOTAL_INHERITED) return;
    roster->live_bytes += total_live_bytes(total);
    if (tag->model) row_add(roster, image, tag->model, total);
    if (tag->node) row_add(roster, image, tag->node, total);
    if (tag->run) row_add(roster, image, tag->run, total);
    if (!tag->model && !tag->node && !tag->run) row_add(roster, image, 0, total);
}

static void add_share(struct roster_row *row, const struct cuda_share *share) {
    row->cuda_bytes = share->device_bytes;
    row->cuda_blocks = share->device_blocks;
}

static int add_shares(struct roster *roster, const struct image *image) {
    struct cuda_share *shares = cuda_shares(image);
    if (!shares) return -1;
    for (size_t i = 0; i < image->owner_count; i++) add_share(&roster->rows[i], &shares[i]);
    add_share(&roster->untagged, &shares[image->owner_count]);
    roster->cuda_bytes = image->cuda.device.live_bytes;
    free(shares);
    return 0;
}

static int roster_by_size(const void *left, const void *right) {
    const struct roster_row *a = left, *b = right;
    uint64_t of_a = a->live_bytes + a->cuda_bytes, of_b = b->live_bytes + b->cuda_bytes;
    if (of_a != of_b) return of_a < of_b ? 1 : -1;
    return a->owner->id < b->owner->id ? -1 : a->owner->id > b->owner->id;
}

int roster_make(struct roster *roster, const struct image *image) {
    *roster = (struct roster){.count = image->owner_count};
    roster->rows = calloc(roster->count + 1, sizeof *roster->rows);
    if (!roster->rows) return -1;
    for (size_t i = 0; i < roster->count; i++) roster->rows[i].owner = &image->owners[i];
    for (size_t i = 0; i < image->total_count; i++) add_total(roster, image, &image->totals[i]);
    if (add_shares(roster, image) < 0) return -1;
    qsort(roster->rows, roster->count, sizeof *roster->rows, roster_by_size);
    return 0;
}

static uint64_t roster_least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* The stowed bytes are limited to the owner's present bytes. The ledger has the stowed bytes as of the last move, and
 * some of them may be freed by now. */
struct roster_stowed roster_stowed(const struct snap_owner *owner, uint64_t live_bytes, uint64_t cuda_bytes) {
    uint64_t all = owner->stowed_bytes, of_devices = roster_least(owner->device_stowed_bytes, all);
    return (struct roster_stowed){roster_least(all - of_devices, live_bytes), roster_least(of_devices, cuda_bytes)};
}

/* If the moving owner was adopted meanwhile, the move counts for the owner that adopted it. */
struct roster_moving roster_moving(const struct image *image, const struct snap_owner *owner) {
    const struct snap_header *header = &image->header;
    if (!image->running || !header->moving_owner || image_heir(image, header->moving_owner) != owner)
        return (struct roster_moving){0};
    return (struct roster_moving){true, header->moving == SNAP_MOVING_OUT, header->moved_bytes, header->wanted_bytes};
}

void roster_clear(struct roster *roster) {
    free(roster->rows);
    *roster = (struct roster){0};
}

/* --- finding an owner by name or id --- */

static bool has_memory_to_move(const struct snap_owner *owner) {
    return owner->kind == SNAP_OWNER_MODEL || owner->kind == SNAP_OWNER_CUSTOM || owner->kind == SNAP_OWNER_STATE;
}

static const struct snap_owner *find_id(const struct image *image, const char *meant, char *error, size_t size) {
    const struct snap_owner *owner = image_heir(image, (uint32_t)process_parse(meant));
    if (!owner) snprintf(error, size, "no owner has the id %s", TEXT_SAFE(meant));
    if (!owner || has_memory_to_move(owner)) return owner;
    snprintf(error, size, "owner %u is a %s: only models, customs and states have memory of their own", owner->id,
             roster_kind(owner));
    return NULL;
}

/* The id, with the origin, which tells owners of one name apart: "7 (wan.safetensors)". */
static struct text_line roster_id(const struct image *image, const struct snap_owner *owner) {
    struct text_line text;
    const char *origin = image_string(image, owner->origin);
    snprintf(text.s, sizeof text.s, *origin ? "%u (%s)" : "%u", owner->id, text_fit(origin, 60).s);
    return text;
}

static const struct snap_owner *find_name(const struct image *image, const char *meant, char *error, size_t size) {
    const struct snap_owner *found = NULL;
    for (size_t i = 0; i < image->owner_count; i++) {
        const struct snap_owner *owner = &image->owners[i];
        if (roster_is_retired(owner) || !has_memory_to_move(owner) ||
            strcmp(image_string(image, owner->name), meant) != 0)
            continue;
        if (found) {
            snprintf(error, size, "'%s' is the name of owners %s and %s: say which id", TEXT_SAFE(meant),
                     roster_id(image, found).s, roster_id(image, owner).s);
            return NULL;
        }
        found = owner;
    }
    if (!found)
        snprintf(error, size, "no model, custom or state is called '%s': see 'memstow owners %u'", TEXT_SAFE(meant),
                 image->header.pid);
    return found;
}

const struct snap_owner *roster_find(const struct image *image, const char *meant, char *error, size_t size) {
    return process_parse(meant) ? find_id(image, meant, error, size) : find_name(image, meant, error, size);
}
