// While the program enters, leaves and swaps scopes, a signal handler interrupts it after each instruction. The handler
// enters and leaves a scope of its own. The program's scopes stay what they are.
// run: --stacks=none
#include "abi.h"
#include "expect.h"

#include <signal.h>

static uint32_t own, inner, of_handler;
static uint64_t handled;

static void in_handler(int number) {
    (void)number;
    handled++;
    MUST(CALL(0, memstow_scope_enter, of_handler) == 0 && CALL(0, memstow_scope_leave, of_handler) == 0);
}

// The processor raises SIGTRAP after each instruction while its trap flag is set.
static void step(void) { __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" : : : "cc", "memory"); }
static void walk(void) { __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" : : : "cc", "memory"); }

static void enter_and_leave(void) {
    step();
    int32_t entered = CALL(0, memstow_scope_enter, own) | CALL(0, memstow_scope_enter, inner);
    int32_t left = CALL(0, memstow_scope_leave, inner) | CALL(0, memstow_scope_leave, own);
    walk();
    MUST(!entered && !left);
}

static void swap(void) {
    struct memstow_scopes two = {.size = sizeof two, .count = 2, .owners = {own, inner}}, none = {.size = sizeof none};
    struct memstow_scopes before = {.size = sizeof before};
    step();
    int32_t swapped = CALL(0, memstow_scope_swap, &two, NULL) | CALL(0, memstow_scope_swap, &none, &before);
    walk();
    MUST(!swapped);
    MUST(!has_memstow || (before.count == 2 && before.owners[0] == own && before.owners[1] == inner));
}

static uint32_t open_owner(const char *name) {
    return (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_CUSTOM, name, "", 0, 0);
}

int main(void) {
    abi_find();
    own = open_owner("own"), inner = open_owner("inner"), of_handler = open_owner("of the handler");
    signal(SIGTRAP, in_handler);
    enter_and_leave();
    swap();
    MUST(!has_memstow || handled > 100);
    say("ok");
    return 0;
}
