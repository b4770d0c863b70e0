/* stack.h — from the caller of a hook (a function that the program calls in place of libc's) to the site (an id) of the
 * whole call stack.
 * In: the state at the entry of a hook. Out: the id of (tag, stack). Finding a stack that was seen before takes no
 * lock, and makes a system call only to learn how far the stack reaches, or to get memory for a cache. docs/stacks.md
 * explains the method, and why it is exact. */
#ifndef MEMSTOW_STACK_H
#define MEMSTOW_STACK_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Where a hook was called from: the return address, its slot (the word on the stack that holds it), and rbp. The
 * library is compiled with -ffixed-rbp, so in all of the library's code rbp is the caller's. */
struct caller {
    uintptr_t slot, address, rbp;
};

static inline __attribute__((always_inline)) uintptr_t stack_rbp(void) {
    uintptr_t rbp;
    __asm__ volatile("movq %%rbp, %0" : "=r"(rbp));
    return rbp;
}

/* The caller of the hook. Use this macro only in the hook itself, because it describes the caller of the function that
 * contains it. */
#define CALLER                                                                                                         \
    ((struct caller){(uintptr_t)__builtin_dwarf_cfa() - 8, (uintptr_t)__builtin_return_address(0), stack_rbp()})

/* The slot of the hook's caller, without the rest of CALLER. Use this macro, too, only in the hook itself. stack_caller
 * makes a struct caller from the slot; call it before the hook returns. */
#define CALLER_SLOT ((uintptr_t)__builtin_dwarf_cfa() - 8)

static inline uintptr_t stack_address(uintptr_t slot) { return *(const uintptr_t *)slot; }

static inline __attribute__((always_inline)) struct caller stack_caller(uintptr_t slot) {
    return (struct caller){slot, stack_address(slot), stack_rbp()};
}

/* The site of the caller's stack. If some frames cannot be found, the outer end of the stack is missing and counted as
 * lost. */
uint32_t stack_site(uintptr_t slot, uintptr_t address, uintptr_t rbp);

/* The site of a call at `address` whose callers are not known. */
uint32_t stack_site_of_address(uintptr_t address);

/* Whether the caller is in a signal handler that interrupted this thread's look-up of a stack. */
bool stack_is_interrupted(void);

/* Whether the calling thread's hook with slot `inner` was left by longjmp. `slot`: the slot of the hook that asks. */
bool stack_has_left(uintptr_t inner, uintptr_t slot);
/* As stack_has_left, for a hook whose caller is known. If the stack has grown beyond the slot of `inner`, this function
 * compares the word in that slot with the hook's return address. If they differ, later calls have overwritten the word,
 * so the hook was left. */
bool stack_has_left_call(const struct caller *inner, uintptr_t slot);

/* Whether the calling thread is on an alternate signal stack. Addresses do not tell this, because such a stack may lie
 * in an outer frame of the thread's own stack. Also true if this cannot be found out, for example in a sandbox. */
bool stack_is_alternate(void);

/* The number of unmappings. Call stack_note_unmapping after memory was unmapped or made inaccessible: the memory may
 * have been next to a stack. */
extern uint32_t stack_unmappings;
static inline void stack_note_unmapping(void) { __atomic_fetch_add(&stack_unmappings, 1, __ATOMIC_RELEASE); }

struct stack;
/* Tells stack.c where to find the pointer to the calling thread's struct stack. `memory`: the address of this pointer,
 * in the thread's entry of the table of threads (thread_inside.h); NULL: the thread has no entry any more. Call the
 * function when the thread has just got an entry, before the thread asks for a site. If the pointer still leads to the
 * struct of an earlier thread, this struct is used again. */
void stack_use(struct stack **memory);

/* A function of site.c, which sets this pointer. It returns the site of an untagged stack (tree.h) whose innermost call
 * is at `address`. */
extern uint32_t (*stack_site_of)(uint32_t stack, uintptr_t address);

/* Call them before and after a dlclose: both make what threads remember about code and stacks invalid. */
void stack_unload_begins(void);
void stack_unload_ends(void);

#pragma GCC visibility pop

#endif
