/* stack.h — from the caller of a hook to the site of the whole stack of callers. In: the state at the entry of a hook.
 * Out: the id of (tag, stack). No lock; no system call but to learn how far a stack reaches. docs/stacks.md explains
 * the method and why it is exact. */
#ifndef MEMSTOW_STACK_H
#define MEMSTOW_STACK_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Where a hook was called from: the word of the stack that holds its return address, that address, and rbp. The library
 * is compiled with -ffixed-rbp, so that in all of it rbp is still the caller's. */
struct caller {
    uintptr_t slot, address, rbp;
};

static inline __attribute__((always_inline)) uintptr_t stack_rbp(void) {
    uintptr_t rbp;
    __asm__ volatile("movq %%rbp, %0" : "=r"(rbp));
    return rbp;
}

/* To be written in the hook itself: it is about the function that it is in. */
#define CALLER                                                                                                         \
    ((struct caller){(uintptr_t)__builtin_dwarf_cfa() - 8, (uintptr_t)__builtin_return_address(0), stack_rbp()})

/* The slot alone, to be written in the hook itself. Until the hook returns, the rest follows from it. */
#define CALLER_SLOT ((uintptr_t)__builtin_dwarf_cfa() - 8)

static inline uintptr_t stack_address(uintptr_t slot) { return *(const uintptr_t *)slot; }

static inline __attribute__((always_inline)) struct caller stack_caller(uintptr_t slot) {
    return (struct caller){slot, stack_address(slot), stack_rbp()};
}

/* The site of the caller's stack. Frames that cannot be found are left out at its outer end, and counted as lost. */
uint32_t stack_site(uintptr_t slot, uintptr_t address, uintptr_t rbp);

/* The same of a call whose callers are not known. */
uint32_t stack_site_of_place(uintptr_t address);

/* Whether the caller runs in a signal handler that interrupted this thread's search for a stack. */
bool stack_is_interrupted(void);

/* Whether the calling thread's hook whose slot was `inner` is gone for good, seen from one with `slot`. */
bool stack_has_left(uintptr_t inner, uintptr_t slot);
/* The same where it is known what called that hook: what was called deeper since has written over it. */
bool stack_has_left_call(const struct caller *inner, uintptr_t slot);

/* Whether the calling thread is on an alternate stack of signal handlers, which may lie in an outer frame. True also
 * where the kernel may not be asked. */
bool stack_is_alternate(void);

/* After memory was unmapped, or made inaccessible: it may have been next to a stack. */
extern uint32_t stack_unmappings;
static inline void stack_note_unmapping(void) { __atomic_fetch_add(&stack_unmappings, 1, __ATOMIC_RELEASE); }

/* Where a thread's memory of its stacks is kept: in its slot (account.h), which it gets before it asks for a site. The
 * calling thread has got one, and with it what a thread before it remembered; NULL: it has none any more. */
struct stack;
void stack_use(struct stack **memory);

/* The site of an untagged stack (tree.h) that ends with a call from `address`. site.c sets it. */
extern uint32_t (*stack_site_of)(uint32_t stack, uintptr_t address);

/* After a dlclose: what is remembered of code and of stacks is no longer good. */
void stack_forget_code(void);

#pragma GCC visibility pop

#endif
