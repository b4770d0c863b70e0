/* view.c — see view.h. */
#include "preload/stacks/view.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "preload/ledger/ledger.h"
#include "preload/base/seal.h"

enum {
    LARGEST_STACK = 64 << 20,
    FURTHER = 1 << 20, /* how far beyond the known part of another stack a word may lie */
    PAGES_AT_ONCE = 64,
    FEW_PAGES = 8,
};

extern void *__libc_stack_end;

/* Counts how many of the pages can be read, from the first one on. It asks the kernel in one of two ways:
 * - process_vm_readv copies a byte of each page, in one call. The kernel may refuse this (in an old container).
 * - rt_sigprocmask, with an invalid first argument, reads a signal set in one page. If the page can be read, the
 *   call fails with EINVAL. It changes nothing. Each page takes one call.
 * The second way is used for few pages, and when the kernel refuses the first way. Under Valgrind the first way is
 * tried for few pages, too, because Valgrind would report the signal set as an error of the program. */
static unsigned long view_readable(uintptr_t page, unsigned long count) {
    char bytes[PAGES_AT_ONCE];
    struct iovec local = {bytes, sizeof bytes}, remote[PAGES_AT_ONCE];
    if (count > FEW_PAGES || os_is_under_valgrind()) {
        for (unsigned long i = 0; i < count; i++) remote[i] = (struct iovec){(void *)(page + i * OS_PAGE), 1};
        long copied = os_call(SYS_process_vm_readv, os_pid(), &local, 1, remote, count, 0);
        if (copied != -EPERM && copied != -ENOSYS) return copied > 0 ? (unsigned long)copied : 0;
    }
    unsigned long good = 0;
    while (good < count && os_call(SYS_rt_sigprocmask, -1, page + good * OS_PAGE, 0, 8) == -EINVAL) good++;
    return good;
}

/* Asks the kernel whether the pages from `low` to *high can be read. If not all can, sets *high to the start of the
 * first page that cannot. */
static void ask_for_pages(uintptr_t low, uintptr_t *high) {
    for (uintptr_t page = low; page < *high;) {
        unsigned long left = (*high - page + OS_PAGE - 1) / OS_PAGE,
                      count = left < PAGES_AT_ONCE ? left : PAGES_AT_ONCE;
        unsigned long good = view_readable(page, count);
        page += good * OS_PAGE;
        if (good < count) *high = page;
    }
}

static uintptr_t main_thread; /* the thread pointer of the main thread */

__attribute__((constructor)) static void note_main_thread(void) { main_thread = os_thread(); }

/* The end of the thread's own stack; 0: the slot does not seem to be on it. The main thread's stack ends where the
 * program began. Another thread's stack ends at its thread control block, which glibc puts at the upper end. */
static uintptr_t own_end(uintptr_t slot) {
    uintptr_t tcb = os_thread(), end = (uintptr_t)__libc_stack_end;
    if (slot <= end && end - slot < LARGEST_STACK) return end + sizeof(uint64_t);
    return tcb != main_thread && slot < tcb && tcb - slot < LARGEST_STACK ? tcb : 0;
}

bool view_own_stack(struct own_stack *self, uintptr_t slot) {
    uintptr_t end = slot < self->known.low && self->known.low - slot < LARGEST_STACK ? self->known.low : own_end(slot);
    uintptr_t low = slot & ~(uintptr_t)(OS_PAGE - 1), reached = end;
    if (!end || slot >= end || seal_is_set()) return false;
    if (slot < self->hole && self->hole < end && !view_readable(self->hole, 1)) return false;
    ask_for_pages(low, &reached);
    if (reached < end) {
        self->hole = reached;
        return false;
    }
    if (end != self->known.low) self->known.high = end;
    self->known.low = low;
    return true;
}

void view_look_up_to(struct view *view, uintptr_t end) {
    uintptr_t high = os_round_up(end, OS_PAGE);
    if (high <= view->high || seal_is_set()) return;
    ask_for_pages(view->high, &high);
    view->high = high;
}

/* The kernel is asked about so many pages at once that the part known to be readable at least doubles. So the kernel is
 * asked rarely. */
bool view_reaches(struct view *view, uintptr_t address) {
    if (view->own || address - view->high >= FURTHER || address - view->low >= LARGEST_STACK) return false;
    uintptr_t end = address + sizeof(uint64_t), twice = 2 * view->high - view->low;
    view_look_up_to(view, end > twice ? end : twice);
    return address < view->high;
}
