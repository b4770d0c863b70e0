/* hook_entry.h — entry points of hooks whose names are plain words.
 * In: a call by such a name. Out: a jump to the hook, or past it. A library may have a function of its own by such a
 * name (clone, dup, brk), with other arguments and results. So the entry is a jump in assembly: to the hook if the next
 * definition is libc's, otherwise to that definition. A jump keeps the return address and the caller's frame, which
 * CALLER needs. Any thread may call, in signal handlers, too. */
#ifndef MEMSTOW_HOOK_ENTRY_H
#define MEMSTOW_HOOK_ENTRY_H

#pragma GCC visibility push(hidden)

/* A name, its hook, and two variables. *next is the next definition of the name, or NULL if there is none. *route is
 * where a call of the name goes: to the hook if *next is libc's or NULL, otherwise to *next. *route is NULL until it
 * is looked up. */
struct hook_entry {
    const char *name;
    void *hook, **route, **next;
};

#pragma GCC visibility pop

/* Write it after the declaration of the name. The hook itself, hook_NAME, has the same type. Entries lie in a section
 * of their own, where hook_entry.c finds them. */
#define HOOK_ENTRY(name)                                                                                               \
    __attribute__((used, visibility("hidden"))) __typeof__(name) hook_##name;                                          \
    __attribute__((used, visibility("hidden"))) void *hook_route_##name;                                               \
    static void *next_##name;                                                                                          \
    __attribute__((used, section("hook_entries"))) static const struct hook_entry entry_##name = {                     \
        #name, (void *)hook_##name, &hook_route_##name, &next_##name};                                                 \
    __asm__(".pushsection .text\n"                                                                                     \
            ".globl " #name "\n"                                                                                       \
            ".type " #name ", @function\n" #name ":\n"                                                                 \
            "    .cfi_startproc\n"                                                                                     \
            "    movq hook_route_" #name "(%rip), %r11\n"                                                              \
            "    testq %r11, %r11\n"                                                                                   \
            "    je 1f\n"                                                                                              \
            "    jmpq *%r11\n"                                                                                         \
            "1:  call hook_look_up_first\n"                                                                            \
            "    jmpq *hook_route_" #name "(%rip)\n"                                                                   \
            "    .cfi_endproc\n"                                                                                       \
            ".size " #name ", .-" #name "\n"                                                                           \
            ".popsection\n");

/* For use in a hook: libc's function of this name, or NULL if there is none. (A hook runs only if the next definition
 * of the name is libc's, or if there is no next definition.) */
#define HOOK_NEXT(name) ((__typeof__(&name))next_##name)

#endif
