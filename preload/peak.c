/* peak.c — see peak.h. The copy is taken a little after the peak and while threads run: what it sums to is stored
 * beside the peak, so that a reader knows how far it is from the truth. */
#include "peak.h"

#include "account.h"
#include "ledger.h"
#include "site.h"

enum { STEP_READS = 4096, STEP_SITES_MIN = 16, FALL_MIN = 1 << 20 };

static struct {
    uint32_t busy;
    uint64_t peak; /* being copied; 0: none */
    uint64_t peak_ns;
    uint64_t bytes;
    uint32_t buffer, next_site;
} picture;

static void begin_copy(uint64_t peak) {
    picture.peak = peak;
    picture.peak_ns = ledger_head->total_peak_ns;
    picture.buffer = ledger_head->picture_buffer == 0;
    picture.bytes = 0;
    picture.next_site = 0;
}

static void publish(void) {
    struct snap_header *head = ledger_head;
    __atomic_store_n(&head->picture_buffer, 2, __ATOMIC_RELEASE);
    head->picture_peak = picture.peak;
    head->picture_bytes = picture.bytes;
    head->picture_ns = picture.peak_ns;
    __atomic_store_n(&head->picture_buffer, picture.buffer, __ATOMIC_RELEASE);
    picture.peak = 0;
}

static void copy_site(uint32_t site) {
    struct snap_peak *into = site_peak(site);
    struct account_live live = account_site_live(site);
    if (!into) {
        ledger_lost(SNAP_LOST_PEAK);
        return;
    }
    into->bytes[picture.buffer] = live.bytes;
    into->blocks[picture.buffer] = live.blocks;
    if (site != SNAP_SITE_INHERITED) picture.bytes += live.bytes;
}

static void copy_slice(void) {
    uint32_t sites = site_count(), slice = STEP_READS / account_slots();
    slice = slice < STEP_SITES_MIN ? STEP_SITES_MIN : slice;
    for (; slice && picture.next_site < sites; slice--) copy_site(picture.next_site++);
    if (picture.next_site >= sites) publish();
}

void peak_watch(uint64_t total) {
    struct snap_header *head = ledger_head;
    uint64_t peak = os_load(&head->total_peak), fall = peak / 100 > FALL_MIN ? peak / 100 : FALL_MIN;
    if (peak < fall || head->picture_peak == peak || (picture.peak != peak && total + fall > peak)) return;
    if (__atomic_exchange_n(&picture.busy, 1, __ATOMIC_ACQUIRE)) return;
    if (picture.peak != peak && head->picture_peak != peak) begin_copy(peak);
    if (picture.peak) copy_slice();
    __atomic_store_n(&picture.busy, 0, __ATOMIC_RELEASE);
}

void peak_finish(void) {
    if (!picture.peak || __atomic_exchange_n(&picture.busy, 1, __ATOMIC_ACQUIRE)) return;
    while (picture.peak) copy_slice();
    __atomic_store_n(&picture.busy, 0, __ATOMIC_RELEASE);
}

void peak_abandon(void) {
    picture.busy = 0;
    picture.peak = 0;
}
