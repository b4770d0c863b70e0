/* hook_entry.c — see hook_entry.h. */
#include "preload/hooks/hook_entry.h"

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/symbol.h"

static void hook_entry_look_up(const struct hook_entry *entry) {
    void *found = symbol_next(entry->name);
    __atomic_store_n(entry->next, found, __ATOMIC_RELAXED);
    /* if there is no next definition, the hook runs: it must expect HOOK_NEXT to be NULL */
    bool is_ours = !found || symbol_is_in_libc(found);
    __atomic_store_n(entry->route, is_ours ? entry->hook : found, __ATOMIC_RELEASE);
}

/* The bounds of the section, from the linker. */
__attribute__((visibility("hidden"))) extern const struct hook_entry __start_hook_entries[], __stop_hook_entries[];

/* Runs at the start, or at the first call if that comes earlier. */
__attribute__((used, visibility("hidden"))) void hook_look_up_entries(void);
__attribute__((constructor)) void hook_look_up_entries(void) {
    for (const struct hook_entry *entry = __start_hook_entries; entry < __stop_hook_entries; entry++)
        hook_entry_look_up(entry);
}

/* Keeps every register that can hold an argument of a function (rax: the number of vector registers; r10: a nested
 * function's frame). */
__asm__(".pushsection .text\n"
        ".hidden hook_look_up_first\n"
        ".globl hook_look_up_first\n"
        ".type hook_look_up_first, @function\n"
        "hook_look_up_first:\n"
        "    .cfi_startproc\n" /* the stack pointer is a multiple of 16 here and below */
        "    .irp word, rax, rdi, rsi, rdx, rcx, r8, r9, r10\n"
        "    pushq %\\word\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    .endr\n"
        "    subq $128, %rsp\n"
        "    .cfi_adjust_cfa_offset 128\n"
        "    .irp i, 0, 1, 2, 3, 4, 5, 6, 7\n"
        "    movaps %xmm\\i, 16*\\i(%rsp)\n"
        "    .endr\n"
        "    call hook_look_up_entries\n"
        "    .irp i, 0, 1, 2, 3, 4, 5, 6, 7\n"
        "    movaps 16*\\i(%rsp), %xmm\\i\n"
        "    .endr\n"
        "    addq $128, %rsp\n"
        "    .cfi_adjust_cfa_offset -128\n"
        "    .irp word, r10, r9, r8, rcx, rdx, rsi, rdi, rax\n"
        "    popq %\\word\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    .endr\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size hook_look_up_first, .-hook_look_up_first\n"
        ".popsection\n");
