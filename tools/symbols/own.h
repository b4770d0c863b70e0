/* own.h — tells whether memstow's own Python code asked for memory: its modules, its package memstow_loops, its node
 * pack, its plugin for pytest.
 * In: a call stack. Out: yes or no. It does not judge native code: the library's own memory is in no ledger. */
#ifndef MEMSTOW_OWN_H
#define MEMSTOW_OWN_H

#include "tools/image/image.h"

/* Whether the innermost Python function of the stack is one of memstow's. Functions of Python's own library are
 * skipped. Returns false if the stack has no Python function outside of that library. */
bool own_stack(const struct image *image, uint32_t node);

#endif
