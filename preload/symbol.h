/* symbol.h — an exported symbol of one loaded object, or of what comes next behind us.
 * In: the object, as _dl_find_object names it. Out: address and size. Unlike dlsym symbol_find takes no lock, allocates
 * nothing, and looks into this object only, however it was loaded: it may be called inside malloc. */
#ifndef MEMSTOW_SYMBOL_H
#define MEMSTOW_SYMBOL_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Its address, or 0; *size (which may be NULL) is what the symbol table says. The object must stay loaded meanwhile:
 * its code is on the caller's stack. */
uintptr_t symbol_find(const struct link_map *object, const char *name, size_t *size);

/* What comes next behind us by this name, asked of libc itself: a library that wraps dlsym would be asked before it has
 * begun, and would see what comes behind itself. May wait for the loader, and allocate, as dlsym does. */
void *symbol_next(const char *name);

/* That of libc. */
uintptr_t symbol_of_libc(const char *name);

#pragma GCC visibility pop

#endif
