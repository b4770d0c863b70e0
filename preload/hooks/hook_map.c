/* hook_map.c — the mmap family.
 * In: the program's calls. Out: the same calls to the next definition; their effects are noted in the table of
 * mappings. Mappings that an allocator or this library makes for itself are not counted. */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/cuda/cuda_route.h"
#include "preload/hooks/hook_entry.h"
#include "preload/ledger/ledger.h"
#include "preload/blocks/mappings.h"
#include "preload/hooks/mimalloc_calls.h"
#include "preload/life/process.h"
#include "preload/stacks/python.h"
#include "preload/count/site.h"
#include "preload/stow/stow.h"
#include "preload/base/symbol.h"

#define HOOK __attribute__((visibility("default")))

/* Mappings of CUDA's driver do not count: they are addresses of devices, or pinned memory that is counted as CUDA's. */
static bool hook_map_counts(struct caller caller) {
    return process_tracked() && !next_is_allocator_code(caller.address) && !cuda_route_is_driver(caller.address);
}

HOOK_ENTRY(brk)
HOOK_ENTRY(sbrk)

/* Kinds of advice for which glibc 2.36 has no names. */
enum { ADVICE_DONTNEED_LOCKED = 24, ADVICE_GUARD_INSTALL = 102 };
#define ADDRESSES ((uintptr_t)1 << 56)

static enum snap_mapping_kind hook_map_kind_of(int protection, int flags) {
    if (!(flags & MAP_ANONYMOUS)) return SNAP_MAP_FILE;
    return protection == PROT_NONE ? SNAP_MAP_RESERVED : SNAP_MAP_ANONYMOUS;
}

/* Whether the kernel can accept the range. Other ranges must not reach the table: they would split the mappings in
 * it. */
static bool is_range(const void *start, size_t length) {
    return (uintptr_t)start % OS_PAGE == 0 && length && length <= ADDRESSES && (uintptr_t)start <= ADDRESSES - length;
}

/* An arena of Python's small objects outlives the scope in which its first object was made, so it belongs to nobody. */
static uint32_t site_of_new(struct caller caller) {
    return unlikely(python_maps_arenas(caller.address)) ? site_of_call(caller) : site_of_mapping(caller);
}

static void *hook_map_map(void *hint, size_t length, int protection, int flags, int fd, off_t offset,
                          struct caller caller) {
    uint32_t pass = stow_pass_begin();
    bool over = stow_pass_watched(pass) && flags & MAP_FIXED && is_range(hint, length);
    if (over) stow_note_change((uintptr_t)hint, length);
    void *p = NEXT(mmap)(hint, length, protection, flags, fd, offset);
    /* If the call fails, the old mappings stay. */
    if (over && p != MAP_FAILED) stow_note_unmap((uintptr_t)hint, length);
    stow_pass_end(pass);
    if (flags & MAP_FIXED) stack_note_unmapping();
    if (p != MAP_FAILED && hook_map_counts(caller))
        mappings_add((uintptr_t)p, length, hook_map_kind_of(protection, flags), (flags & MAP_TYPE) != MAP_PRIVATE,
                     site_of_new(caller));
    return p;
}

HOOK void *mmap(void *hint, size_t length, int protection, int flags, int fd, off_t offset) {
    return hook_map_map(hint, length, protection, flags, fd, offset, CALLER);
}

HOOK void *mmap64(void *hint, size_t length, int protection, int flags, int fd, off64_t offset) {
    return hook_map_map(hint, length, protection, flags, fd, offset, CALLER);
}

static int hook_map_unmap(void *start, size_t length) {
    struct stow_unmapped unmapped = {0};
    uint32_t pass = stow_pass_begin();
    if (stow_pass_watched(pass) && is_range(start, length)) stow_note_unmapping((uintptr_t)start, length, &unmapped);
    int result = NEXT(munmap)(start, length);
    if (result && unmapped.count)
        stow_put_back(&unmapped); /* the kernel refused, because there would be too many mappings */
    stow_pass_end(pass);
    stack_note_unmapping();
    return result;
}

HOOK int munmap(void *start, size_t length) {
    if (!hook_map_counts(CALLER) || !is_range(start, length)) return hook_map_unmap(start, length);
    uint32_t ticket = mappings_take((uintptr_t)start, os_round_up(length, OS_PAGE));
    int result = hook_map_unmap(start, length);
    if (result)
        mappings_restore(ticket);
    else
        mappings_drop(ticket);
    return result;
}

/* Call it before mremap. Stowed memory has a file behind it, and mremap could make the memory longer than that file.
 * So the range becomes plain memory first. Returns false, with errno set, if that failed. */
static bool make_whole(void *start, size_t length, void *over, size_t over_length) {
    int error = is_range(start, length) ? stow_note_whole((uintptr_t)start, length, false) : 0;
    if (over) stow_note_change((uintptr_t)over, over_length);
    if (error) errno = ENOMEM;
    return !error;
}

static void *hook_map_remap(void *old, size_t old_length, size_t length, int flags, void *hint) {
    uint32_t pass = stow_pass_begin();
    void *p = MAP_FAILED, *over = flags & MREMAP_FIXED && is_range(hint, length) ? hint : NULL;
    if (!stow_pass_watched(pass) || make_whole(old, old_length, over, length))
        p = NEXT(mremap)(old, old_length, length, flags, hint);
    if (stow_pass_watched(pass) && over && p != MAP_FAILED) stow_note_unmap((uintptr_t)over, length);
    stow_pass_end(pass);
    stack_note_unmapping();
    return p;
}

/* Does an mremap that keeps the old range: an old length of 0 maps a shared mapping a second time, and MREMAP_DONTUNMAP
 * leaves the old range empty. */
static void *remap_keeping_old(void *old, size_t old_length, size_t length, int flags, void *hint,
                               struct caller caller) {
    void *p = hook_map_remap(old, old_length, length, flags, hint);
    if (p != MAP_FAILED) mappings_copy((uintptr_t)old, (uintptr_t)p, length, site_of_mapping(caller));
    return p;
}

HOOK void *mremap(void *old, size_t old_length, size_t length, int flags, ...) {
    void *hint = NULL;
    if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) {
        va_list list;
        va_start(list, flags);
        hint = va_arg(list, void *);
        va_end(list);
    }
    if (!hook_map_counts(CALLER) || (old_length && !is_range(old, old_length)))
        return hook_map_remap(old, old_length, length, flags, hint);
    if (!old_length || flags & MREMAP_DONTUNMAP) return remap_keeping_old(old, old_length, length, flags, hint, CALLER);
    uint32_t ticket = mappings_take((uintptr_t)old, os_round_up(old_length, OS_PAGE));
    void *p = hook_map_remap(old, old_length, length, flags, hint);
    if (p == MAP_FAILED)
        mappings_restore(ticket);
    else
        mappings_put(ticket, (uintptr_t)p, length);
    return p;
}

/* Makes the range plain memory (not stowed) before the program gives its mapping a property. Otherwise the property
 * would be lost when stowed memory comes back in a new mapping. Returns false if the range could not be made plain.
 * In a sandbox (-EPERM) the range stays as it is, and the result is true: stowed memory comes back in its old mapping
 * there, so the property is not lost. */
static bool make_whole_to_mark(uintptr_t start, size_t length) {
    int error = stow_note_whole(start, length, false);
    return !error || error == -EPERM;
}

/* Some advice has another meaning for file-backed memory, or is refused there. Stowed memory is file-backed, so it is
 * made plain first. False: it could not be made plain, and the kernel must not get the advice. */
static bool prepare_advice(void *start, size_t length, int advice) {
    if (!is_range(start, length)) return true;
    if (advice == MADV_DONTNEED || advice == MADV_FREE || advice == ADVICE_DONTNEED_LOCKED ||
        advice == ADVICE_GUARD_INSTALL)
        return !stow_note_discard((uintptr_t)start, length);
    if (advice == MADV_WIPEONFORK || advice == MADV_DONTFORK || advice == MADV_DONTDUMP)
        return make_whole_to_mark((uintptr_t)start, length);
    if (advice == MADV_MERGEABLE || advice == MADV_REMOVE) stow_note_whole((uintptr_t)start, length, false);
    return true;
}

HOOK int madvise(void *start, size_t length, int advice) {
    uint32_t pass = stow_pass_begin();
    int result = -1;
    if (!stow_pass_watched(pass) || prepare_advice(start, length, advice))
        result = NEXT(madvise)(start, length, advice);
    else
        errno = ENOMEM;
    stow_pass_end(pass);
    if (!result && hook_map_counts(CALLER)) mappings_advise((uintptr_t)start, length, advice);
    return result;
}

HOOK int mprotect(void *start, size_t length, int protection) {
    uint32_t pass = stow_pass_begin();
    if (stow_pass_watched(pass) && is_range(start, length)) stow_note_change((uintptr_t)start, length);
    int result = NEXT(mprotect)(start, length, protection);
    stow_pass_end(pass);
    if (!(protection & PROT_READ)) stack_note_unmapping();
    if (!result && hook_map_counts(CALLER)) mappings_protect((uintptr_t)start, length, protection != PROT_NONE);
    return result;
}

/* The program locks memory so that it stays in memory. So the call first waits for a move in progress, and stowed
 * content comes back. */
static bool make_whole_to_lock(uint32_t pass, const void *start, size_t length) {
    uintptr_t first = (uintptr_t)start & ~(uintptr_t)(OS_PAGE - 1);
    if (!stow_pass_watched(pass) || make_whole_to_mark(first, length + ((uintptr_t)start - first))) return true;
    errno = ENOMEM;
    return false;
}

HOOK int mlock(const void *start, size_t length) {
    uint32_t pass = stow_pass_begin();
    int result = make_whole_to_lock(pass, start, length) ? NEXT(mlock)(start, length) : -1;
    stow_pass_end(pass);
    return result;
}

HOOK int mlock2(const void *start, size_t length, unsigned flags) {
    uint32_t pass = stow_pass_begin();
    int result = make_whole_to_lock(pass, start, length) ? NEXT(mlock2)(start, length, flags) : -1;
    stow_pass_end(pass);
    return result;
}

/* If the call sets a protection key, the range is restored first: the key would be lost when stowed memory gets a new
 * mapping. */
HOOK int pkey_mprotect(void *start, size_t length, int protection, int key) {
    uint32_t pass = stow_pass_begin();
    int result = -1;
    if (key == -1 && stow_pass_watched(pass) && is_range(start, length)) stow_note_change((uintptr_t)start, length);
    if (key == -1 || make_whole_to_lock(pass, start, length))
        result = NEXT(pkey_mprotect)(start, length, protection, key);
    stow_pass_end(pass);
    if (!(protection & PROT_READ)) stack_note_unmapping();
    if (!result && hook_map_counts(CALLER)) mappings_protect((uintptr_t)start, length, protection != PROT_NONE);
    return result;
}

/* First waits for moves in progress (stow_note_change). With MCL_CURRENT, the program wants the memory that exists to
 * stay in memory, so stowed content comes back before the call. After the call, no move takes locked memory
 * (STOW_LOCKED), and with MCL_FUTURE no memory is moved out at all (STOW_LOCKS_FUTURE). */
HOOK int mlockall(int flags) {
    uint32_t pass = stow_pass_begin();
    int result = -1;
    if (stow_pass_watched(pass)) stow_note_change(0, (size_t)1 << 47);
    if (!(flags & MCL_CURRENT) || make_whole_to_lock(pass, NULL, (size_t)1 << 47)) result = NEXT(mlockall)(flags);
    stow_pass_end(pass);
    return result;
}

static void note_break(uintptr_t before, uintptr_t after, struct caller caller) {
    if (after < before) stack_note_unmapping();
    if (after > before)
        mappings_add(before, after - before, SNAP_MAP_BRK, false, site_of_mapping(caller));
    else if (after < before)
        mappings_drop(mappings_take(after, before - after));
}

/* Only the program's own calls come here: glibc's malloc uses an internal function. */
void *hook_sbrk(intptr_t change) {
    void *before = HOOK_NEXT(sbrk)(change);
    if (before != (void *)-1 && change && hook_map_counts(CALLER))
        note_break((uintptr_t)before, (uintptr_t)before + (uintptr_t)change, CALLER);
    return before;
}

/* Takes the old break from libc's sbrk, because another library may define sbrk, but not brk. */
int hook_brk(void *address) {
    void *before = LIBC(sbrk)(0);
    int result = HOOK_NEXT(brk)(address);
    if (!result && hook_map_counts(CALLER)) note_break((uintptr_t)before, (uintptr_t)address, CALLER);
    return result;
}

MIMALLOC_CALLS(mmap)
MIMALLOC_CALLS(munmap)
MIMALLOC_CALLS(madvise)
MIMALLOC_CALLS(mprotect)
