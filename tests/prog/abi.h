// abi.h — finds the registration ABI by dlsym, as a program does. `has_memstow` says whether it is there.
#ifndef ABI_H
#define ABI_H

#include "../../include/memstow.h"

#include <dlfcn.h>
#include <stdbool.h>

// X(type of the result, name, parameters)
#define ABI(X)                                                                                                         \
    X(uint32_t, memstow_abi_version, (void))                                                                           \
    X(int32_t, memstow_is_tracking, (void))                                                                            \
    X(const char *, memstow_error, (void))                                                                             \
    X(int64_t, memstow_owner_open, (uint32_t, const char *, const char *, uint64_t, uint64_t))                         \
    X(int32_t, memstow_owner_adopt, (uint32_t, uint32_t))                                                              \
    X(int32_t, memstow_owner_retire, (uint32_t))                                                                       \
    X(int32_t, memstow_owner_policy, (uint32_t, uint32_t, int32_t))                                                    \
    X(int32_t, memstow_owner_idle, (uint32_t, uint32_t))                                                               \
    X(int32_t, memstow_owner_discard, (uint32_t, uint32_t))                                                            \
    X(int32_t, memstow_owner_figures, (uint32_t, struct memstow_figures *))                                            \
    X(int64_t, memstow_shares, (struct memstow_share *, uint32_t, uint32_t))                                           \
    X(int32_t, memstow_scope_enter, (uint32_t))                                                                        \
    X(int32_t, memstow_scope_leave, (uint32_t))                                                                        \
    X(int32_t, memstow_scope_swap, (const struct memstow_scopes *, struct memstow_scopes *))                           \
    X(int32_t, memstow_scope_save, (struct memstow_scopes *))                                                          \
    X(int32_t, memstow_load_begin, (uint32_t))                                                                         \
    X(int32_t, memstow_load_end, (void))                                                                               \
    X(int32_t, memstow_assign, (uint32_t, const void *, uint64_t))                                                     \
    X(int32_t, memstow_release_range, (const void *, uint64_t))                                                        \
    X(int64_t, memstow_stow, (uint32_t))                                                                               \
    X(int64_t, memstow_restore, (uint32_t))                                                                            \
    X(int64_t, memstow_release, (uint32_t))                                                                            \
    X(int64_t, memstow_blocks, (const uint64_t *, uint32_t, uint32_t, struct memstow_block *, uint32_t))               \
    X(int64_t, memstow_run_begin, (const char *))                                                                      \
    X(int32_t, memstow_run_end, (uint32_t, uint32_t))                                                                  \
    X(int64_t, memstow_trigger_begin,                                                                                  \
      (uint32_t, const char *, uint64_t, struct memstow_decision *, uint32_t, uint32_t))                               \
    X(int64_t, memstow_trigger_end, (void))                                                                            \
    X(int64_t, memstow_trigger, (uint32_t, const char *))                                                              \
    X(int32_t, memstow_trace, (const char *))                                                                          \
    X(int64_t, memstow_decisions, (char *, uint64_t, uint64_t, uint64_t *))                                            \
    X(int32_t, memstow_request_next, (struct memstow_request *, uint32_t))                                             \
    X(int32_t, memstow_request_of, (struct memstow_request *, uint32_t, uint32_t))                                     \
    X(int32_t, memstow_request_done, (uint64_t, int64_t, const char *))                                                \
    X(int64_t, memstow_peak, (uint32_t))                                                                               \
    X(int64_t, memstow_state_open, (const char *, const struct memstow_state_options *))                               \
    X(int64_t, memstow_state_begin, (int64_t))                                                                         \
    X(int64_t, memstow_state_put, (int64_t, const char *, const char *, const struct memstow_state_part *, uint32_t))  \
    X(int64_t, memstow_state_commit, (int64_t))                                                                        \
    X(int32_t, memstow_state_abandon, (int64_t))                                                                       \
    X(int32_t, memstow_state_get, (int64_t, const char *, struct memstow_state_value *))                               \
    X(int32_t, memstow_state_get_committed, (int64_t, const char *, struct memstow_state_value *))                     \
    X(int64_t, memstow_state_list, (int64_t, struct memstow_state_value *, uint32_t, uint32_t))                        \
    X(int64_t, memstow_state_generation, (int64_t))                                                                    \
    X(int32_t, memstow_state_release, (int64_t, const char *))                                                         \
    X(int32_t, memstow_state_close, (int64_t, uint32_t))                                                               \
    X(int32_t, memstow_snapshot, (const char *))

#define ABI_POINTER(type, name, parameters) static type(*abi_##name) parameters __attribute__((unused));
ABI(ABI_POINTER)

static bool has_memstow;

#define ABI_FIND(type, name, parameters)                                                                               \
    abi_##name = (type(*) parameters)dlsym(RTLD_DEFAULT, #name);                                                       \
    has_memstow = has_memstow && abi_##name;

__attribute__((unused)) static void abi_find(void) {
    has_memstow = true;
    ABI(ABI_FIND)
}

// Calls the function if memstow is loaded. If memstow is not loaded, the value is `otherwise`.
#define CALL(otherwise, name, ...) (has_memstow ? abi_##name(__VA_ARGS__) : (otherwise))

#endif
