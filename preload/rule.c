/* rule.c — see rule.h. Many threads read the table; one at a time writes, and who finds it being written does without:
 * its rule is not kept, and its frame may get a second record, which readers join. */
#include "rule.h"

#include <string.h>

#include "arena.h"
#include "cfi.h"
#include "ledger.h"
#include "python.h"
#include "site.h"
#include "snapshot.h"

enum { FIRST_BITS = 12, LAST_BITS = 24 };

struct rule_table *rule_table;

static uint32_t writing;
static struct series frames = {
    .type = SNAP_FRAME, .record_size = sizeof(struct snap_frame), .first_capacity = 1024, .limit = 1 << 24};

/* --- one rule --- */

static bool in_units(int64_t offset, int bits) {
    return offset % 8 == 0 && offset / 8 < (int64_t)1 << (bits - 1) && offset / 8 > -((int64_t)1 << (bits - 1));
}

static struct rule packed(uint64_t place, const struct cfi_rule *from) {
    static const uint8_t kinds[] = {
        [CFI_UNKNOWN] = RULE_UNKNOWN,   [CFI_SP] = RULE_SP,         [CFI_BP] = RULE_BP,
        [CFI_BP_DEREF] = RULE_BP_DEREF, [CFI_SIGNAL] = RULE_SIGNAL, [CFI_END] = RULE_END,
    };
    bool fits = in_units(from->cfa, 32 - RULE_OFFSET_SHIFT) && (from->bp == CFI_SAME || in_units(from->bp, 16));
    uint16_t bp = (uint16_t)(from->bp == CFI_SAME || !fits ? RULE_NO_BP : from->bp / 8);
    uint32_t how =
        fits ? kinds[from->kind] | (from->bp_at_bp ? RULE_BP_AT_BP : 0) | (uint32_t)(from->cfa / 8) << RULE_OFFSET_SHIFT
             : RULE_UNKNOWN;
    return (struct rule){place | (uint64_t)bp << RULE_PLACE_BITS, how, RULE_NO_FRAME};
}

static struct rule look_up(uint64_t place) {
    /* A return address may lie behind the last instruction of its function: the call is one byte before. */
    uintptr_t pc = place & RULE_INTERRUPTED ? place ^ RULE_INTERRUPTED : place - 1;
    struct cfi_object object;
    struct cfi_rule rule = {.kind = CFI_UNKNOWN};
    if (cfi_object_of(pc, &object)) rule = cfi_find(&object, pc);
    if (rule.why == CFI_NO_ENTRY && !(place & RULE_INTERRUPTED)) { /* nobody called it: makecontext put it there */
        struct cfi_rule first = cfi_find(&object, place);
        if (first.kind == CFI_END) rule = first;
    }
    return packed(place, &rule);
}

static uint32_t new_frame(uint64_t place, uint32_t module) {
    uint32_t id = site_memory_full(SITE_FRAMES) ? SERIES_NONE : series_take(&frames);
    struct snap_frame *frame = series_at(&frames, id);
    if (!frame) return RULE_NO_FRAME;
    *frame = (struct snap_frame){.address = place & ~RULE_INTERRUPTED,
                                 .module = module,
                                 .code = place & RULE_INTERRUPTED ? SNAP_FRAME_INTERRUPTED : 0};
    return id;
}

/* The frame that the place had before rules were forgotten, if the same file is there. */
static uint32_t frame_for(uint64_t place, uint32_t before) {
    uint32_t module = site_module(place & ~RULE_INTERRUPTED);
    const struct snap_frame *frame = before == RULE_NO_FRAME ? NULL : series_at(&frames, before);
    return frame && frame->module == module ? before : new_frame(place, module);
}

/* --- the table --- */

static struct rule_table *new_table(uint32_t bits) {
    struct rule_table *table = arena_take(sizeof *table + (sizeof(struct rule) << bits));
    if (!table) return NULL;
    table->shift = 64 - bits;
    table->mask = (1u << bits) - 1;
    return table;
}

static void put(struct rule *slot, const struct rule *rule) {
    __atomic_store_n(&slot->frame, rule->frame, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->place, rule->place, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->how, rule->how, __ATOMIC_RELEASE);
}

static struct rule_table *twice(const struct rule_table *from) {
    uint32_t bits = 64 - from->shift + 1;
    struct rule_table *table = bits <= LAST_BITS ? new_table(bits) : NULL;
    if (!table) return NULL;
    for (uint32_t i = 0; i <= from->mask; i++) {
        const struct rule *rule = &from->rules[i];
        if (rule->place) put(rule_slot(table, rule->place & (((uint64_t)1 << RULE_PLACE_BITS) - 1)), rule);
    }
    table->used = from->used;
    return table;
}

/* Room for one more: false when the table is as full as may be. */
static bool make_room(void) {
    struct rule_table *table = rule_table;
    if (4 * (uint64_t)table->used < 3 * ((uint64_t)table->mask + 1)) return true;
    struct rule_table *larger = twice(table);
    if (!larger) return 16 * (uint64_t)table->used < 15 * ((uint64_t)table->mask + 1);
    __atomic_store_n(&rule_table, larger, __ATOMIC_RELEASE);
    ledger_note_own_memory();
    return true;
}

static bool write_lock(void) {
    uint32_t idle = 0;
    return __atomic_compare_exchange_n(&writing, &idle, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void write_unlock(void) { __atomic_store_n(&writing, 0, __ATOMIC_RELEASE); }

struct rule rule_read(uint64_t place) {
    struct rule rule = look_up(place);
    if (!write_lock()) {
        rule.frame = frame_for(place, RULE_NO_FRAME);
        return rule;
    }
    bool room = make_room();
    struct rule *slot = rule_slot(rule_table, place);
    bool known = slot->place != 0;
    rule.frame = frame_for(place, known ? slot->frame : RULE_NO_FRAME);
    if (room || known) {
        rule_table->used += !known;
        put(slot, &rule);
    }
    write_unlock();
    return rule;
}

void rule_mark(uint64_t place, uint32_t flags) {
    struct rule *slot = rule_slot(__atomic_load_n(&rule_table, __ATOMIC_ACQUIRE), place);
    uint32_t how = __atomic_load_n(&slot->how, __ATOMIC_ACQUIRE);
    uint64_t there = __atomic_load_n(&slot->place, __ATOMIC_RELAXED);
    if (rule_kind(how) != RULE_STALE && !((there ^ place) << (64 - RULE_PLACE_BITS)))
        __atomic_compare_exchange_n(&slot->how, &how, how | flags, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

const struct snap_frame *rule_frame(uint32_t frame) { return series_at(&frames, frame); }

void rule_forget(void) {
    if (!rule_table) return;
    bool locked = write_lock(); /* in a forked child its holder may never come back */
    for (int turn = 0; !locked && ledger_wait(turn); turn++) locked = write_lock();
    struct rule_table *table;
    do { /* without the lock, a larger copy may come meanwhile */
        table = __atomic_load_n(&rule_table, __ATOMIC_ACQUIRE);
        for (uint32_t i = 0; i <= table->mask; i++)
            __atomic_store_n(&table->rules[i].how, RULE_STALE, __ATOMIC_RELEASE);
    } while (table != __atomic_load_n(&rule_table, __ATOMIC_ACQUIRE));
    if (locked) write_unlock();
}

bool rule_begin(void) {
    python_begin(&frames);
    rule_table = new_table(FIRST_BITS);
    return rule_table != NULL;
}

/* The addresses are the same in a forked child, but the frames were the parent's. */
void rule_abandon(void) {
    python_abandon();
    series_reset(&frames);
    writing = 0;
    rule_table = NULL;
}

uint64_t rule_bytes(void) {
    return os_load(&frames.next) * sizeof(struct snap_frame) +
           (rule_table ? (rule_table->mask + 1) * sizeof(struct rule) : 0);
}
