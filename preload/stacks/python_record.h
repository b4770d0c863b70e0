/* python_record.h — Python functions and lines in the ledger.
 * In: code objects that are on a stack now, from python.c; the deaths of code objects. Out: ids of records in the
 * ledger. */
#ifndef MEMSTOW_PYTHON_RECORD_H
#define MEMSTOW_PYTHON_RECORD_H

#include <stdint.h>

#include "preload/stacks/python_layout.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* A code key is a code object's address and its interpreter's index in one word. The lowest bits are free for the
 * index, because objects are aligned. The index is part of the key, because an interpreter that is unloaded (dlclose)
 * does not tell that its code objects are gone, and a later interpreter may have other code objects at the same
 * addresses. */
enum { PYTHON_INTERPRETERS = 8, PYTHON_INDEX_MASK = PYTHON_INTERPRETERS - 1 };

static inline uintptr_t python_plain(uintptr_t key) { return key & ~(uintptr_t)PYTHON_INDEX_MASK; }

/* The record of an instruction of a live code object; UINT32_MAX: no record can be made. */
uint32_t python_record(const struct python_layout *layout, uintptr_t code_key, uintptr_t instruction);

/* The record of a code object; NULL: there is none. */
const struct snap_code *python_record_code(uint32_t id);

/* Call it when a code object is about to be freed. */
void python_record_dies(uintptr_t code_key);

/* In a forked child: forgets all records, which are the parent's. */
void python_record_abandon(void);

#pragma GCC visibility pop

#endif
