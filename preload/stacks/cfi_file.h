/* cfi_file.h — reads large unwind tables through a mapping of memstow's own.
 * In: the unwind tables of a loaded program or library (cfi.h), and an address in its code. Out: the rule of the
 * address. Reading the tables takes memory: for each page that is read, the kernel maps up to sixteen pages of the
 * file. memstow must not give back pages of the loader's mapping. So the tables are read from a second mapping of the
 * same file, whose pages are given back from time to time. Any thread and any signal handler may call. */
#ifndef MEMSTOW_CFI_FILE_H
#define MEMSTOW_CFI_FILE_H

#include <stdint.h>

#include "preload/stacks/cfi.h"

#pragma GCC visibility push(hidden)

/* As cfi_find. Reads the object's tables through memstow's own mapping, or through the loader's if memstow has no
 * mapping of them. It has none, for example, if the tables are small, if the file has no build id, if the file's path
 * leads to another file now, if the process is in a sandbox, or if there is no address space left. */
struct cfi_rule cfi_file_find(const struct cfi_object *object, uintptr_t pc);

#pragma GCC visibility pop

#endif
