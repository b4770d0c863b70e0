/* next.c — see next.h. */
#include "preload/base/next.h"
#include "preload/shared/os.h"
#include "preload/base/symbol.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/auxv.h>

void *__libc_malloc(size_t);
void __libc_free(void *);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

/* mimalloc and tcmalloc define __libc_malloc and its siblings, too. If the program has such an allocator, next_libc has
 * its functions, and replaced_usable is its malloc_usable_size. */
static size_t (*replaced_usable)(void *);

/* Computes the usable size from the chunk's size word, because glibc has no __libc_malloc_usable_size. The word lies at
 * p - 8, and is the size with flags in its lowest bits. The flag with the value 2 means a mapping, which has 16 bytes
 * of overhead, not 8. This layout is fixed since glibc 2.0, because debuggers and emacs depend on it. */
static size_t libc_usable(void *p) {
    if (unlikely(replaced_usable != NULL)) return replaced_usable(p);
    size_t word = ((size_t *)p)[-1];
    return (word & ~(size_t)7) - (word & 2 ? 16 : 8);
}

#define FROM_LIBC                                                                                                      \
    { __libc_malloc, __libc_free, __libc_calloc, __libc_realloc, __libc_memalign, libc_usable }

const struct next_allocator next_libc = FROM_LIBC;
struct next_allocator next = FROM_LIBC;
enum next_kind next_found;
bool next_is_glibc, next_spares;

static struct code {
    uintptr_t start, end;
} foreign, library, loader; /* where code lies: the foreign allocator's, our library's (which has mimalloc in it), and
                             * the loader's */

static void (*ignore_leak)(const void *); /* NULL: the foreign allocator is no LeakSanitizer */

static struct code code_at(void *address) {
    struct dl_find_object object;
    if (_dl_find_object(address, &object)) return (struct code){0};
    return (struct code){(uintptr_t)object.dlfo_map_start, (uintptr_t)object.dlfo_map_end};
}

#ifdef MEMSTOW_MIMALLOC
void *mi_malloc(size_t);
void mi_free(void *);
void *mi_calloc(size_t, size_t);
void *mi_realloc(void *, size_t);
void *mi_malloc_aligned(size_t, size_t);
size_t mi_usable_size(const void *);

/* mimalloc sets errno for some failures only. */
static void *mi_memalign_like_libc(size_t alignment, size_t size) {
    void *block = mi_malloc_aligned(size, alignment);
    if (!block) errno = ENOMEM;
    return block;
}

static size_t mi_usable(void *p) { return mi_usable_size(p); }

void _mi_auto_process_init(void);
void next_begin_mimalloc(void) {
    static bool begun;
    if (!begun) _mi_auto_process_init();
    begun = true;
}

static bool use_mimalloc(void) {
    next_begin_mimalloc();
    next = (struct next_allocator){mi_malloc, mi_free, mi_calloc, mi_realloc, mi_memalign_like_libc, mi_usable};
    return true;
}
#else
void next_begin_mimalloc(void) {}
static bool use_mimalloc(void) { return false; }
#endif

/* Takes all six functions or none: a block must go back where it came from. False: the program brought no allocator, or
 * one that lacks a function. */
static bool use_foreign(void) {
    struct next_allocator found = {
        .malloc = (void *(*)(size_t))symbol_next("malloc"),
        .free = (void (*)(void *))symbol_next("free"),
        .calloc = (void *(*)(size_t, size_t))symbol_next("calloc"),
        .realloc = (void *(*)(void *, size_t))symbol_next("realloc"),
        .memalign = (void *(*)(size_t, size_t))symbol_next("memalign"),
        .usable = (size_t(*)(void *))symbol_next("malloc_usable_size"),
    };
    if (!found.malloc || symbol_is_in_libc((void *)found.malloc) || !found.free || !found.calloc || !found.realloc ||
        !found.memalign || !found.usable)
        return false;
    foreign = code_at((void *)found.malloc);
    loader = code_at((void *)LIBC(getauxval)(AT_BASE));
    ignore_leak = (void (*)(const void *))symbol_next("__lsan_ignore_object");
    next = found;
    return true;
}

static enum next_kind next_choose(bool want_mimalloc) {
    if (!symbol_is_in_libc((void *)__libc_malloc))
        replaced_usable = (size_t(*)(void *))symbol_next("malloc_usable_size");
    library = code_at((void *)next_choose);
    if (want_mimalloc && use_mimalloc()) return NEXT_MIMALLOC;
    if (use_foreign()) return NEXT_FOREIGN;
    next_is_glibc = next_spares = !replaced_usable;
    return NEXT_GLIBC;
}

void next_find(bool want_mimalloc) { next_found = next_choose(want_mimalloc); }

static bool next_within(struct code code, uintptr_t address) { return address >= code.start && address < code.end; }

bool next_is_allocator_code(uintptr_t address) {
    return next_within(library, address) || next_within(foreign, address);
}

bool next_exempts(void) { return ignore_leak != NULL; }

void next_exempt(const void *raw, uintptr_t caller) {
    if (ignore_leak && next_within(loader, caller)) ignore_leak(raw);
}

void *next_aligned_alloc(size_t alignment, size_t size) {
    void *(*found)(size_t, size_t) = (void *(*)(size_t, size_t))symbol_next("aligned_alloc");
    return found ? found(alignment, size) : NULL;
}
