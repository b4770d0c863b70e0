/* empty.c — a preloaded library that only passes every call on to the next allocator. It shows the least cost that a
 * preloaded library can have. It never allocates. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#define PASS __attribute__((visibility("default")))
#define NEXT(name, type)                                                                                               \
    static __typeof__(type) next_##name;                                                                               \
    if (__builtin_expect(!next_##name, 0)) next_##name = (__typeof__(type))dlsym(RTLD_NEXT, #name)

PASS void *malloc(size_t size) {
    NEXT(malloc, void *(*)(size_t));
    return next_malloc(size);
}

PASS void *calloc(size_t count, size_t size) {
    NEXT(calloc, void *(*)(size_t, size_t));
    return next_calloc(count, size);
}

PASS void *realloc(void *block, size_t size) {
    NEXT(realloc, void *(*)(void *, size_t));
    return next_realloc(block, size);
}

PASS void free(void *block) {
    NEXT(free, void (*)(void *));
    next_free(block);
}
