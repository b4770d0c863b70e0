/* budget.c — see budget.h. */
#include "preload/ledger/budget.h"
#include "preload/base/forked.h"

uint32_t budget_wanted, budget_pays = 1;
uint64_t budget_wants, budget_wants_until, budget_losses_until = 1;
uint64_t budget_run_sites, budget_run_sites_until = BUDGET_RUN_SITES;
uint32_t budget_reserve;

static void nothing_to_give(uintptr_t slot) { (void)slot; }
void (*budget_relieve)(uintptr_t slot) = nothing_to_give;

static uint64_t limit; /* how many bytes stacks, sites and counters may take */
static struct budget_use (*use_now)(void);
/* looks: how often budget_is_full was called. full: a bit for each step (enum budget) that was reached when the memory
 * in use was last summed up. */
static uint32_t looks, full;

static uint64_t used_of(const struct budget_use *use) {
    uint64_t by_ids = limit / BUDGET_IDS * use->ids;
    return by_ids > use->bytes ? by_ids : use->bytes;
}

/* The steps that are reached, as bits. BUDGET_FRAMES is not reached while frames have less than a sixteenth of the
 * limit: memory of frames never becomes free again, so they always get this share. */
static uint32_t full_for(void) {
    struct budget_use use = use_now();
    uint64_t share = limit / 32, used = used_of(&use);
    bool soon = used >= (os_load32(&budget_pays) ? limit / 2 : limit - 5 * share);
    return (uint32_t)soon << BUDGET_SOON | (uint32_t)(used >= limit - 3 * share) << BUDGET_STACKS |
           (uint32_t)(used >= limit - 2 * share) << BUDGET_ENDS |
           (uint32_t)(used >= limit && use.of_frames >= 2 * share) << BUDGET_FRAMES;
}

/* The memory in use is summed up only in one of 32 calls. In between, some KiB more may be taken. */
bool budget_is_full(enum budget of) {
    enum { LOOKS = 32 };
    uint32_t n = __atomic_load_n(&looks, __ATOMIC_RELAXED);
    __atomic_store_n(&looks, n + 1, __ATOMIC_RELAXED);
    if (n % LOOKS == 0) __atomic_store_n(&full, full_for(), __ATOMIC_RELAXED);
    return __atomic_load_n(&full, __ATOMIC_RELAXED) >> of & 1;
}

bool budget_has(uint64_t bytes) { return use_now().bytes + bytes < limit - limit / 8; }

void budget_begin(uint64_t bytes, struct budget_use (*use)(void)) {
    limit = bytes;
    use_now = use;
}

static void budget_abandon(void) {
    looks = full = 0;
    budget_wanted = 0;
    budget_pays = 1;
    budget_run_sites = 0;
    budget_run_sites_until = BUDGET_RUN_SITES;
    budget_wants = budget_wants_until = budget_reserve = 0;
    budget_losses_until = 1;
}
FORKED(budget_abandon);
