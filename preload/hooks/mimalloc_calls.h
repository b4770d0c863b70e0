/* mimalloc_calls.h — what the built-in mimalloc calls, by names of its own (cmake/Mimalloc.cmake gives it those).
 * In: mimalloc's calls of libc's functions. Out: our hooks where there are such, which see what becomes of memory that
 * was stowed; else libc's. The program's functions of these names are never called, nor a sanitizer's. */
#ifndef MEMSTOW_MIMALLOC_CALLS_H
#define MEMSTOW_MIMALLOC_CALLS_H

/* After the definition of a hook. */
#define MIMALLOC_CALLS(name)                                                                                           \
    __attribute__((used, visibility("hidden"), alias(#name), copy(name))) extern __typeof__(name) mimalloc_##name;

#endif
