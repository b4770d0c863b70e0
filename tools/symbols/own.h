/* own.h — tells which memory memstow's own Python code allocated: its node pack, its modules, its plugin for pytest.
 * In: a call stack. Out: whether memstow asked for the memory. It does not judge native code: the library's own memory
 * is in no ledger. */
#ifndef MEMSTOW_OWN_H
#define MEMSTOW_OWN_H

#include "tools/image/image.h"

/* Whether the innermost Python function outside Python's own library belongs to memstow: to one of its modules, or to a
 * folder memstow in custom_nodes. */
bool own_stack(const struct image *image, uint32_t node);

#endif
