/* forked.h — resets the library's state in a forked child.
 * In: from each file that needs it, a function that resets the file's state to that of a process that has just begun.
 * Out: in the child, calls of all these functions, before the child begins a ledger of its own. A function must not
 * look at the state of other files, which may be reset already, nor at the ledger, which is the parent's.
 * tests/build/forked.py lists the files that need no function, and finds any other file that has none. */
#ifndef MEMSTOW_FORKED_H
#define MEMSTOW_FORKED_H

#pragma GCC visibility push(hidden)

/* Registers `function`. Write FORKED(function); behind the definition of the function. */
#define FORKED(function)                                                                                               \
    static void (*const function##_forked)(void) __attribute__((section("memstow_forked"), used)) = function

/* Call it in the child. It calls all registered functions, in any order. */
void forked_forget(void);

#pragma GCC visibility pop

#endif
