/* mimalloc_calls.h — the functions that the built-in mimalloc calls, by names of its own (cmake/Mimalloc.cmake gives
 * them). In: mimalloc's calls of libc's functions. Out: our hooks where there are such, because they must see changes
 * to stowed memory; otherwise libc's. Functions of the program or of a sanitizer by these names are never called. */
#ifndef MEMSTOW_MIMALLOC_CALLS_H
#define MEMSTOW_MIMALLOC_CALLS_H

/* After the definition of a hook. */
#define MIMALLOC_CALLS(name)                                                                                           \
    __attribute__((used, visibility("hidden"), alias(#name), copy(name))) extern __typeof__(name) mimalloc_##name;

#endif
