/* mimalloc_calls.h — the functions that the built-in mimalloc calls, under names of their own (cmake/Mimalloc.cmake
 * sets them).
 * In: mimalloc's calls of libc's functions. Out: calls of our hooks where they exist, because they must see changes to
 * stowed memory; otherwise libc's functions. Functions of the program or a sanitizer with the original names are never
 * called. */
#ifndef MEMSTOW_MIMALLOC_CALLS_H
#define MEMSTOW_MIMALLOC_CALLS_H

/* Write it after the definition of a hook. */
#define MIMALLOC_CALLS(name)                                                                                           \
    __attribute__((used, visibility("hidden"), alias(#name), copy(name))) extern __typeof__(name) mimalloc_##name;

#endif
