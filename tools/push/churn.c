/* churn.c — see churn.h. */
#include "tools/push/churn.h"
#include "tools/views/stacks.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS_LEAST = 64 };

static uint64_t churn_mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t churn_text(uint64_t hash, const char *text) {
    for (; text && *text; text++) hash = churn_mix(hash, (unsigned char)*text);
    return churn_mix(hash, 0x100);
}

/* The hash of a total's stack, class, module and owners; never 0. */
static uint64_t churn_key(const struct churn *churn, const struct image *image, const struct total *total) {
    const struct snap_tag *tag = image_tag(image, total->tag);
    uint64_t key = churn_mix(1, total->stack < image->node_count ? churn->stacks[total->stack] : 0);
    key = churn_mix(key, total->class);
    key = churn_text(key, image_module(image, total->module));
    key = churn_mix(churn_mix(churn_mix(key, tag->model), tag->node), tag->run);
    return key ? key : 1;
}

static struct churn_entry *churn_slot(const struct churn_table *table, uint64_t key) {
    if (!table->slots) return NULL;
    size_t at = key & (table->slots - 1);
    while (table->entries[at].key && table->entries[at].key != key) at = (at + 1) & (table->slots - 1);
    return &table->entries[at];
}

static bool churn_begin(struct churn_table *table, size_t most) {
    table->slots = SLOTS_LEAST;
    while (table->slots < 2 * most) table->slots *= 2;
    table->entries = calloc(table->slots, sizeof *table->entries);
    return table->entries != NULL;
}

static void churn_add(struct churn *churn, const struct image *image, const struct total *total) {
    uint64_t key = churn_key(churn, image, total);
    struct churn_entry *entry = churn_slot(&churn->now, key);
    entry->key = key;
    entry->bytes += total->alloc_bytes;
    entry->blocks += total->alloc_blocks;
}

/* The growth of a sum. A sum of estimates may become smaller: then it has not grown. */
static uint64_t churn_growth(uint64_t now, uint64_t before) { return now > before ? now - before : 0; }

static void churn_compare(const struct churn *churn, struct churn_entry *entry) {
    static const struct churn_entry nothing;
    const struct churn_entry *before = churn_slot(&churn->before, entry->key);
    if (!before) before = &nothing;
    entry->grown_bytes = churn_growth(entry->bytes, before->bytes);
    entry->grown_blocks = churn_growth(entry->blocks, before->blocks);
}

int churn_look(struct churn *churn, const struct image *image) {
    churn->stacks = stack_hashes(image);
    if (!churn->stacks || !churn_begin(&churn->now, image->total_count)) {
        free(churn->stacks);
        churn->stacks = NULL;
        return -1;
    }
    for (size_t i = 0; i < image->total_count; i++) churn_add(churn, image, &image->totals[i]);
    for (size_t i = 0; churn->looked && i < churn->now.slots; i++)
        if (churn->now.entries[i].key) churn_compare(churn, &churn->now.entries[i]);
    return 0;
}

struct churn_entry churn_take(struct churn *churn, const struct image *image, const struct total *total) {
    struct churn_entry *entry = churn_slot(&churn->now, churn_key(churn, image, total)), found = *entry;
    entry->grown_bytes = entry->grown_blocks = 0;
    return found;
}

void churn_done(struct churn *churn) {
    free(churn->stacks);
    churn->stacks = NULL;
    if (churn->now.entries) {
        free(churn->before.entries);
        churn->before = churn->now;
        churn->looked = true;
    }
    churn->now = (struct churn_table){0};
}

void churn_clear(struct churn *churn) {
    churn_done(churn);
    free(churn->before.entries);
    *churn = (struct churn){0};
}
