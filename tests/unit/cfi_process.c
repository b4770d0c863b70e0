// The CFI reader on its own process: its rules find the same stacks as libgcc's unwinder, from the innermost function
// to the beginning of the thread.
#include <criterion/criterion.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "preload/stacks/cfi.h"

enum { DEPTH = 400 };

struct frame {
    uintptr_t pc, sp, bp;
    bool exact; /* pc is an instruction that was interrupted, not a return address */
};

/* Reads memory that an address sanitizer forbids: other functions' frames, and gaps between variables. */
__attribute__((noinline, no_sanitize_address)) static uintptr_t word(uintptr_t at) { return *(const uintptr_t *)at; }

static struct cfi_rule rule_for(const struct frame *frame) {
    struct cfi_object object;
    uintptr_t pc = frame->pc - !frame->exact;
    cr_assert(cfi_object_of(pc, &object), "nobody's address %zx", (size_t)pc);
    return cfi_find(&object, pc);
}

/* Goes to the caller's frame. False: there is none. */
static bool step(struct frame *frame) {
    struct cfi_rule rule = rule_for(frame);
    uintptr_t cfa = 0, sp = frame->sp, bp = frame->bp;
    switch (rule.kind) {
    case CFI_SP:
        cfa = sp + (uintptr_t)rule.cfa;
        break;
    case CFI_BP:
        cfa = bp + (uintptr_t)rule.cfa;
        break;
    case CFI_BP_DEREF:
        cfa = word(bp + (uintptr_t)rule.cfa);
        break;
    case CFI_SIGNAL:
        *frame = (struct frame){word(sp + CFI_SIGNAL_PC), word(sp + CFI_SIGNAL_SP), word(sp + CFI_SIGNAL_BP), true};
        return true;
    case CFI_END:
        return false;
    default:
        cr_assert(false, "no rule for %zx: %d", (size_t)frame->pc, rule.why);
    }
    cr_assert_gt(cfa, sp);
    if (rule.bp != CFI_SAME) frame->bp = word((rule.bp_at_bp ? bp : cfa) + (uintptr_t)rule.bp);
    *frame = (struct frame){word(cfa - 8), cfa, frame->bp, false};
    return true;
}

static size_t stacks, kinds[CFI_END + 1];

/* Walks from here by rules, and compares the return addresses with backtrace's. */
__attribute__((noinline)) static void expect_same_stack(void) {
    void *expected[DEPTH];
    struct frame frame;
    int count = backtrace(expected, DEPTH), depth = 1;
    cr_assert(count > 2 && count < DEPTH);
    __asm__ volatile("leaq 0(%%rip), %0; movq %%rsp, %1; movq %%rbp, %2"
                     : "=r"(frame.pc), "=r"(frame.sp), "=r"(frame.bp));
    frame.exact = true;
    kinds[rule_for(&frame).kind]++;
    cr_assert(step(&frame));
    while (depth < count && (uintptr_t)expected[depth] != frame.pc) /* frames of a sanitizer may come first */
        depth++;
    cr_assert_leq(depth, 2);
    do {
        cr_assert_lt(depth, count, "deeper than %d", count);
        cr_assert_eq(frame.pc, (uintptr_t)expected[depth], "frame %d of %d", depth, count);
        kinds[rule_for(&frame).kind]++;
        depth++;
    } while (step(&frame));
    cr_assert_eq(depth, count);
    stacks++;
}

static int compare(const void *left, const void *right) {
    expect_same_stack();
    return *(const int *)left - *(const int *)right;
}

Test(cfi_process, through_libc) {
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof *numbers, compare);
    cr_assert_eq(numbers[0], 1);
    cr_assert_geq(stacks, 2);
}

__attribute__((noinline)) static void with_alloca(size_t size, int depth) {
    volatile char *room = __builtin_alloca(size);
    room[0] = 1;
    expect_same_stack();
    if (depth) with_alloca(size * 2 + 3, depth - 1);
    room[0] = 2;
}

Test(cfi_process, frames_of_any_size) {
    with_alloca(1, 8);
    cr_assert_eq(stacks, 9);
    cr_assert_gt(kinds[CFI_BP], 8);
}

__attribute__((noinline)) static void realigned(size_t size) {
    volatile char room[256] __attribute__((aligned(256)));
    volatile char *more = __builtin_alloca(size); /* so that GCC keeps the argument's address in memory */
    room[0] = more[0] = 1;
    expect_same_stack();
    more[0] = room[0];
}

Test(cfi_process, realigned_frames) {
    realigned(100);
    cr_assert_eq(stacks, 1);
#if defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    cr_assert_geq(kinds[CFI_BP_DEREF], 1);
#endif
}

static void on_signal(int number) {
    (void)number;
    expect_same_stack();
}

static void *handle_on_thread(void *unused) {
    (void)unused;
    raise(SIGUSR1);
    expect_same_stack();
    return NULL;
}

static void catch_signal(void) {
    void *first[1];
    backtrace(first, 1); /* the first call loads libgcc, which a handler may not do */
    signal(SIGUSR1, on_signal);
}

Test(cfi_process, signals, .init = catch_signal) {
    raise(SIGUSR1);
    cr_assert_eq(stacks, 1);
    cr_assert_eq(kinds[CFI_SIGNAL], 1);
    cr_assert_eq(kinds[CFI_END], 1);
}

Test(cfi_process, threads, .init = catch_signal) {
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, handle_on_thread, NULL), 0);
    pthread_join(thread, NULL);
    cr_assert_eq(stacks, 2);
    cr_assert_eq(kinds[CFI_END], 2);
}

static int objects;

/* For an address in each segment, cfi_object_of agrees with the program headers. */
static int check_object(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    uintptr_t header = 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) header = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        struct cfi_object object;
        if (segment->p_type != PT_LOAD) continue;
        cr_assert(cfi_object_of(info->dlpi_addr + segment->p_vaddr, &object), "%s", info->dlpi_name);
        cr_assert_eq(object.header, header, "%s", info->dlpi_name);
        cr_assert(!header || (object.start <= header && header < object.end), "%s", info->dlpi_name);
        for (uintptr_t at = object.start; at < object.end; at += 4096)
            word(at & ~(uintptr_t)7); /* all of it can be read */
    }
    objects++;
    return 0;
}

Test(cfi_process, objects) {
    dl_iterate_phdr(check_object, NULL);
    cr_assert_geq(objects, 3);
}

Test(cfi_process, the_kernels_object) {
    uintptr_t start = getauxval(AT_SYSINFO_EHDR);
    struct cfi_object object;
    if (!start) return;
    cr_assert(cfi_object_of(start + 64, &object));
    cr_assert(object.start == start && object.header > start && object.header < object.end);
    int known = 0;
    for (uintptr_t pc = start; pc < object.end; pc++) known += cfi_find(&object, pc).kind == CFI_SP;
    cr_assert_gt(known, 0);
}

Test(cfi_process, nobodys_addresses) {
    struct cfi_object object;
    int local;
    void *block = malloc(1);
    cr_assert_not(cfi_object_of((uintptr_t)&local, &object));
    cr_assert_not(cfi_object_of((uintptr_t)block, &object));
    cr_assert_not(cfi_object_of(0, &object));
    cr_assert_not(cfi_object_of(UINTPTR_MAX, &object));
    cr_assert_eq(cfi_find(&object, 0).why, CFI_NO_TABLE);
    free(block);
}

Test(cfi_process, errno_is_kept) {
    struct cfi_object object;
    errno = 12345;
    cfi_object_of((uintptr_t)&objects, &object);
    cfi_find(&object, (uintptr_t)&objects);
    cfi_object_of(1, &object);
    cr_assert_eq(errno, 12345);
}
