/* rule.c — see rule.h. Any thread may read the table and put rules into it. Only one thread at a time replaces the
 * table. If two threads put in the rule of one address at the same moment, their rules are equal, except for the frame
 * id, because each thread may make a record of the frame. Readers of the ledger merge the two records. */
#include "preload/stacks/rule.h"

#include <string.h>

#include "preload/base/arena.h"
#include "preload/stacks/cfi_file.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/series.h"
#include "preload/base/lock.h"
#include "preload/stacks/python.h"
#include "preload/ledger/budget.h"
#include "preload/stacks/module.h"
#include "preload/shared/snapshot.h"
#include "preload/base/forked.h"

enum { FIRST_BITS = 12, LAST_BITS = 24 };

struct rule_table *rule_table;

static struct lock replacing;
static struct series frames = {
    .type = SNAP_FRAME, .record_size = sizeof(struct snap_frame), .first_bits = 10, .limit = SNAP_RUN_FRAME};

/* --- reading one rule --- */

static bool in_units(int64_t offset, int bits) {
    return offset % 8 == 0 && offset / 8 < (int64_t)1 << (bits - 1) && offset / 8 > -((int64_t)1 << (bits - 1));
}

static struct rule rule_packed(uint64_t code, const struct cfi_rule *from) {
    static const uint8_t kinds[] = {
        [CFI_UNKNOWN] = RULE_UNKNOWN,   [CFI_SP] = RULE_SP,         [CFI_BP] = RULE_BP,
        [CFI_BP_DEREF] = RULE_BP_DEREF, [CFI_SIGNAL] = RULE_SIGNAL, [CFI_END] = RULE_END,
    };
    bool fits = in_units(from->cfa, 32 - RULE_OFFSET_SHIFT) && (from->bp == CFI_SAME || in_units(from->bp, 16));
    uint16_t bp = (uint16_t)(from->bp == CFI_SAME || !fits ? RULE_NO_BP : from->bp / 8);
    bool needs_bp = from->kind == CFI_BP || from->kind == CFI_BP_DEREF || from->bp_at_bp;
    uint32_t flags = (from->bp_at_bp ? RULE_BP_AT_BP : 0) | (needs_bp ? RULE_NEEDS_BP : 0);
    uint32_t how = fits ? kinds[from->kind] | flags | (uint32_t)(from->cfa / 8) << RULE_OFFSET_SHIFT : RULE_UNKNOWN;
    return (struct rule){code | (uint64_t)bp << RULE_CODE_BITS, how, RULE_NO_FRAME};
}

static struct rule rule_look_up(uint64_t code) {
    /* A call may be the last instruction of its function, so a return address may be outside of the function. The byte
     * before the return address belongs to the call. Therefore the rule of that byte is used. */
    uintptr_t pc = code & RULE_INTERRUPTED ? code ^ RULE_INTERRUPTED : code - 1;
    struct cfi_object object;
    struct cfi_rule rule = {.kind = CFI_UNKNOWN};
    if (cfi_object_of(pc, &object)) rule = cfi_file_find(&object, pc);
    /* makecontext puts an address on the stack that does not follow a call instruction. There may be no entry for the
     * byte before that address. In this case the address itself has the rule of an outermost frame. */
    if (rule.why == CFI_NO_ENTRY && !(code & RULE_INTERRUPTED)) {
        struct cfi_rule first = cfi_file_find(&object, code);
        if (first.kind == CFI_END) rule = first;
    }
    return rule_packed(code, &rule);
}

static uint32_t new_frame(uint64_t code, uint32_t module) {
    uint32_t id = budget_is_full(BUDGET_FRAMES) ? SERIES_NONE : series_take(&frames);
    struct snap_frame *frame = series_at(&frames, id);
    if (!frame) return RULE_NO_FRAME;
    *frame = (struct snap_frame){.address = code & ~RULE_INTERRUPTED,
                                 .module = module,
                                 .code = code & RULE_INTERRUPTED ? SNAP_FRAME_INTERRUPTED : 0};
    return id;
}

/* The frame id for a code address. `before`: the id that the address had before rules were forgotten. The address keeps
 * this id if the same file is still mapped there, and otherwise gets a new id. */
static uint32_t frame_for(uint64_t code, uint32_t before) {
    uint32_t module = module_at(code & ~RULE_INTERRUPTED);
    const struct snap_frame *frame = before == RULE_NO_FRAME ? NULL : series_at(&frames, before);
    return frame && frame->module == module ? before : new_frame(code, module);
}

/* --- the table of rules --- */

static struct rule_table *new_table(uint32_t bits) {
    struct rule_table *table = arena_take_table(sizeof *table + (sizeof(struct rule) << bits));
    if (!table) return NULL;
    table->shift = 64 - bits;
    table->mask = (1u << bits) - 1;
    return table;
}

static bool is_filled(const struct rule_table *table, uint32_t sixteenths) {
    return 16 * (uint64_t)__atomic_load_n(&table->used, __ATOMIC_RELAXED) >= sixteenths * ((uint64_t)table->mask + 1);
}

static void rule_put(struct rule *slot, const struct rule *rule) {
    __atomic_store_n(&slot->frame, rule->frame + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->code, rule->code, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->how, rule->how, __ATOMIC_RELEASE);
}

/* Reads the fields in the opposite order of rule_put. */
static struct rule taken_from(const struct rule *slot) {
    uint32_t how = __atomic_load_n(&slot->how, __ATOMIC_ACQUIRE);
    uint64_t code = __atomic_load_n(&slot->code, __ATOMIC_ACQUIRE);
    return (struct rule){code, how, __atomic_load_n(&slot->frame, __ATOMIC_RELAXED) - 1};
}

static struct rule_table *rule_twice(const struct rule_table *from) {
    uint32_t bits = 64 - from->shift + 1;
    struct rule_table *table = bits <= LAST_BITS ? new_table(bits) : NULL;
    if (!table) return NULL;
    for (uint32_t i = 0; i <= from->mask; i++) {
        struct rule rule = taken_from(&from->rules[i]);
        if (!rule.code) continue;
        rule_put(rule_slot(table, rule_code(rule.code)), &rule);
        table->used++;
    }
    return table;
}

/* Gives back the memory of a table that was replaced, except for its first page, which says how large the table is. A
 * thread that still uses the table finds the other pages empty, and reads the rule from .eh_frame again. A rule that is
 * put into these pages is lost. */
static void rule_drop(struct rule_table *table) {
    size_t length = sizeof *table + sizeof(struct rule) * ((size_t)table->mask + 1);
    arena_drop((char *)table + OS_PAGE, length - OS_PAGE);
}

static void rule_grow(void) {
    if (!lock_try(&replacing)) return;
    struct rule_table *before = rule_table, *larger = is_filled(before, 12) ? rule_twice(before) : NULL;
    if (larger) {
        __atomic_store_n(&rule_table, larger, __ATOMIC_RELEASE);
        rule_drop(before);
        ledger_note_own_memory();
    }
    lock_let_go(&replacing);
}

/* The slot of an address in the table of rules. If the address has none yet, takes an empty slot for it. NULL: the
 * table is full. If another thread adds a rule while a larger table is made, the rule may be missing in the new table.
 * Then the rule is read again when it is next needed. */
static struct rule *rule_slot_for(uint64_t code) {
    if (unlikely(is_filled(__atomic_load_n(&rule_table, __ATOMIC_ACQUIRE), 12))) rule_grow();
    struct rule_table *table = __atomic_load_n(&rule_table, __ATOMIC_ACQUIRE);
    for (;;) {
        struct rule *slot = rule_slot(table, code);
        uint64_t there = __atomic_load_n(&slot->code, __ATOMIC_ACQUIRE);
        if (there && !((there ^ code) << (64 - RULE_CODE_BITS))) return slot;
        if (there) continue; /* another thread has just taken the slot for another address */
        if (is_filled(table, 15)) return NULL;
        if (!__atomic_compare_exchange_n(&slot->code, &there, code, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        __atomic_fetch_add(&table->used, 1, __ATOMIC_RELAXED);
        return slot;
    }
}

struct rule rule_read(uint64_t code) {
    struct rule rule = rule_look_up(code), *slot = rule_slot_for(code);
    rule.frame = frame_for(code, slot ? __atomic_load_n(&slot->frame, __ATOMIC_RELAXED) - 1 : RULE_NO_FRAME);
    if (slot) rule_put(slot, &rule);
    return rule;
}

void rule_mark(uint64_t code, uint32_t flags) {
    struct rule *slot = rule_slot(__atomic_load_n(&rule_table, __ATOMIC_ACQUIRE), code);
    uint32_t how = __atomic_load_n(&slot->how, __ATOMIC_ACQUIRE);
    uint64_t there = __atomic_load_n(&slot->code, __ATOMIC_RELAXED);
    if (rule_kind(how) != RULE_STALE && !((there ^ code) << (64 - RULE_CODE_BITS)))
        __atomic_compare_exchange_n(&slot->how, &how, how | flags, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

const struct snap_frame *rule_frame(uint32_t frame) { return series_at(&frames, frame); }

void rule_forget(void) {
    if (!rule_table) return;
    bool locked = lock_wait(&replacing); /* in a forked child the holder may never come back */
    struct rule_table *table;
    do { /* without the lock, a larger table may replace this one meanwhile */
        table = __atomic_load_n(&rule_table, __ATOMIC_ACQUIRE);
        for (uint32_t i = 0; i <= table->mask; i++)
            __atomic_store_n(&table->rules[i].how, RULE_STALE, __ATOMIC_RELEASE);
    } while (table != __atomic_load_n(&rule_table, __ATOMIC_ACQUIRE));
    if (locked) lock_let_go(&replacing);
}

bool rule_begin(void) {
    python_record_begin(&frames);
    rule_table = new_table(FIRST_BITS);
    return rule_table != NULL;
}

/* In a forked child: forgets all rules. Their code addresses are the same here, but their frames are the parent's. */
static void rule_abandon(void) {
    series_reset(&frames);
    replacing = (struct lock){0};
    rule_table = NULL;
}
FORKED(rule_abandon);

uint64_t rule_bytes(void) {
    return os_load(&frames.next) * sizeof(struct snap_frame) +
           (rule_table ? (rule_table->mask + 1) * sizeof(struct rule) : 0);
}
