/* watch.c — see watch.h. */
#include "preload/triggers/watch.h"

#include <errno.h>

#include "preload/ledger/ledger.h"
#include "preload/shared/policy.h"
#include "preload/shared/pressure.h"
#include "preload/triggers/trigger.h"
#include "preload/base/seal.h"
#include "preload/owners/moving.h"
#include "preload/base/forked.h"

enum { PRESSURE_WAIT_S = 10, PRESSURE_WAIT_MOST_S = 300 };
static const uint64_t SECOND = 1000000000;

/* The data of the one thread that polls. */
static struct {
    uint64_t idle_since_ns; /* the latest trigger for idle owners covered those that became idle before this time */
    uint64_t idle_next_ns;  /* the next look for idle owners is not before this time */
    uint64_t pressure_ns;   /* the next look for pressure is not before this time */
    /* seconds to wait after the latest trigger for pressure; 0: memory was not short at the latest look */
    uint64_t wait_s;
    struct owner_state *owners;
    uint32_t owner_capacity;
} watch;

bool watch_is_wanted(void) {
    const struct pressure_wishes *wishes = pressure_wishes();
    return wishes->any || wishes->idle_ns;
}

/* Sets the time of the next look for pressure, after a trigger. The wait becomes longer with each trigger that gave
 * little memory back. If the program carries the trigger out, the outcome is not known here and counts as little. */
static void wait_after(uint64_t now_ns, bool gave) {
    watch.wait_s = gave || !watch.wait_s ? PRESSURE_WAIT_S : 2 * watch.wait_s;
    if (watch.wait_s > PRESSURE_WAIT_MOST_S) watch.wait_s = PRESSURE_WAIT_MOST_S;
    watch.pressure_ns = now_ns + watch.wait_s * SECOND;
}

typedef bool ask_function(uint32_t reason, const char *text, uint64_t needed);

/* Asks the program to make a trigger. If `ask` is NULL or returns false, makes the trigger here. Returns false if
 * another trigger is in progress. *gave says whether the trigger was made here and gave back at least a tenth of the
 * `needed` bytes. */
static bool do_or_ask(uint32_t reason, const char *text, uint64_t needed, ask_function *ask, bool *gave) {
    *gave = false;
    if (ask && ask(reason, text, needed)) return true;
    int64_t given = trigger_run(reason, text, needed);
    *gave = given > 0 && (uint64_t)given >= needed / 10;
    return given != -EBUSY;
}

static bool poll_pressure(uint64_t now_ns, ask_function *ask) {
    const char *text;
    bool gave;
    if (!pressure_wishes()->any || now_ns < watch.pressure_ns) return false;
    uint64_t needed = pressure_needed(&text);
    if (!needed) watch.wait_s = 0;
    if (!needed || !do_or_ask(MEMSTOW_PRESSURE, text, needed, ask, &gave)) return false;
    wait_after(now_ns, gave);
    return true;
}

static bool somebody_became_idle(uint64_t now_ns) {
    struct policy_question question = {.reason = MEMSTOW_IDLE,
                                       .can_stow = moving_can_stow,
                                       .can_in_use = moving_can_in_use,
                                       .now_ns = now_ns,
                                       .idle_ns = pressure_wishes()->idle_ns};
    uint32_t count;
    if (!trigger_list_owners(&watch.owners, &watch.owner_capacity, &count)) return false;
    for (uint32_t i = 0; i < count; i++)
        if (policy_became_idle(&watch.owners[i], &question, watch.idle_since_ns)) return true;
    return false;
}

/* Looks for idle owners, but rarely: the figures of all owners are sums over all threads and sites, which takes
 * milliseconds in a large program. True: a trigger was begun. */
static bool poll_idle(uint64_t now_ns, ask_function *ask) {
    uint64_t idle_ns = pressure_wishes()->idle_ns;
    bool gave;
    if (!idle_ns || now_ns < watch.idle_next_ns) return false;
    watch.idle_next_ns = now_ns + idle_ns / 10;
    if (!somebody_became_idle(now_ns)) return false;
    if (!do_or_ask(MEMSTOW_IDLE, "an owner was not used lately", 0, ask, &gave)) return false;
    watch.idle_since_ns = now_ns;
    return true;
}

uint32_t watch_poll(uint64_t now_ns, ask_function *ask) {
    if (seal_is_set()) return 0;
    if (poll_pressure(now_ns, ask)) return MEMSTOW_PRESSURE;
    return poll_idle(now_ns, ask) ? MEMSTOW_IDLE : 0;
}

void watch_abandon(void) { watch.pressure_ns = watch.wait_s = watch.idle_since_ns = watch.idle_next_ns = 0; }
FORKED(watch_abandon);
