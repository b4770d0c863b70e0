/* cuda_oom.c — see cuda_oom.h.
 *
 * PyTorch's native allocator frees its cache after a refusal, asks the driver for the same size again, and raises an
 * error only if that request is refused, too. Another program may probe how much memory it can get: it asks for less
 * each time, and a refusal is no error for it. So for memory outside of pools, memstow makes a snapshot when two
 * refusals in a row on a thread are of the same size. Programs do not ask a pool twice: the first refusal is an error
 * that the program sees. */
#include "preload/events/cuda_oom.h"

#include <string.h>

#include "preload/cuda/cuda_counts.h"
#include "preload/ledger/history.h"
#include "preload/ledger/ledger.h"
#include "preload/shared/os.h"
#include "preload/ledger/spawn.h"
#include "preload/base/forked.h"

enum { FILES_MOST = 8, PATH_SIZE = 4096 };
/* The least time between two snapshots: a snapshot takes a while, and refusals come in series. */
static const uint64_t APART_NS = 30000000000;

/* The size of this thread's newest request that was refused. */
static __thread uint64_t last_bytes __attribute__((tls_model("initial-exec")));
static uint64_t taken_ns; /* when the newest snapshot was begun; 0: never */
static uint32_t taken;    /* how many snapshots were begun */

static void cuda_oom_note(const struct cuda_target *target, enum snap_cuda_kind kind, uint64_t bytes) {
    struct snap_cuda *head = cuda_counts_head();
    os_store(&head->refused_bytes, bytes);
    os_store(&head->refused_live, (uint64_t)__atomic_load_n(&head->live, __ATOMIC_RELAXED));
    head->refused_device = target->device;
    head->refused_kind = kind;
    os_store(&head->refused_ns, os_now());
    __atomic_fetch_add(&head->refused, 1, __ATOMIC_RELAXED);
    history_mark(&(struct snap_mark){
        .kind = SNAP_MARK_OUT_OF_MEMORY, .detail = target->device, .bytes = bytes, .live = SNAP_MARK_UNKNOWN});
}

static bool is_error(enum snap_cuda_kind kind, uint64_t bytes) {
    bool again = last_bytes == bytes;
    last_bytes = bytes;
    return again || kind == SNAP_CUDA_POOL_MEMORY;
}

/* Whether a snapshot is due: fewer than FILES_MOST were begun, the previous one is old enough, and no other thread is
 * just beginning one. */
static bool is_due(void) {
    uint64_t now = os_now(), before = os_load(&taken_ns);
    if (os_load32(&taken) >= FILES_MOST || (before && now - before < APART_NS)) return false;
    return __atomic_compare_exchange_n(&taken_ns, &before, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void take_snapshot(void) {
    char path[PATH_SIZE];
    uint32_t number = __atomic_add_fetch(&taken, 1, __ATOMIC_RELAXED);
    const char *ledger = ledger_path();
    if (!ledger[0] || strlen(ledger) + 16 > sizeof path) return;
    strcpy(path, ledger);
    strcat(path, ".oom");
    strcpy(os_decimal(path + strlen(path), number), ".mst");
    if (spawn_snapshot(path) == 0) cuda_counts_head()->refused_files = number;
}

void cuda_oom_refused(const struct cuda_target *target, enum snap_cuda_kind kind, uint64_t bytes) {
    cuda_oom_note(target, kind, bytes);
    cuda_device_sample(target, true);
    if (is_error(kind, bytes) && !__atomic_load_n(&cuda_counts_head()->captures, __ATOMIC_RELAXED) && is_due())
        take_snapshot();
}

static void cuda_oom_abandon(void) {
    taken_ns = 0;
    taken = 0;
    last_bytes = 0;
}
FORKED(cuda_oom_abandon);
