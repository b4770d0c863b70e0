/* vram_dying.c — see vram_dying.h. */
#include "preload/vram/vram_dying.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "preload/base/forked.h"
#include "preload/base/seal.h"
#include "preload/shared/os.h"

enum { DYING_MOST = 16, STACK_MOST = 64 << 20 };

static struct dying {
    cuda_handle context;
    const uintptr_t *mark;
    struct {
        uintptr_t begin, size;
    } handlers; /* the thread's stack for signal handlers, if it has one */
    uint32_t thread;
    bool begun;
} all[DYING_MOST];
static uint32_t count; /* vram_dying_maybe reads it without the lock */

static void vram_dying_set_count(uint32_t now) { __atomic_store_n(&count, now, __ATOMIC_RELAXED); }

/* The word that a mark holds. No program writes this word to its stack. So as long as the word is there, the mark was
 * not overwritten. The context's handle would not do, because a later call could write the same handle to the same
 * place. */
static uintptr_t value_of(const uintptr_t *mark) { return (uintptr_t)mark ^ 0xd1e5c0da7e57a11c; }

bool vram_dying_comes(cuda_handle context, uintptr_t *mark) {
    if (count == DYING_MOST) return false;
    stack_t handlers = {0};
    if (!seal_is_set()) os_call(SYS_sigaltstack, NULL, &handlers);
    *mark = value_of(mark);
    all[count] = (struct dying){.context = context,
                                .mark = mark,
                                .handlers = {(uintptr_t)handlers.ss_sp, handlers.ss_size},
                                .thread = os_tid()};
    vram_dying_set_count(count + 1);
    return true;
}

static void vram_dying_forget(struct dying *self) {
    *self = all[count - 1];
    vram_dying_set_count(count - 1);
}

/* The call with this mark, which this thread made. NULL: it is not in the list, for example in a child that was forked
 * during the call. */
static struct dying *vram_dying_find(const uintptr_t *mark) {
    uint32_t thread = os_tid();
    for (uint32_t i = 0; i < count; i++)
        if (all[i].mark == mark && all[i].thread == thread) return &all[i];
    return NULL;
}

void vram_dying_begins(const uintptr_t *mark) {
    struct dying *self = vram_dying_find(mark);
    if (self) self->begun = true;
}

void vram_dying_over(const uintptr_t *mark) {
    struct dying *self = vram_dying_find(mark);
    if (self) vram_dying_forget(self);
}

bool vram_dying_has(cuda_handle context) {
    for (uint32_t i = 0; i < count; i++)
        if (all[i].context == context && all[i].begun) return true;
    return false;
}

/* The stack pointer of a thread, from its line in /proc/self/task/…/syscall: the word before the last one. 0: the
 * thread runs. */
static uintptr_t parse_stack_pointer(const char *line) {
    uintptr_t words[2] = {0, 0};
    while ((line = strstr(line, " 0x"))) {
        line += 3;
        words[0] = words[1], words[1] = os_take_hexadecimal(&line);
    }
    return words[0];
}

/* The stack pointer of another thread. 0: it is not known, because the thread runs at the moment, or because the kernel
 * does not say. */
static uintptr_t stack_pointer_of(uint32_t thread) {
    static const char before[] = "/proc/self/task/", after[] = "/syscall";
    char path[sizeof before + 10 + sizeof after], line[256];
    if (seal_is_set()) return 0;
    memcpy(path, before, sizeof before - 1);
    memcpy(os_decimal(path + sizeof before - 1, thread), after, sizeof after);
    int fd = os_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return 0;
    long got = os_call(SYS_read, fd, line, sizeof line - 1);
    os_close(fd);
    if (got <= 0) return 0;
    line[got] = 0;
    return parse_stack_pointer(line);
}

static bool vram_dying_is_gone(uint32_t thread) {
    return !seal_is_set() && os_call(SYS_tgkill, os_call(SYS_getpid), thread, 0) == -ESRCH;
}

static bool is_of_handlers(const struct dying *self, uintptr_t at) {
    return at - self->handlers.begin <= self->handlers.size;
}

/* Whether a stack pointer or frame is above the mark, on the same stack. The stack grows down, so a thread whose stack
 * pointer is above the mark has left the call. False for addresses that are on another stack: those far above the mark,
 * and those on the stack of a signal handler that may have interrupted the call. */
static bool is_above(uintptr_t at, const struct dying *self) {
    uintptr_t mark = (uintptr_t)self->mark;
    if (is_of_handlers(self, at) && !is_of_handlers(self, mark)) return false;
    return at > mark && at - mark < STACK_MOST;
}

/* Whether later calls of the thread have written over the mark, or the thread's stack is gone. */
static bool is_overwritten(const struct dying *self) {
    uintptr_t now = 0;
    if (seal_is_set()) return false;
    return os_peek(&now, (const void *)self->mark, sizeof now) ? now != value_of(self->mark) : os_can_peek();
}

static bool was_left(const struct dying *self) {
    if (self->thread == os_tid() && is_above((uintptr_t)__builtin_frame_address(0), self)) return true;
    if (self->thread != os_tid() && vram_dying_is_gone(self->thread)) return true;
    if (self->thread != os_tid() && is_above(stack_pointer_of(self->thread), self)) return true;
    return is_overwritten(self);
}

bool vram_dying_any(void) {
    for (uint32_t i = count; i--;)
        if (was_left(&all[i])) vram_dying_forget(&all[i]);
    return count;
}

bool vram_dying_maybe(void) { return os_load32(&count); }

void vram_dying_left(uintptr_t frame) {
    uint32_t thread = os_tid();
    for (uint32_t i = count; i--;)
        if (all[i].thread == thread && is_above(frame, &all[i])) vram_dying_forget(&all[i]);
}

bool vram_dying_is_mine(void) {
    uint32_t thread = os_tid();
    for (uint32_t i = 0; i < count; i++)
        if (all[i].thread == thread) return true;
    return false;
}

static void vram_dying_abandon(void) { count = 0; }
FORKED(vram_dying_abandon);
