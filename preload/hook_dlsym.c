/* hook_dlsym.c — dlsym and dlvsym: who asks for an entry point of CUDA by name gets our hook.
 * In: every look-up of the program. Out: the real function, reached by a jump, for all names but those in cuda_table.h.
 *
 * The real dlsym looks at its return address: RTLD_NEXT is "after the caller", and a library in a namespace sees that
 * one only. A call from here would be ours: an interposer of somebody else's that asks for RTLD_NEXT would find itself.
 * Hence a jump, in assembly; what costs more than two comparisons happens only for names that begin with "cu". */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <string.h>

#include "cuda_route.h"
#include "cuda_scope.h"
#include "os.h"
#include "symbol.h"

typedef void *lookup(void *, const char *);
typedef void *versioned_lookup(void *, const char *, const char *);

/* Found by the first caller. */
__attribute__((used, visibility("hidden"))) lookup *hook_next_dlsym;
__attribute__((used, visibility("hidden"))) versioned_lookup *hook_next_dlvsym;
__attribute__((visibility("hidden"))) void hook_find_dlsym(void);

/* In two registers: the answer, and whether it is one, or the real function is to be jumped to. */
struct answer {
    void *at;
    uint64_t final;
};
__attribute__((visibility("hidden"))) struct answer hook_answer_dlsym(void *handle, const char *name,
                                                                      const char *version, uintptr_t caller);

static void *nothing(void *handle, const char *name) {
    (void)handle, (void)name;
    return NULL;
}

static void *no_version(void *handle, const char *name, const char *version) {
    (void)version;
    return nothing(handle, name);
}

static void find_nothing(void) {
    __atomic_store_n(&hook_next_dlvsym, no_version, __ATOMIC_RELEASE);
    __atomic_store_n(&hook_next_dlsym, nothing, __ATOMIC_RELEASE);
}

/* libc's own dlvsym finds whatever comes next behind us: libc's dlsym, or that of another library that wraps it. Before
 * glibc 2.34 they were another library's, and had another version. */
void hook_find_dlsym(void) {
    struct dl_find_object libc;
    if (_dl_find_object((void *)gnu_get_libc_version, &libc)) return find_nothing(); /* but we run in it */
    versioned_lookup *own = (versioned_lookup *)symbol_find(libc.dlfo_link_map, "dlvsym", NULL);
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5"};
    lookup *next = NULL;
    versioned_lookup *next_versioned = NULL;
    for (int i = 0; i < 2 && !next; i++) next = (lookup *)own(RTLD_NEXT, "dlsym", versions[i]);
    for (int i = 0; i < 2 && !next_versioned; i++)
        next_versioned = (versioned_lookup *)own(RTLD_NEXT, "dlvsym", versions[i]);
    __atomic_store_n(&hook_next_dlvsym, next_versioned ? next_versioned : own, __ATOMIC_RELEASE);
    __atomic_store_n(&hook_next_dlsym, next ? next : (lookup *)symbol_find(libc.dlfo_link_map, "dlsym", NULL),
                     __ATOMIC_RELEASE);
}

static void *look_up(void *handle, const char *name, const char *version) {
    return version ? hook_next_dlvsym(handle, name, version) : hook_next_dlsym(handle, name);
}

/* The search found us, who are there in every process. What would it have found: what comes behind us, and if that is
 * nothing, a library that was loaded with the caller, and that others need not see. dlerror says what dlsym says. */
static void *found_without_us(void *handle, const char *name, const char *version, uintptr_t caller) {
    void *seen = look_up(RTLD_NEXT, name, version);
    void *linked = !seen && handle == RTLD_DEFAULT ? cuda_scope_linked(name, caller) : NULL;
    if (linked) dlerror();
    return seen ? seen : linked;
}

static struct answer instead_of_ours(int entry, void *handle, const char *name, const char *version, uintptr_t caller,
                                     void *ours) {
    void *real = found_without_us(handle, name, version, caller);
    if (!real || cuda_route_is_exempt(caller)) return (struct answer){real, 1};
    bool same = cuda_route_real((enum cuda_entry_id)entry, 0, caller) == real;
    return (struct answer){same ? ours : cuda_route_hook((enum cuda_entry_id)entry, real), 1};
}

struct answer hook_answer_dlsym(void *handle, const char *name, const char *version, uintptr_t caller) {
    int entry = handle == RTLD_NEXT ? -1 : cuda_route_named(name);
    if (entry < 0) return (struct answer){0};
    if (!hook_next_dlsym) hook_find_dlsym();
    void *found = look_up(handle, name, version);
    if (!found) return (struct answer){NULL, 1};
    if (cuda_route_is_hook(found)) return instead_of_ours(entry, handle, name, version, caller, found);
    if (cuda_route_is_exempt(caller)) return (struct answer){found, 1};
    return (struct answer){cuda_route_hook((enum cuda_entry_id)entry, found), 1};
}

/* The stack is a multiple of 16 at each call: the return address and three words. */
#define THUNK(name, next, take_version)                                                                                \
    __asm__(".pushsection .text\n"                                                                                     \
            ".globl " #name "\n"                                                                                       \
            ".type " #name ", @function\n" #name ":\n"                                                                 \
            "    .cfi_startproc\n"                                                                                     \
            "    testq %rsi, %rsi\n"                                                                                   \
            "    je 1f\n"                                                                                              \
            "    cmpb $99, (%rsi)\n" /* c */                                                                           \
            "    jne 1f\n"                                                                                             \
            "    cmpb $117, 1(%rsi)\n" /* u */                                                                         \
            "    je 3f\n"                                                                                              \
            "1:  movq " #next "(%rip), %rax\n"                                                                         \
            "    testq %rax, %rax\n"                                                                                   \
            "    je 2f\n"                                                                                              \
            "    jmpq *%rax\n"                                                                                         \
            "2:  pushq %rdi\n"                                                                                         \
            "    .cfi_adjust_cfa_offset 8\n"                                                                           \
            "    pushq %rsi\n"                                                                                         \
            "    .cfi_adjust_cfa_offset 8\n"                                                                           \
            "    pushq %rdx\n"                                                                                         \
            "    .cfi_adjust_cfa_offset 8\n"                                                                           \
            "    call hook_find_dlsym\n"                                                                               \
            "    popq %rdx\n"                                                                                          \
            "    .cfi_adjust_cfa_offset -8\n"                                                                          \
            "    popq %rsi\n"                                                                                          \
            "    .cfi_adjust_cfa_offset -8\n"                                                                          \
            "    popq %rdi\n"                                                                                          \
            "    .cfi_adjust_cfa_offset -8\n"                                                                          \
            "    jmpq *" #next "(%rip)\n"                                                                              \
            "3:  pushq %rdi\n"                                                                                         \
            "    .cfi_adjust_cfa_offset 8\n"                                                                           \
            "    pushq %rsi\n"                                                                                         \
            "    .cfi_adjust_cfa_offset 8\n"                                                                           \
            "    pushq %rdx\n"                                                                                         \
            "    .cfi_adjust_cfa_offset 8\n" take_version "    movq 24(%rsp), %rcx\n" /* the return address */         \
            "    call hook_answer_dlsym\n"                                                                             \
            "    movq %rdx, %rcx\n"                                                                                    \
            "    popq %rdx\n"                                                                                          \
            "    .cfi_adjust_cfa_offset -8\n"                                                                          \
            "    popq %rsi\n"                                                                                          \
            "    .cfi_adjust_cfa_offset -8\n"                                                                          \
            "    popq %rdi\n"                                                                                          \
            "    .cfi_adjust_cfa_offset -8\n"                                                                          \
            "    testq %rcx, %rcx\n"                                                                                   \
            "    je 1b\n"                                                                                              \
            "    ret\n"                                                                                                \
            "    .cfi_endproc\n"                                                                                       \
            ".size " #name ", .-" #name "\n"                                                                           \
            ".popsection\n");
THUNK(dlsym, hook_next_dlsym, "    xorl %edx, %edx\n")
THUNK(dlvsym, hook_next_dlvsym, "")
