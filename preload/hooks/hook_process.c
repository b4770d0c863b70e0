/* hook_process.c — exec, forks, exit (also of the main thread), loading and unloading of code, entry into a sandbox.
 * In: the program's calls. Out: the same calls to the next definition, once the library is prepared for them. The hooks
 * of forks are needed only for moves in progress (stow.h). They do not tell a child that it was forked: it notices that
 * by itself (process.h). */
#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include "preload/control/control.h"
#include "preload/hooks/hook_entry.h"
#include "preload/ledger/ledger_strings.h"
#include "preload/hooks/mimalloc_calls.h"
#include "preload/life/process.h"
#include "preload/life/sandbox.h"
#include "preload/stow/stow.h"
#include "preload/base/seal.h"
#include "preload/base/symbol.h"
#include "preload/stacks/stack.h"

#define HOOK __attribute__((visibility("default")))

HOOK_ENTRY(clone)

/* Our constructors run before libc's, which sets `environ`. */
__attribute__((constructor(101))) static void find_environment(int count, char **arguments, char **environment) {
    (void)count, (void)arguments;
    if (!environ) environ = environment;
}

__attribute__((constructor)) static void begin_at_start(void) {
    process_begin();
    process_watch();
}

__attribute__((destructor)) static void end_at_exit(void) { process_end(SNAP_EXITED); }

/* --- exec: the same process goes on as another program (its next image) --- */

enum { VARIABLES_MOST = 1 << 16, VARIABLES_ON_STACK = 256 };

struct exec {
    enum { EXEC_PATH, EXEC_SEARCHED, EXEC_FD, EXEC_AT } kind;
    const char *file;
    int fd, flags;
    char *const *arguments;
};

static int exec_next(const struct exec *self, char *const environment[]) {
    switch (self->kind) {
    case EXEC_FD:
        return NEXT(fexecve)(self->fd, self->arguments, environment);
    case EXEC_AT:
        return NEXT(execveat)(self->fd, self->file, self->arguments, environment, self->flags);
    case EXEC_PATH:
        return NEXT(execve)(self->file, self->arguments, environment);
    default:
        return NEXT(execvpe)(self->file, self->arguments, environment);
    }
}

static bool is_variable(const char *text, const char *name) { return !strncmp(text, name, strlen(name)); }

/* Whether an argument of a system call points to memory that can be read. In a sandbox the kernel is not asked, and the
 * answer is true. */
static bool may_read(const void *from, size_t length) {
    char copy[sizeof(uint64_t)];
    return !seal_settles() || os_peek(copy, from, length);
}

/* Whether variable `i` of a list that the program made can be read. If it cannot, the kernel must report the error. */
static bool may_read_variable(char *const environment[], size_t i) {
    return environment == environ ||
           (may_read(&environment[i], sizeof *environment) && (!environment[i] || may_read(environment[i], 1)));
}

/* Returns the number of variables. Returns 0 if the next image will not load this library, if there are too many
 * variables, or if the list cannot be read. */
static size_t variables_to_pass(char *const environment[]) {
    size_t count = 0;
    bool preloaded = false;
    for (; environment; count++) {
        if (!may_read_variable(environment, count)) return 0;
        if (!environment[count]) break;
        preloaded |= is_variable(environment[count], "LD_PRELOAD=");
    }
    return preloaded && count < VARIABLES_MOST ? count : 0;
}

/* Lists the program's variables and `variable`. The same variable from an earlier image is left out. */
static void list_variables(char **list, char *const environment[], size_t count, char *variable) {
    for (size_t i = 0; i < count; i++)
        if (!is_variable(environment[i], "MEMSTOW_EXEC=")) *list++ = environment[i];
    *list++ = variable;
    *list = NULL;
}

/* Sets a variable that tells the next image how many images came before it. A vfork child does not set it. A long list
 * of variables is mapped, because a thread's stack may be too small for it. */
static int exec_with(struct exec exec, char *const environment[]) {
    char variable[PROCESS_EXEC_SIZE], **list = NULL;
    process_exec(true);
    size_t count = variables_to_pass(environment), length = (count + 2) * sizeof *list;
    bool mapped = count > VARIABLES_ON_STACK;
    if (count && process_exec_variable(variable)) list = mapped ? os_map(length) : alloca(length);
    if (list) list_variables(list, environment, count, variable);
    int result = exec_next(&exec, list ? list : environment);
    if (list && mapped) os_unmap(list, length);
    process_exec(false);
    return result;
}

HOOK int execve(const char *path, char *const arguments[], char *const environment[]) {
    return exec_with((struct exec){EXEC_PATH, path, -1, 0, arguments}, environment);
}

HOOK int execv(const char *path, char *const arguments[]) {
    return exec_with((struct exec){EXEC_PATH, path, -1, 0, arguments}, environ);
}

HOOK int execvp(const char *file, char *const arguments[]) {
    return exec_with((struct exec){EXEC_SEARCHED, file, -1, 0, arguments}, environ);
}

HOOK int execvpe(const char *file, char *const arguments[], char *const environment[]) {
    return exec_with((struct exec){EXEC_SEARCHED, file, -1, 0, arguments}, environment);
}

HOOK int fexecve(int fd, char *const arguments[], char *const environment[]) {
    return exec_with((struct exec){EXEC_FD, NULL, fd, 0, arguments}, environment);
}

HOOK int execveat(int fd, const char *path, char *const arguments[], char *const environment[], int flags) {
    return exec_with((struct exec){EXEC_AT, path, fd, flags, arguments}, environment);
}

static bool is_exec(long number) { return number == SYS_execve || number == SYS_execveat; }

static long exec_by_number(long number, const long a[5]) {
    bool at = number == SYS_execveat;
    const long *rest = a + at;
    struct exec exec = {at ? EXEC_AT : EXEC_PATH, (const char *)rest[0], (int)a[0], (int)a[4], (char *const *)rest[1]};
    return exec_with(exec, (char *const *)rest[2]);
}

/* Collects the arguments of an execl variant, on the stack: a vfork child must not allocate. */
#define COLLECT(arguments, first, list)                                                                                \
    do {                                                                                                               \
        size_t count_ = 1;                                                                                             \
        va_list again_;                                                                                                \
        va_copy(again_, list);                                                                                         \
        while (va_arg(again_, char *)) count_++;                                                                       \
        va_end(again_);                                                                                                \
        arguments = alloca((count_ + 1) * sizeof *arguments);                                                          \
        arguments[0] = (char *)first;                                                                                  \
        for (size_t i_ = 1; i_ <= count_; i_++) arguments[i_] = va_arg(list, char *);                                  \
    } while (0)

HOOK int execl(const char *path, const char *first, ...) {
    char **arguments;
    va_list list;
    va_start(list, first);
    COLLECT(arguments, first, list);
    va_end(list);
    return execv(path, arguments);
}

HOOK int execlp(const char *file, const char *first, ...) {
    char **arguments;
    va_list list;
    va_start(list, first);
    COLLECT(arguments, first, list);
    va_end(list);
    return execvp(file, arguments);
}

HOOK int execle(const char *path, const char *first, ...) {
    char **arguments;
    va_list list;
    va_start(list, first);
    COLLECT(arguments, first, list);
    char *const *environment = va_arg(list, char *const *);
    va_end(list);
    return execve(path, arguments, environment);
}

/* --- forks for which glibc does not call the handlers of pthread_atfork --- */

HOOK pid_t _Fork(void) {
    struct stow_forking forking = stow_fork_begin();
    pid_t pid = NEXT(_Fork)();
    stow_fork_end(forking, pid == 0);
    return pid;
}

struct clone_start {
    int (*start)(void *);
    void *argument;
    struct stow_forking forking;
};

static int clone_begins(void *context) {
    struct clone_start *self = context; /* on the parent's stack, which the child has a copy of */
    stow_fork_end(self->forking, true);
    return self->start(self->argument);
}

int hook_clone(int (*start)(void *), void *stack, int flags, void *argument, ...) {
    va_list list;
    va_start(list, argument);
    pid_t *parent = va_arg(list, pid_t *);
    void *local = va_arg(list, void *);
    pid_t *child = va_arg(list, pid_t *);
    va_end(list);
    /* if `start` is NULL, libc must get this NULL, so that it refuses the call */
    if (!start || flags & CLONE_VM) return HOOK_NEXT(clone)(start, stack, flags, argument, parent, local, child);
    struct clone_start begin = {start, argument, stow_fork_begin()};
    int pid = HOOK_NEXT(clone)(clone_begins, stack, flags, &begin, parent, local, child);
    stow_fork_end(begin.forking, false);
    return pid;
}

static bool is_fork(long number, unsigned long first) {
    const struct clone_args *asked = (const void *)first;
    if (number == SYS_clone3)
        return asked && may_read(&asked->flags, sizeof asked->flags) && !(asked->flags & CLONE_VM);
    return number == SYS_fork || (number == SYS_clone && !(first & CLONE_VM));
}

/* --- calls that end the process, or its first thread, without destructors --- */

HOOK __attribute__((noreturn)) void _exit(int status) {
    process_end(SNAP_ABRUPT_EXIT);
    for (;;) os_call(SYS_exit_group, status);
}

HOOK __attribute__((noreturn)) void _Exit(int status) { _exit(status); }

/* After the main thread has left, the process goes on until its last thread ends. The last thread must not be a thread
 * of ours, so our threads stop. In a sandbox they have stopped already, and the kernel is not asked for ids. */
static void main_thread_leaves(void) {
    if (seal_settles() && os_tid() == os_pid()) control_stop(CONTROL_PATIENCE);
}

HOOK __attribute__((noreturn)) void pthread_exit(void *value) {
    main_thread_leaves();
    NEXT(pthread_exit)(value);
    __builtin_unreachable();
}

HOOK __attribute__((noreturn)) void thrd_exit(int value) {
    main_thread_leaves();
    NEXT(thrd_exit)(value);
    __builtin_unreachable();
}

/* --- loading and unloading of code --- */

/* A library opened with RTLD_DEEPBIND calls libc's free, but libc's strdup and getline call our malloc. The library
 * would pass our pointers to glibc. So it is opened without that flag, and the report says so. dlopen looks at its
 * caller (run path, namespace), so the call must be a jump. */
__attribute__((used, visibility("hidden"))) void *hook_next_dlopen;
__attribute__((visibility("hidden"))) void *hook_before_dlopen(int flags);

/* Runs at the first call of dlopen, and at each call with RTLD_DEEPBIND. Returns the address of the real dlopen, for
 * the jump. */
void *hook_before_dlopen(int flags) {
    static bool noted;
    if (!hook_next_dlopen) hook_next_dlopen = symbol_next("dlopen");
    if (flags & RTLD_DEEPBIND && process_tracked() && !__atomic_exchange_n(&noted, true, __ATOMIC_RELAXED))
        ledger_fact(SNAP_FACT_NOTE, "libraries were opened without RTLD_DEEPBIND, although the program asked for it");
    return hook_next_dlopen;
}

__asm__(".pushsection .text\n"
        ".globl dlopen\n"
        ".type dlopen, @function\n"
        "dlopen:\n"
        "    .cfi_startproc\n"
        "    movq hook_next_dlopen(%rip), %rax\n"
        "    testl $8, %esi\n" /* RTLD_DEEPBIND */
        "    jne 1f\n"
        "    testq %rax, %rax\n"
        "    je 1f\n"
        "    jmpq *%rax\n"
        "1:  pushq %rdi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rsi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    subq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    movl %esi, %edi\n"
        "    call hook_before_dlopen\n"
        "    addq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rsi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rdi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    andl $-9, %esi\n"
        "    jmpq *%rax\n"
        "    .cfi_endproc\n"
        ".size dlopen, .-dlopen\n"
        ".popsection\n");

HOOK int dlclose(void *handle) {
    stack_unload_begins();
    int result = NEXT(dlclose)(handle);
    stack_unload_ends();
    return result;
}

/* --- system calls and sandboxes: in a sandbox even opening a file may kill the program --- */

static void note_counter(long option, long value) {
    if (unlikely(option == PR_SET_TSC && value == PR_TSC_SIGSEGV)) os_forbid_ticks();
}

HOOK int prctl(int option, ...) {
    va_list list;
    va_start(list, option);
    unsigned long a = va_arg(list, unsigned long), b = va_arg(list, unsigned long);
    unsigned long c = va_arg(list, unsigned long), d = va_arg(list, unsigned long);
    va_end(list);
    bool enters = unlikely(option == PR_SET_SECCOMP) && sandbox_enter(SYS_prctl, option, (long)a, (const void *)b);
    note_counter(option, (long)a);
    int result = NEXT(prctl)(option, a, b, c, d);
    if (enters) sandbox_entered(SYS_prctl, option, (long)a, result);
    return result;
}

static bool enters_sandbox(long number) { return number == SYS_seccomp || number == SYS_prctl; }

static long hook_process_enter(__typeof__(&syscall) call, long number, const long a[6]) {
    bool enters = sandbox_enter(number, a[0], a[1], (const void *)a[2]);
    if (number == SYS_prctl) note_counter(a[0], a[1]);
    long result = call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (enters) sandbox_entered(number, a[0], a[1], result);
    return result;
}

/* The range is restored first, because restored memory may be in a new mapping, which would not have the NUMA policy
 * that this call sets. In a sandbox, stow_note_whole returns -EPERM and restores nothing. This does no harm, because
 * memory comes back in its old mapping there. */
static long bind_memory(__typeof__(&syscall) call, const long a[6]) {
    uint32_t pass = stow_pass_begin();
    long result = -1;
    int error = stow_pass_watched(pass) && a[1] > 0 ? stow_note_whole((uint64_t)a[0], (uint64_t)a[1], false) : 0;
    if (error && error != -EPERM)
        errno = ENOMEM;
    else
        result = call(SYS_mbind, a[0], a[1], a[2], a[3], a[4], a[5]);
    stow_pass_end(pass);
    return result;
}

/* The hook must be fast, because some programs call only this function to wait, and to ask for thread ids. */
HOOK long syscall(long number, ...) {
    __typeof__(&syscall) found = NEXT(syscall);
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    if (unlikely(number == SYS_exit_group)) _exit((int)a); /* qemu-user ends a program by this call */
    if (unlikely(enters_sandbox(number))) return hook_process_enter(found, number, (const long[]){a, b, c, d, e, f});
    if (unlikely(is_exec(number))) return exec_by_number(number, (const long[]){a, b, c, d, e});
    if (unlikely(number == SYS_mbind)) return bind_memory(found, (const long[]){a, b, c, d, e, f});
    if (likely(!is_fork(number, (unsigned long)a))) return found(number, a, b, c, d, e, f);
    struct stow_forking forking = stow_fork_begin();
    long result = found(number, a, b, c, d, e, f);
    stow_fork_end(forking, result == 0);
    return result;
}

MIMALLOC_CALLS(prctl)
MIMALLOC_CALLS(syscall)
