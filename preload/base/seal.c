/* seal.c — see seal.h. */
#include "preload/base/seal.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "preload/shared/os.h"

enum { PAUSES = 1 << 17 };

/* The number of threads that are about to enter a sandbox. The kernel wipes the page in a forked child, because those
 * threads are the parent's. */
static struct {
    uint32_t entering;
    char pad[OS_PAGE - sizeof(uint32_t)];
} page __attribute__((aligned(OS_PAGE)));
static bool sealed;

void seal_watch_forks(void) { os_call(SYS_madvise, &page, sizeof page, MADV_WIPEONFORK); }

void seal_enter(void) { __atomic_fetch_add(&page.entering, 1, __ATOMIC_SEQ_CST); }

/* If a signal handler forked between seal_enter and here, the count is 0 in the child, and stays 0. */
void seal_leave(bool inside) {
    uint32_t seen = __atomic_load_n(&page.entering, __ATOMIC_RELAXED);
    if (inside) __atomic_store_n(&sealed, true, __ATOMIC_SEQ_CST);
    while (seen &&
           !__atomic_compare_exchange_n(&page.entering, &seen, seen - 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        ;
}

bool seal_is_for_good(void) { return __atomic_load_n(&sealed, __ATOMIC_RELAXED); }

bool seal_is_set(void) { return seal_is_for_good() || __atomic_load_n(&page.entering, __ATOMIC_RELAXED); }

bool seal_settles(void) {
    for (int i = 0; i < PAUSES && !seal_is_for_good(); i++) {
        if (!seal_is_set()) return true;
        __builtin_ia32_pause();
    }
    return false;
}
