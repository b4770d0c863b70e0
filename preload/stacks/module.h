/* module.h — the files that code is loaded from, by a number each.
 * In: addresses of code. Out: ids of records in the ledger. It must ask the loader by nothing that takes a lock. */
#ifndef MEMSTOW_MODULE_H
#define MEMSTOW_MODULE_H

#include <stdint.h>

#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* The file that it was loaded from: of the program itself, too. */
struct link_map;
const char *module_path(const struct link_map *map);
/* 1 + id of the module that holds the code; 0 when no file is mapped there. */
uint32_t module_at(uintptr_t address);
/* The record of what that gave; NULL: there is none. */
const struct snap_module *module_record(uint32_t module);
/* The address of code that has this lower half; 0: that of none, or of several, that is known. */
uintptr_t module_code(uint32_t low);

/* The program's own path must outlive the ledger. */
void module_begin(const char *program);

#pragma GCC visibility pop

#endif
