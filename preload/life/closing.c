/* closing.c — see closing.h. */
#include "preload/life/closing.h"

#include <string.h>

#include "preload/count/account.h"
#include "preload/blocks/blocks.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/ledger_strings.h"
#include "preload/ledger/series.h"
#include "preload/blocks/mappings.h"
#include "preload/life/misuse.h"
#include "preload/count/peak.h"
#include "preload/shared/residency.h"
#include "preload/base/seal.h"

static struct series regions = {
    .type = SNAP_REGION, .record_size = sizeof(struct snap_region), .first_bits = 7, .limit = 1 << 16};

static uint32_t path_string(const char *path) {
    static char last[4096];
    static uint32_t last_string;
    if (!path[0]) return 0;
    if (strcmp(path, last) != 0) {
        strncpy(last, path, sizeof last - 1);
        last_string = ledger_string(path);
    }
    return last_string;
}

static int write_region(void *context, const struct residency_region *found) {
    const struct residency *residency = context;
    uint64_t anonymous = 0;
    if (!found->readable) return 0;
    uint64_t resident = residency_count(residency, found->start, found->end, &anonymous);
    struct snap_region *region = resident ? series_at(&regions, series_take(&regions)) : NULL;
    if (region)
        *region = (struct snap_region){.start = found->start,
                                       .end = found->end,
                                       .resident = resident,
                                       .anonymous = anonymous,
                                       .path = path_string(found->path),
                                       .flags = found->flags};
    return 0;
}

static void measure_large(struct snap_large *record, void *residency) {
    record->resident = residency_count(residency, record->address, record->address + record->size, NULL);
}

static void measure_mapping(struct snap_mapping *record, void *residency) {
    if (record->kind != SNAP_MAP_RESERVED)
        record->resident = residency_count(residency, record->address, record->address + record->length, NULL);
}

static void measure_residency(void) {
    struct residency residency;
    if (residency_open(&residency, 0) < 0) return;
    series_reset(&regions);
    residency_regions(&residency, write_region, &residency);
    blocks_visit_records(measure_large, &residency);
    mappings_visit_records(measure_mapping, &residency);
    ledger_head->rss_bytes = residency_rss(&residency);
    ledger_head->residency_ns = os_now();
    ledger_head->flags |= SNAP_RESIDENCY;
    residency_close(&residency);
}

void closing_write(void) {
    account_finish();
    peak_finish();
    ledger_note_own_memory();
    if (seal_is_set()) return;
    misuse_find_live();
    measure_residency();
}
