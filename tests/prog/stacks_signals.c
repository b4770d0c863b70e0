// A call stack that is read in a signal handler holds the handler and the code that was interrupted. The signal comes
// at a call or at an instruction that faults, and the handler runs on the interrupted stack or on another one.
// needs: stacks
// build: -O2
#include "stacks.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

enum {
    RAISED = 10007,
    FAULTED = 10009,
    FIRST = 10037,
    NESTED = 10039,
    ALTERNATE = 10061,
    AFTER = 10067,
    DEEPER = 10069
};

static volatile int one = 1;
static volatile unsigned size;

FRAME static void allocate(void) {
    KEEP(size);
    STAY;
}
static void on_signal(int number) {
    (void)number;
    allocate();
    STAY;
}

FRAME static void raises(void) {
    raise(SIGUSR1);
    STAY;
}
FRAME static void raise_it(void) {
    raises();
    STAY;
}

/* No call is interrupted here: the instruction itself faults, and the handler steps over it. */
static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    allocate();
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}
FRAME static int faults(int n) {
    __asm__ volatile("ud2");
    return n + one;
}
FRAME static void fault_it(void) { MUST(faults(1) == 2); }

/* A function whose first instruction faults. The byte before that instruction belongs to another function. */
void faults_at_once(void);
__asm__(".text\n.globl faults_at_once\n.type faults_at_once,@function\n"
        "nop\nfaults_at_once: .cfi_startproc\nud2\nret\n.cfi_endproc\n.size faults_at_once, . - faults_at_once");
FRAME static void fault_at_once(void) {
    faults_at_once();
    STAY;
}

static void on_second(int number) {
    (void)number;
    allocate();
    STAY;
}
static void on_first(int number) {
    (void)number;
    raise(SIGUSR2);
    STAY;
}
FRAME static void nest_them(void) {
    raise(SIGALRM);
    STAY;
}

static void on_alternate(int number) {
    (void)number;
    allocate();
    STAY;
}
FRAME static void raise_on_alternate(void) {
    raise(SIGTERM);
    STAY;
}
FRAME static void deeper(int depth) {
    if (depth)
        deeper(depth - 1);
    else
        raise_on_alternate();
    STAY;
}
FRAME static void after(void) {
    KEEP(AFTER);
    STAY;
}

static void install(int number, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    MUST(sigaction(number, &action, NULL) == 0);
}

int main(void) {
    void *other = mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(other != MAP_FAILED && sigaltstack(&(stack_t){.ss_sp = other, .ss_size = 1 << 18}, NULL) == 0);
    install(SIGUSR1, on_signal, 0);
    install(SIGUSR2, on_second, 0);
    install(SIGALRM, on_first, 0);
    install(SIGTERM, on_alternate, SA_ONSTACK);
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    MUST(sigaction(SIGILL, &fault, NULL) == 0);
    size = RAISED, raise_it();
    size = FAULTED, fault_it();
    size = FIRST, fault_at_once();
    size = NESTED, nest_them();
    size = ALTERNATE, raise_on_alternate();
    size = DEEPER, deeper(9);
    after();
    EXPECT_STACK(RAISED, "allocate<on_signal<...<raises<raise_it<main");
    EXPECT_STACK(FAULTED, "allocate<on_fault<...<faults<fault_it<main");
    EXPECT_STACK(FIRST, "allocate<on_fault<...<faults_at_once<fault_at_once<main");
    EXPECT_STACK(NESTED, "allocate<on_second<...<on_first<...<nest_them<main");
    EXPECT_STACK(ALTERNATE, "allocate<on_alternate<?<...<raise_on_alternate<main");
    EXPECT_STACK(DEEPER, "allocate<on_alternate<?<...<raise_on_alternate<deeper{10}<main");
    EXPECT_STACK(AFTER, "after<main");
    return 0;
}
