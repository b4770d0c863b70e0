/* peak.c — see peak.h. The copy is taken a little after the peak, while threads run, so it is corrected:
 * - Large blocks that were freed since the peak are noted one by one, and added.
 * - Large blocks that came since the peak are left out.
 * - Small blocks may still make the picture larger than the peak. Then the sites that are copied last, the newest, lose
 *   the excess.
 *
 * The picture's sum is stored beside the peak, so a reader knows how far the picture is off. There are two buffers: one
 * has a complete picture, in the other a new picture is being made. When the new picture is complete, the buffers
 * change places. */
#include "preload/count/peak.h"

#include <string.h>

#include "preload/count/account.h"
#include "preload/count/counters.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/series.h"
#include "preload/base/lock.h"
#include "preload/count/site.h"
#include "preload/count/thread.h"
#include "preload/base/forked.h"

enum { STEP_READS = 4096, FIRST_BITS = 12, FREED = 64 };

static struct series buffers[2] = {
    {.type = SNAP_PEAK_0, .record_size = 1, .first_bits = FIRST_BITS, .limit = 1u << 28},
    {.type = SNAP_PEAK_1, .record_size = 1, .first_bits = FIRST_BITS, .limit = 1u << 28}};

/* The picture that is being made: the live bytes and blocks of each site near a peak of the total. */
static struct {
    struct lock busy;
    uint64_t peak;                  /* the total at the peak, in bytes; 0: no picture is being made */
    uint64_t peak_ns;               /* the time of the peak */
    uint64_t bytes;                 /* the bytes of all sites copied so far, without inherited memory */
    uint32_t buffer;                /* the index in `buffers` of the buffer in which the picture is being made */
    uint32_t next_chunk, last_site; /* the next chunk of sites to copy; the site that was added to the picture last */
    /* By index in `buffers`. begun: how many pictures were begun in the buffer; length: the bytes of the newest one. */
    uint32_t begun[2], length[2];
    /* By site, only for sites that are not copied yet. freed: the large blocks that were freed since the peak; came:
     * the large blocks that were allocated since the peak. */
    struct large {
        uint32_t site;
        uint64_t bytes, blocks;
    } freed[FREED], came[FREED];
    uint32_t freed_count, came_count;
    uint64_t freed_bytes, came_bytes;
} picture;

static uint64_t fall_of(uint64_t peak) { return peak / 100 > PEAK_FALL_LEAST ? peak / 100 : PEAK_FALL_LEAST; }

/* The counters include bytes that threads have not added to the running total yet. So account_raise_peak comes first:
 * it makes the peak include these bytes, too. */
static void begin_copy(void) {
    account_raise_peak();
    picture.peak = os_load(&ledger_head->total_peak);
    picture.peak_ns = ledger_head->total_peak_ns;
    picture.buffer = ledger_head->picture_buffer == 0;
    picture.bytes = 0;
    picture.next_chunk = picture.last_site = 0;
    picture.freed_count = picture.came_count = 0;
    picture.freed_bytes = picture.came_bytes = 0;
    picture.length[picture.buffer] = 0;
    picture.begun[picture.buffer]++;
}

static void peak_publish(void) {
    struct snap_header *head = ledger_head;
    __atomic_store_n(&head->picture_buffer, 2, __ATOMIC_RELEASE);
    head->picture_peak = picture.peak;
    head->picture_bytes = picture.bytes;
    head->picture_ns = picture.peak_ns;
    head->picture_length = picture.length[picture.buffer];
    __atomic_store_n(&head->picture_buffer, picture.buffer, __ATOMIC_RELEASE);
    picture.peak = 0;
}

/* --- the bytes of a picture --- */

/* Appends the bytes to the picture that is being made. False: there is no memory for all of them, and none was
 * appended. */
static bool peak_append(const uint8_t *bytes, uint32_t count) {
    struct series *buffer = &buffers[picture.buffer];
    uint32_t *length = &picture.length[picture.buffer];
    if (!series_reserve(buffer, *length) || !series_reserve(buffer, *length + count)) return false;
    for (uint32_t i = 0; i < count; i++) *(uint8_t *)series_at(buffer, *length + i) = bytes[i];
    *length += count;
    return true;
}

static uint64_t number_at(const struct series *buffer, uint32_t *at) {
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 7 * SNAP_NUMBER_MAX; shift += 7) {
        const uint8_t *byte = series_at(buffer, (*at)++);
        number |= (uint64_t)(*byte & 0x7f) << shift;
        if (!(*byte & 0x80)) break;
    }
    return number;
}

/* --- taking a picture, slice by slice --- */

static void copy_site(uint32_t site, struct live live) {
    uint64_t left = picture.peak - picture.bytes;
    if (site != SNAP_SITE_INHERITED && live.bytes > left)
        live = left ? (struct live){left, live.blocks} : (struct live){0};
    if (!(live.bytes | live.blocks)) return;
    uint8_t bytes[3 * SNAP_NUMBER_MAX], *end = bytes;
    end = snap_put_number(end, site - picture.last_site);
    end = snap_put_number(end, live.bytes);
    end = snap_put_number(end, live.blocks);
    if (!peak_append(bytes, (uint32_t)(end - bytes))) {
        ledger_lost(SNAP_LOST_PEAK);
        return;
    }
    picture.last_site = site;
    if (site != SNAP_SITE_INHERITED) picture.bytes += live.bytes;
}

/* If blocks of the site were freed between the two sums, counters_site_live sums this one site again. */
static struct live live_of(uint32_t site, const struct snap_counter *sum, const struct snap_counter *again) {
    if (sum->free_bytes != again->free_bytes || sum->free_blocks != again->free_blocks) return counters_site_live(site);
    if (sum->alloc_bytes < sum->free_bytes || sum->alloc_blocks < sum->free_blocks) return (struct live){0};
    return (struct live){sum->alloc_bytes - sum->free_bytes, sum->alloc_blocks - sum->free_blocks};
}

static void add_freed(uint32_t site, struct live *live) {
    for (uint32_t i = 0; i < picture.freed_count; i++)
        if (picture.freed[i].site == site) {
            live->bytes += picture.freed[i].bytes;
            live->blocks += picture.freed[i].blocks;
        }
}

static void leave_out_came(uint32_t site, struct live *live) {
    for (uint32_t i = 0; i < picture.came_count; i++)
        if (picture.came[i].site == site) {
            live->bytes -= picture.came[i].bytes < live->bytes ? picture.came[i].bytes : live->bytes;
            live->blocks -= picture.came[i].blocks < live->blocks ? picture.came[i].blocks : live->blocks;
        }
}

/* Only one thread copies at a time, so the sums can be static. They are too large for the smallest stack of a
 * thread. */
static void copy_chunk(uint32_t chunk, uint32_t sites) {
    static struct snap_counter sums[SNAP_CHUNK_SITES], again[SNAP_CHUNK_SITES];
    counters_sum(chunk, sums);
    counters_sum(chunk, again);
    for (uint32_t i = 0; i < SNAP_CHUNK_SITES && chunk * SNAP_CHUNK_SITES + i < sites; i++) {
        uint32_t site = chunk * SNAP_CHUNK_SITES + i;
        struct live live = live_of(site, &sums[i], &again[i]);
        add_freed(site, &live);
        leave_out_came(site, &live);
        if (live.bytes | live.blocks) copy_site(site, live);
    }
}

static void copy_slice(void) {
    uint32_t sites = site_count(), chunks = (sites + SNAP_CHUNK_SITES - 1) / SNAP_CHUNK_SITES;
    uint32_t slice = 1 + STEP_READS / 2 / SNAP_CHUNK_SITES / thread_slots();
    for (; slice && picture.next_chunk < chunks; slice--) copy_chunk(picture.next_chunk++, sites);
    if (picture.next_chunk >= chunks) peak_publish();
}

void peak_watch(uint64_t total) {
    struct snap_header *head = ledger_head;
    uint64_t peak = os_load(&head->total_peak), fall = fall_of(peak);
    if (peak < fall || head->picture_peak == peak || (picture.peak != peak && total + fall > peak)) return;
    if (!lock_try(&picture.busy)) return;
    if (picture.peak != peak && head->picture_peak != peak) begin_copy();
    if (picture.peak) copy_slice();
    lock_let_go(&picture.busy);
}

static uint64_t total_noted(void) {
    int64_t total = __atomic_load_n(&ledger_head->host_live, __ATOMIC_RELAXED) +
                    __atomic_load_n(&ledger_head->mapped_live, __ATOMIC_RELAXED);
    return total > 0 ? (uint64_t)total : 0;
}

static bool is_copied(uint32_t site) { return site / SNAP_CHUNK_SITES < picture.next_chunk; }

/* Adds a block to the entry of its site in the list. False: the list is full. */
static bool peak_note(struct large *list, uint32_t *count, uint32_t site, uint64_t bytes) {
    uint32_t i = 0;
    while (i < *count && list[i].site != site) i++;
    if (i == FREED) return false;
    if (i == *count) list[(*count)++] = (struct large){.site = site};
    list[i].bytes += bytes;
    list[i].blocks++;
    return true;
}

/* Whether the freed block may have come after the peak. If so, takes it off the list of new blocks. Blocks of one site
 * are not told apart. */
static bool take_from_came(uint32_t site, uint64_t bytes) {
    for (uint32_t i = 0; i < picture.came_count; i++) {
        struct large *came = &picture.came[i];
        if (came->site != site || came->bytes < bytes || !came->blocks) continue;
        came->bytes -= bytes;
        came->blocks--;
        picture.came_bytes -= bytes;
        return true;
    }
    return false;
}

/* Remembers a freed block, so that the picture contains it. A block that came after the peak does not belong there, but
 * cannot always be recognised. So there is a limit for the sum of the remembered bytes and the bytes that are still
 * live: the peak, plus the bytes of the blocks that are known to be newer, plus fall_of(peak). The last term allows for
 * bytes that threads have not added to the running total yet. */
static void peak_remember(uint32_t site, uint64_t bytes, uint64_t left) {
    uint64_t most = picture.peak + fall_of(picture.peak) + picture.came_bytes;
    if (is_copied(site) || take_from_came(site, bytes) || left + picture.freed_bytes + bytes > most) return;
    if (peak_note(picture.freed, &picture.freed_count, site, bytes)) picture.freed_bytes += bytes;
}

void peak_note_free(uint32_t site, uint64_t bytes) {
    uint64_t peak = os_load(&ledger_head->total_peak), total = total_noted(), left = total > bytes ? total - bytes : 0;
    bool near = left + fall_of(peak) > peak, making = __atomic_load_n(&picture.peak, __ATOMIC_RELAXED) == peak;
    if (ledger_head->picture_peak == peak || (near && !making) || !lock_try(&picture.busy)) return;
    if (!near && picture.peak != peak && ledger_head->picture_peak != peak) begin_copy();
    if (picture.peak) peak_remember(site, bytes, left);
    lock_let_go(&picture.busy);
}

void peak_note_alloc(uint32_t site, uint64_t bytes) {
    if (!__atomic_load_n(&picture.peak, __ATOMIC_RELAXED) || !lock_try(&picture.busy)) return;
    if (picture.peak && !is_copied(site) && peak_note(picture.came, &picture.came_count, site, bytes))
        picture.came_bytes += bytes;
    lock_let_go(&picture.busy);
}

void peak_note_resized(uint32_t site, uint64_t bytes) {
    if (!__atomic_load_n(&picture.peak, __ATOMIC_RELAXED) || !lock_try(&picture.busy)) return;
    uint64_t total = total_noted();
    if (picture.peak) peak_remember(site, bytes, total > bytes ? total - bytes : 0);
    lock_let_go(&picture.busy);
}

void peak_finish(void) {
    if (!picture.peak || !lock_try(&picture.busy)) return;
    while (picture.peak) copy_slice();
    lock_let_go(&picture.busy);
}

/* --- listing the sites in the pictures --- */

static bool peak_is_shown(uint32_t buffer) {
    return ledger_head->picture_buffer == buffer || (picture.peak && picture.buffer == buffer);
}

/* Passes the next sites of the walk's buffer to `each`. True: the buffer is at its end. */
static bool peak_list(void (*each)(uint32_t site), struct peak_walk *walk) {
    enum { SITES_AT_A_TIME = 512 };
    const struct series *buffer = &buffers[walk->buffer];
    if (!peak_is_shown(walk->buffer)) return true;
    if (walk->begun != picture.begun[walk->buffer]) /* another picture is in the buffer now */
        *walk = (struct peak_walk){.buffer = walk->buffer, .begun = picture.begun[walk->buffer]};
    if (picture.peak && picture.buffer == walk->buffer) {
        for (uint32_t i = 0; i < picture.freed_count; i++) each(picture.freed[i].site);
        for (uint32_t i = 0; i < picture.came_count; i++) each(picture.came[i].site);
    }
    for (int i = 0; i < SITES_AT_A_TIME && walk->at < picture.length[walk->buffer]; i++) {
        walk->site += (uint32_t)number_at(buffer, &walk->at);
        number_at(buffer, &walk->at);
        number_at(buffer, &walk->at);
        each(walk->site);
    }
    return walk->at >= picture.length[walk->buffer];
}

enum peak_listed peak_sites(void (*each)(uint32_t site), struct peak_walk *walk) {
    if (!lock_try(&picture.busy)) return PEAK_BUSY;
    if (peak_list(each, walk)) *walk = (struct peak_walk){.buffer = walk->buffer + 1};
    lock_let_go(&picture.busy);
    return walk->buffer < 2 ? PEAK_MORE : PEAK_ALL;
}

static void peak_abandon(void) {
    picture.busy = (struct lock){0};
    picture.peak = 0;
    memset(picture.length, 0, sizeof picture.length);
    series_reset(&buffers[0]);
    series_reset(&buffers[1]);
}
FORKED(peak_abandon);
