/* hook_dlsym.c — dlsym and dlvsym: a program that asks for an entry point of CUDA by name gets our hook.
 * In: every look-up of the program. Out: our hook, if the name is in cuda_table.h and the caller is not exempt
 * (cuda_route.h); for nearly all other names, a jump to the real function.
 *
 * The real dlsym looks at its return address: RTLD_NEXT means "after the caller", and a library in a namespace sees
 * only that namespace. If a hook called the real dlsym, the return address would be in this library, and an interposer
 * that asks for RTLD_NEXT would find itself. So the hook jumps to the real dlsym, in assembly. Names that do not begin
 * with "cu" cost two comparisons. */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "preload/events/cuda_events.h"
#include "preload/life/process.h"
#include "preload/cuda/cuda_route.h"
#include "preload/cuda/cuda_scope.h"
#include "preload/shared/os.h"
#include "preload/base/symbol.h"

typedef void *lookup(void *, const char *);
typedef void *versioned_lookup(void *, const char *, const char *);

/* The addresses of the real functions. The first call looks them up. */
__attribute__((used, visibility("hidden"))) lookup *hook_next_dlsym;
__attribute__((used, visibility("hidden"))) versioned_lookup *hook_next_dlvsym;
__attribute__((visibility("hidden"))) void hook_find_dlsym(void);

/* The answer to a look-up, returned in two registers. If it is not final, the assembly jumps to the real function. */
struct answer {
    void *at;
    uint64_t final;
};
__attribute__((visibility("hidden"))) struct answer hook_answer_dlsym(void *handle, const char *name,
                                                                      const char *version, uintptr_t caller);

/* Finds libc's functions, or those of a library that wraps them, as the overlays of game launchers do. */
void hook_find_dlsym(void) {
    __atomic_store_n(&hook_next_dlvsym, (versioned_lookup *)symbol_next("dlvsym"), __ATOMIC_RELEASE);
    __atomic_store_n(&hook_next_dlsym, (lookup *)symbol_next("dlsym"), __ATOMIC_RELEASE);
}

static void *hook_dlsym_look_up(void *handle, const char *name, const char *version) {
    return version ? hook_next_dlvsym(handle, name, version) : hook_next_dlsym(handle, name);
}

/* The search found our hook, because this library is in every process. Returns the definition that the search would
 * have found without this library: the definition behind ours or, if there is none, the definition in a library that
 * was loaded together with the caller, perhaps with RTLD_LOCAL. In the second case, clears the error of the failed
 * search, so that dlerror answers as after the real dlsym. */
static void *found_without_us(void *handle, const char *name, const char *version, uintptr_t caller) {
    void *seen = hook_dlsym_look_up(RTLD_NEXT, name, version);
    void *linked = !seen && handle == RTLD_DEFAULT ? cuda_scope_linked(name, caller) : NULL;
    if (linked) LIBC(dlerror)();
    return seen ? seen : linked;
}

static struct answer instead_of_ours(int entry, void *handle, const char *name, const char *version, uintptr_t caller,
                                     void *ours) {
    void *real = found_without_us(handle, name, version, caller);
    if (!real || cuda_route_is_exempt(caller)) return (struct answer){real, 1};
    bool same = cuda_route_real((enum cuda_entry_id)entry, 0, caller) == real;
    return (struct answer){same ? ours : cuda_route_hook((enum cuda_entry_id)entry, real), 1};
}

/* Whether RTLD_NEXT of this caller leads to us: the caller was loaded before us, and no object in between defines the
 * name. */
static bool comes_to_us(const char *name, uintptr_t caller) {
    const struct link_map *asks = cuda_scope_object(caller), *ours = cuda_scope_object((uintptr_t)&hook_find_dlsym);
    const struct link_map *object = ours ? ours->l_prev : NULL;
    while (object && object != asks && !symbol_find(object, name, NULL)) object = object->l_prev;
    return object && object == asks;
}

/* The answer for RTLD_NEXT is a jump to the real dlsym. There is one exception: if the jump would find our hook, and
 * there is no definition behind it, the answer is NULL. */
static struct answer next_one(const char *name, const char *version, uintptr_t caller) {
    bool is_there = !comes_to_us(name, caller) || hook_dlsym_look_up(RTLD_NEXT, name, version);
    return (struct answer){.final = !is_there};
}

/* Notes an entry of the driver that is not in the table and that the caller is about to get. */
static void look_at_unknown(void *handle, const char *name, const char *version, uintptr_t caller) {
    if (handle == RTLD_NEXT || !cuda_route_is_unknown_memory(name)) return;
    void *found = hook_dlsym_look_up(handle, name, version);
    bool driver = found && cuda_route_is_driver((uintptr_t)found) && !cuda_route_is_exempt(caller);
    if (driver && process_tracked()) cuda_events_unknown(name);
}

/* Whether the search would find a hook that is not in the table (hook_cublas.c, hook_cuda_text.c), and no real function
 * behind it. */
static bool is_ours_alone(void *handle, const char *name, const char *version, uintptr_t caller) {
    bool is_hook = !strncmp(name, "cublas", 6) || !strncmp(name, "cudaGetError", 12);
    if (handle != RTLD_DEFAULT || !is_hook) return false;
    const void *found = hook_dlsym_look_up(handle, name, version);
    return found && cuda_route_is_hook(found) && !found_without_us(handle, name, version, caller);
}

struct answer hook_answer_dlsym(void *handle, const char *name, const char *version, uintptr_t caller) {
    int entry = cuda_route_named(name);
    if (!hook_next_dlsym) hook_find_dlsym();
    if (entry < 0) {
        look_at_unknown(handle, name, version, caller);
        return (struct answer){.final = is_ours_alone(handle, name, version, caller)};
    }
    if (handle == RTLD_NEXT) return next_one(name, version, caller);
    void *found = hook_dlsym_look_up(handle, name, version);
    if (!found) return (struct answer){NULL, 1};
    if (cuda_route_is_hook(found)) return instead_of_ours(entry, handle, name, version, caller, found);
    if (cuda_route_is_exempt(caller)) return (struct answer){found, 1};
    return (struct answer){cuda_route_hook((enum cuda_entry_id)entry, found), 1};
}

/* Saves the arguments across a call. The return address and the three words have 32 bytes, so the stack pointer is a
 * multiple of 16 again. */
#define KEEP                                                                                                           \
    "    .irp word, rdi, rsi, rdx\n"                                                                                   \
    "    pushq %\\word\n"                                                                                              \
    "    .cfi_adjust_cfa_offset 8\n"                                                                                   \
    "    .endr\n"
#define GIVE_BACK                                                                                                      \
    "    .irp word, rdx, rsi, rdi\n"                                                                                   \
    "    popq %\\word\n"                                                                                               \
    "    .cfi_adjust_cfa_offset -8\n"                                                                                  \
    "    .endr\n"

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
            "2:\n" KEEP "    call hook_find_dlsym\n" GIVE_BACK "    jmpq *" #next "(%rip)\n"                           \
            "3:\n" KEEP take_version "    movq 24(%rsp), %rcx\n" /* the return address */                              \
            "    call hook_answer_dlsym\n"                                                                             \
            "    movq %rdx, %rcx\n" GIVE_BACK "    testq %rcx, %rcx\n"                                                 \
            "    je 1b\n"                                                                                              \
            "    ret\n"                                                                                                \
            "    .cfi_endproc\n"                                                                                       \
            ".size " #name ", .-" #name "\n"                                                                           \
            ".popsection\n");
THUNK(dlsym, hook_next_dlsym, "    xorl %edx, %edx\n")
THUNK(dlvsym, hook_next_dlvsym, "")
