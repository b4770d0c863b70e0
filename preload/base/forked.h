/* forked.h — what the library knows that is not true in a forked child.
 * In: a function of each file that has state, which makes it that of a process that has just begun. Out: all of them
 * are called in the child, before it begins a ledger of its own. A function must not look at other files' state, which
 * may be forgotten by then, nor at the ledger, which is the parent's. tests/build/forked.py finds files that lack one.
 */
#ifndef MEMSTOW_FORKED_H
#define MEMSTOW_FORKED_H

#pragma GCC visibility push(hidden)

/* To be written behind the function, with a semicolon. */
#define FORKED(function)                                                                                               \
    static void (*const function##_forked)(void) __attribute__((section("memstow_forked"), used)) = function

/* In the child: calls them all, in no order. */
void forked_forget(void);

#pragma GCC visibility pop

#endif
