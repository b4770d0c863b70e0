/* coroutine.h — coroutines as libraries implement them: a switch pushes registers and exchanges stack pointers. */
#ifndef COROUTINE_H
#define COROUTINE_H

#include <stddef.h>
#include <stdint.h>

/* Leaves the present stack for the stack at `go_there`. Stores the present stack pointer at `save_here`. */
void exchange(void **save_here, void *go_there) __asm__("exchange");
__asm__(
    ".text\n.globl exchange\n.type exchange,@function\n"
    "exchange: .cfi_startproc\n"
    "pushq %rbp\n.cfi_adjust_cfa_offset 8\npushq %rbx\n.cfi_adjust_cfa_offset 8\npushq %r12\n.cfi_adjust_cfa_offset 8\n"
    "pushq %r13\n.cfi_adjust_cfa_offset 8\npushq %r14\n.cfi_adjust_cfa_offset 8\npushq %r15\n.cfi_adjust_cfa_offset 8\n"
    ".cfi_offset %rbp, -16\n"
    "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
    "popq %r15\n.cfi_adjust_cfa_offset -8\npopq %r14\n.cfi_adjust_cfa_offset -8\npopq %r13\n.cfi_adjust_cfa_offset -8\n"
    "popq %r12\n.cfi_adjust_cfa_offset -8\npopq %rbx\n.cfi_adjust_cfa_offset -8\npopq %rbp\n.cfi_adjust_cfa_offset -8\n"
    ".cfi_restore %rbp\n"
    "ret\n.cfi_endproc\n.size exchange, . - exchange");

/* Returns a stack pointer for exchange(). After the switch, `code` begins to run with the stack pointer at `top`. */
static inline void *begin_at(void *top, void (*code)(void)) {
    uintptr_t *at = (uintptr_t *)top;
    *--at = (uintptr_t)code;
    return at - 6;
}

/* As begin_at, for a function. Its return address is 0. */
static inline void *begin_function(void *end, void (*function)(void)) {
    uintptr_t *top = (uintptr_t *)end;
    *--top = 0;
    return begin_at(top, function);
}

#endif
