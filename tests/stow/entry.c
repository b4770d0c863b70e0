/* entry.c — exports the functions of the stow engine for its tests. */
#include "preload/stow/stow_table.h"
#include "preload/stow/stow.h"

#define EXPORT __attribute__((visibility("default")))

int64_t memstow_test_out(struct stow_piece *pieces, uint32_t count, const struct stow_options *options);
int64_t memstow_test_in(struct stow_piece *pieces, uint32_t count, const struct stow_options *options);
bool memstow_test_is_stowed(const void *address);
uint64_t memstow_test_bytes(uint32_t owner);
struct stow_progress memstow_test_progress(void);
int memstow_test_lock(const void *start, uint64_t length);
void memstow_test_unlock(const void *start, uint64_t length);
const char *memstow_test_text(uint32_t refusal);
void memstow_test_change_owner(uint32_t from, uint32_t to);

EXPORT int64_t memstow_test_out(struct stow_piece *pieces, uint32_t count, const struct stow_options *options) {
    return stow_out(pieces, count, options);
}

EXPORT int64_t memstow_test_in(struct stow_piece *pieces, uint32_t count, const struct stow_options *options) {
    return stow_in(pieces, count, options);
}

/* Whether a file backs the page. The page's content may be in memory again, because the program used it. */
EXPORT bool memstow_test_is_stowed(const void *address) {
    struct stow_region region;
    stow_table_lock();
    bool stowed = stow_table_first((uint64_t)address, (uint64_t)address + 1, &region);
    stow_table_unlock();
    return stowed;
}

EXPORT uint64_t memstow_test_bytes(uint32_t owner) { return stow_bytes(owner); }

EXPORT struct stow_progress memstow_test_progress(void) { return stow_progress(); }

EXPORT int memstow_test_lock(const void *start, uint64_t length) { return stow_lock_range((uint64_t)start, length); }

EXPORT void memstow_test_unlock(const void *start, uint64_t length) { stow_unlock_range((uint64_t)start, length); }

EXPORT const char *memstow_test_text(uint32_t refusal) { return stow_refusal_text(refusal); }

EXPORT void memstow_test_change_owner(uint32_t from, uint32_t to) { stow_change_owner(from, to); }
