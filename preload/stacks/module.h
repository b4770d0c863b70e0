/* module.h — the files that code is loaded from, with a number for each.
 * In: addresses of code. Out: ids of records in the ledger. It must not call a function of the loader that takes a
 * lock. */
#ifndef MEMSTOW_MODULE_H
#define MEMSTOW_MODULE_H

#include <stdint.h>

#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

struct link_map;
/* The path of the file that a library, or the program itself, was loaded from. */
const char *module_path(const struct link_map *map);
/* 1 + id of the module that holds the code. 0: the loader knows no module there, or there is no memory for the
 * record. */
uint32_t module_at(uintptr_t address);
/* The record of a number from module_at; NULL: there is none. */
const struct snap_module *module_record(uint32_t module);
/* The code address that has the lower 32 bits `low` and lies in a known module. If there are several such addresses,
 * and exactly one of them follows a call instruction, returns that address. 0: there is no such address, or the choice
 * is not clear. */
uintptr_t module_code(uint32_t low);

/* Call it before module_path. `program`, the program's own path, must outlive the ledger. */
void module_begin(const char *program);

#pragma GCC visibility pop

#endif
