/* rule.h — finds two things for a code address: the rule that leads from its frame to the caller's frame, and the id
 * that its frame has in the ledger.
 * In: return addresses. Out: a rule, read once from .eh_frame (cfi.h) and stored. Any thread and any signal handler may
 * ask. A stored rule is found without a lock.
 *
 * Rules are no longer valid when code is unloaded: rule_forget makes all rules stale, and each rule is read again when
 * it is next needed. A code address keeps its frame id if the same file is still mapped at the same place. */
#ifndef MEMSTOW_RULE_H
#define MEMSTOW_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/os.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* An entry of the table. It has 16 bytes, so four share a cache line.
 *   code: the address in the lowest 47 bits, then the bit RULE_INTERRUPTED, and in the upper 16 bits the offset at
 *   which rbp is saved
 *   how: enum rule_kind, flags, and the offset of the CFA
 * Offsets are in units of 8 bytes. */
struct rule {
    uint64_t code;
    uint32_t how;
    uint32_t frame; /* id of the SNAP_FRAME record; RULE_NO_FRAME: none could be made. The table stores the id plus 1,
                     * because 0 is the empty entry */
};

enum rule_kind {
    RULE_STALE,    /* must be read (again) */
    RULE_SP,       /* CFA = rsp + offset */
    RULE_BP,       /* CFA = rbp + offset */
    RULE_BP_DEREF, /* CFA = *(rbp + offset) */
    RULE_SIGNAL,   /* a signal frame of the kernel */
    RULE_END,      /* the outermost frame */
    RULE_UNKNOWN,  /* the caller cannot be found */
};
enum {
    RULE_KIND_MASK = 7,
    RULE_BP_AT_BP = 1 << 3,   /* rbp is saved at rbp + its offset, not at CFA + its offset */
    RULE_EVAL_KNOWN = 1 << 4, /* RULE_EVAL is valid: it tells whether the frame is an evaluation loop of Python */
    RULE_EVAL = 1 << 5,
    RULE_NEEDS_BP = 1 << 6, /* the step to the caller's frame depends on rbp */
    RULE_OFFSET_SHIFT = 7,
    RULE_CODE_BITS = 48,
    RULE_NO_BP = INT16_MIN, /* rbp is not saved: the caller's rbp is the same */
};
#define RULE_INTERRUPTED ((uint64_t)1 << 47) /* the address is an interrupted instruction's, not a return address */
#define RULE_NO_FRAME UINT32_MAX             /* the table stores it as 0 */

static inline enum rule_kind rule_kind(uint32_t how) { return how & RULE_KIND_MASK; }
static inline int64_t rule_cfa(uint32_t how) { return (int64_t)((int32_t)how >> RULE_OFFSET_SHIFT) * 8; }
static inline uint64_t rule_code(uint64_t code) { return code & (((uint64_t)1 << RULE_CODE_BITS) - 1); }
/* The offset at which rbp is saved, or RULE_NO_BP. */
static inline int32_t rule_bp(uint64_t code) { return (int16_t)(code >> RULE_CODE_BITS); }

struct rule_table {
    uint32_t shift, mask, used;
    struct rule rules[];
};
extern struct rule_table *rule_table;

/* Reads the rule of a code address from .eh_frame, and stores it if possible. */
struct rule rule_read(uint64_t code);

static inline struct rule *rule_slot(struct rule_table *table, uint64_t code) {
    for (uint32_t i = (uint32_t)(code * 0x9E3779B97F4A7C15u >> table->shift);; i = (i + 1) & table->mask) {
        uint64_t there = __atomic_load_n(&table->rules[i].code, __ATOMIC_ACQUIRE);
        if (!((there ^ code) << (64 - RULE_CODE_BITS)) || !there) return &table->rules[i];
    }
}

/* The stored rule of an address; RULE_STALE: there is none. `how` is written last, so it is read first. The result is
 * RULE_STALE in two more cases: another thread has just taken the empty slot for another address; or the table was
 * replaced and dropped, and the slot has no frame any more. */
static inline struct rule rule_known(uint64_t code) {
    struct rule_table *table = __atomic_load_n(&rule_table, __ATOMIC_ACQUIRE);
    const struct rule *slot = rule_slot(table, code);
    uint32_t how = __atomic_load_n(&slot->how, __ATOMIC_ACQUIRE);
    uint64_t there = __atomic_load_n(&slot->code, __ATOMIC_ACQUIRE);
    uint32_t frame = __atomic_load_n(&slot->frame, __ATOMIC_ACQUIRE) - 1;
    bool dropped = frame == RULE_NO_FRAME && table != __atomic_load_n(&rule_table, __ATOMIC_ACQUIRE);
    if (unlikely((there ^ code) << (64 - RULE_CODE_BITS) || dropped)) how = RULE_STALE;
    return (struct rule){there, how, frame};
}

static inline uint32_t rule_how(uint64_t code) { return rule_known(code).how; }

static inline struct rule rule_of(uint64_t code) {
    struct rule rule = rule_known(code);
    return likely(rule_kind(rule.how) != RULE_STALE) ? rule : rule_read(code);
}

/* Sets flags of a rule that is known. */
void rule_mark(uint64_t code, uint32_t flags);

/* The record of a rule's frame id. */
const struct snap_frame *rule_frame(uint32_t frame);

/* Makes all rules stale. Call it when code was unloaded, because other code may be in its place. */
void rule_forget(void);

/* Makes the table. False: there is no memory. */
bool rule_begin(void);
/* Memory of the table and of frames, in bytes. */
uint64_t rule_bytes(void);

#pragma GCC visibility pop

#endif
