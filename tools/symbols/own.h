/* own.h — what of a program's memory memstow's own Python code took: its node pack, its modules, its plugin for pytest.
 * In: a call stack. Out: whether memstow asked for the memory. It never judges native code: the library's own memory is
 * in no ledger. */
#ifndef MEMSTOW_OWN_H
#define MEMSTOW_OWN_H

#include "tools/image/image.h"

/* Whether the innermost Python function outside of Python's own library is memstow's: in one of its modules, or in a
 * folder memstow below custom_nodes. */
bool own_stack(const struct image *image, uint32_t node);

#endif
