/* owners_mark.c — see owners_mark.h. */
#include "preload/owners/owners_mark.h"

#include "preload/base/capacity.h"
#include "preload/base/forked.h"
#include "preload/base/lock.h"
#include "preload/ledger/history.h"
#include "preload/ledger/ledger.h"
#include "preload/owners/owned.h"
#include "preload/owners/owners.h"
#include "preload/shared/os.h"

/* What each owner had when it was last noted, by owner. */
static struct noted {
    struct noted_owner {
        uint64_t live, on_devices;
    } * owners;
    uint32_t capacity;
    uint64_t time_ns;  /* the time of the mark for which owners were last noted */
    uint64_t spent_ns; /* the time that all sums have taken */
} noted;
static struct lock noting;

/* Whether there is time for another sum over all sites. A sum takes milliseconds at a million sites, and a program may
 * have thousands of runs a second. So all sums together may take one second plus 1 % of the time since the ledger
 * began. */
static bool may_spend(uint64_t now_ns) {
    enum { SECOND = 1000000000, PART = 100 };
    return os_load(&noted.spent_ns) < SECOND + (now_ns - ledger_head->start_ns) / PART;
}

static bool is_noted(uint32_t owner) {
    uint32_t kind = owner_kind(owner);
    return kind == MEMSTOW_MODEL || kind == MEMSTOW_CUSTOM || kind == MEMSTOW_STATE;
}

static void note_owner(uint64_t time_ns, uint32_t owner, const struct owned *has) {
    struct noted_owner *before = &noted.owners[owner],
                       now = {os_not_negative((int64_t)has->live_bytes), os_not_negative((int64_t)has->cuda_bytes)};
    if (now.live == before->live && now.on_devices == before->on_devices) return;
    if (history_note_owner(&(struct snap_owner_mark){time_ns, owner, 0, now.live, now.on_devices})) *before = now;
}

static void note_all(uint64_t time_ns, uint32_t count, const struct owned *has) {
    for (uint32_t id = 1; id < count; id++) /* the table does not grow by runs, which are owners, too */
        if (is_noted(id) && CAPACITY_FOR(&noted, owners, capacity, id + 1)) note_owner(time_ns, id, &has[id]);
    noted.time_ns = time_ns;
}

/* If another thread has already noted owners for a later mark, this thread notes nothing, because its own sums may be
 * older than the sums that were noted. */
static void note_owners(uint64_t time_ns) {
    uint32_t count = owner_count();
    struct owned *has = owned_of_all(count);
    if (!has) return;
    if (lock_wait(&noting)) {
        if (time_ns > noted.time_ns) note_all(time_ns, count, has);
        lock_let_go(&noting);
    }
    owned_let_go(has, count);
}

void owners_mark(const struct snap_mark *mark) {
    uint64_t time_ns = history_mark(mark);
    if (!time_ns || !may_spend(time_ns)) return;
    note_owners(time_ns);
    __atomic_fetch_add(&noted.spent_ns, os_now() - time_ns, __ATOMIC_RELAXED);
}

static void owners_mark_abandon(void) {
    noted = (struct noted){0};
    noting = (struct lock){0};
}
FORKED(owners_mark_abandon);
