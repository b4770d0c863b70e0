/* misuse_records.c — see misuse_records.h. */
#include "preload/count/misuse_records.h"

#include <stddef.h>

#include "preload/base/forked.h"
#include "preload/ledger/ledger.h"

static struct snap_misuse *records;
static uint32_t count;

uint32_t misuse_records_next(void) { return __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED); }

/* The first thread that needs the section makes it. If two threads make it at once, one of the two sections stays
 * empty. */
static struct snap_misuse *record_at(uint32_t number) {
    struct snap_misuse *there = __atomic_load_n(&records, __ATOMIC_ACQUIRE), *made;
    if (number >= SNAP_MISUSES) return NULL;
    if (!there && (made = ledger_section(SNAP_MISUSE, sizeof *made, SNAP_MISUSES, 0)) &&
        __atomic_compare_exchange_n(&records, &there, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        there = made;
    return there ? there + number : NULL;
}

void misuse_records_write(uint32_t number, const struct snap_misuse *what) {
    struct snap_misuse record = *what, *to = record_at(number);
    if (!to) return;
    record.kind = 0;
    *to = record;
    __atomic_store_n(&to->kind, what->kind, __ATOMIC_RELEASE);
}

static void misuse_records_abandon(void) {
    records = NULL;
    count = 0;
}
FORKED(misuse_records_abandon);
