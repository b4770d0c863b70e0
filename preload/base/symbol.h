/* symbol.h — finds an exported symbol in one loaded object, in libc, or in the objects in front of ours or behind ours
 * (those that the loader searches before or after ours).
 * In: a name; for symbol_find also an object, as _dl_find_object returns it. Out: the symbol's address, or the object
 * that defines it. Unlike dlsym it takes no lock, allocates nothing, and looks at tables only: it may be called inside
 * malloc, and before the program has begun. */
#ifndef MEMSTOW_SYMBOL_H
#define MEMSTOW_SYMBOL_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* The symbol's address, or 0. *size gets the size that the symbol table says; `size` may be NULL. The object must not
 * be unloaded meanwhile. */
uintptr_t symbol_find(const struct link_map *object, const char *name, size_t *size);

/* Looks a symbol up in libc. NULL: libc does not have it. */
void *symbol_of_libc(const char *name);
/* Whether the address lies in libc. The name of a function does not tell that, because another library may define a
 * function with the same name. */
bool symbol_is_in_libc(const void *address);

/* The next definition of this name behind ours, in the objects up to libc. NULL: there is none. */
void *symbol_next(const char *name);

/* The object in front of ours that defines this name: the program calls that definition, not ours. NULL: there is
 * none. */
const struct link_map *symbol_before(const char *name);

/* LIBC: the function of libc, whatever definitions are in front of it. NEXT: the next definition behind ours. Each is
 * looked up once. */
#define LIBC(name) SYMBOL_ONCE(symbol_of_libc, name)
#define NEXT(name) SYMBOL_ONCE(symbol_next, name)
#define SYMBOL_ONCE(find, name)                                                                                        \
    __extension__({                                                                                                    \
        static void *known_;                                                                                           \
        (__typeof__(&name))symbol_known(&known_, find, #name);                                                         \
    })
void *symbol_known(void **known, void *(*find)(const char *name), const char *name);

#pragma GCC visibility pop

#endif
