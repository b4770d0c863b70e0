/* The header of version 1.2, without its comments: programs that were built with it must go on working. */
#ifndef MEMSTOW_H
#define MEMSTOW_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MEMSTOW_ABI_VERSION 0x00010002u

uint32_t memstow_abi_version(void);

int32_t memstow_is_tracking(void);

const char *memstow_error(void);

enum memstow_kind { MEMSTOW_MODEL = 1, MEMSTOW_NODE = 2, MEMSTOW_RUN = 3, MEMSTOW_CUSTOM = 4 };

int64_t memstow_owner_open(uint32_t kind, const char *name, const char *origin, uint64_t key1, uint64_t key2);

int32_t memstow_owner_adopt(uint32_t owner, uint32_t provisional);

int32_t memstow_owner_retire(uint32_t owner);

enum memstow_policy { MEMSTOW_NO_POLICY = 0, MEMSTOW_KEEP = 1, MEMSTOW_STOW = 2, MEMSTOW_FREE = 3 };

int32_t memstow_owner_policy(uint32_t owner, uint32_t policy, int32_t priority);

int32_t memstow_owner_idle(uint32_t owner, uint32_t idle);

struct memstow_figures {
    uint32_t size;
    uint32_t kind, policy;
    int32_t priority;
    uint32_t retired, adopted_by;
    uint64_t live_bytes, live_blocks, allocated_bytes;
    uint64_t host_bytes, mapped_bytes, cuda_bytes;
    uint64_t resident_bytes;
    uint64_t stowed_bytes;
    uint64_t movable_bytes;
};

int32_t memstow_owner_figures(uint32_t owner, struct memstow_figures *out);

int32_t memstow_scope_enter(uint32_t owner);

int32_t memstow_scope_leave(uint32_t owner);

enum { MEMSTOW_SCOPES = 62 };

struct memstow_scopes {
    uint32_t size;
    uint32_t count;
    uint32_t owners[MEMSTOW_SCOPES];
};

int32_t memstow_scope_swap(const struct memstow_scopes *now, struct memstow_scopes *before);
int32_t memstow_scope_save(struct memstow_scopes *out);

int32_t memstow_assign(uint32_t owner, const void *start, uint64_t length);

int32_t memstow_release_range(const void *start, uint64_t length);

enum memstow_outcome { MEMSTOW_OK = 0, MEMSTOW_FAILED = 1, MEMSTOW_CANCELLED = 2, MEMSTOW_OUT_OF_MEMORY = 3 };

int64_t memstow_run_begin(const char *name);

int32_t memstow_run_end(uint32_t run, uint32_t outcome);

int64_t memstow_stow(uint32_t owner);

int64_t memstow_restore(uint32_t owner);

int64_t memstow_release(uint32_t owner);

enum memstow_reason {
    MEMSTOW_RUN_ENDED = 1,
    MEMSTOW_REQUEST = 2,
    MEMSTOW_PRESSURE = 3,
    MEMSTOW_IDLE = 4,
};

struct memstow_decision {
    uint32_t owner;
    uint32_t policy;
    uint32_t action;
    uint32_t why;
    uint64_t live_bytes;
};
enum memstow_why {
    MEMSTOW_WHY_NOTHING_SAID = 1,
    MEMSTOW_WHY_POLICY = 2,
    MEMSTOW_WHY_IN_USE = 3,
    MEMSTOW_WHY_PRESSURE = 4,
    MEMSTOW_WHY_EMPTY = 5,
    MEMSTOW_WHY_RETIRED = 6,
    MEMSTOW_WHY_NOT_NEEDED = 7,
    MEMSTOW_WHY_CANNOT = 8,
    MEMSTOW_WHY_RECENT = 9,
};

int64_t memstow_trigger_begin(uint32_t reason, const char *text, uint64_t needed, struct memstow_decision *out,
                              uint32_t room, uint32_t size);

int64_t memstow_trigger_end(void);

int64_t memstow_trigger(uint32_t reason, const char *text);

int32_t memstow_trace(const char *json);

int64_t memstow_decisions(char *to, uint64_t room, uint64_t from, uint64_t *next);

struct memstow_request {
    uint32_t size;
    uint32_t kind;
    uint64_t ticket;
    uint32_t owner;
    uint32_t reason;
    char text[256];
    uint64_t needed;
};
enum memstow_request_kind {
    MEMSTOW_ASK_TRIGGER = 1,
    MEMSTOW_ASK_STOW = 2,
    MEMSTOW_ASK_RESTORE = 3,
    MEMSTOW_ASK_RELEASE = 4
};

int32_t memstow_request_next(struct memstow_request *out, uint32_t milliseconds);

int32_t memstow_request_done(uint64_t ticket, int64_t result, const char *text);

int64_t memstow_peak(uint32_t anew);

int32_t memstow_snapshot(const char *path);

int32_t memstow_shutdown_files(const char *log, const char *registry);

enum memstow_stage {
    MEMSTOW_STOP_ACCEPTING = 1,
    MEMSTOW_DRAIN = 2,
    MEMSTOW_CANCEL = 3,
    MEMSTOW_CLEAN = 4,
};

struct memstow_handler {
    uint32_t size;
    uint32_t stage;
    const char *name;
    const char *after;
    uint32_t milliseconds;
    uint32_t parallel;
    int32_t (*run)(void *context);
    void *context;
};

enum { MEMSTOW_HANDLERS = 256 };
int32_t memstow_shutdown_handler(const struct memstow_handler *handler);

int32_t memstow_shutdown_process(int32_t pid, const char *name, uint32_t keep);
int32_t memstow_shutdown_forget(int32_t pid);

int32_t memstow_shutdown_begin(const char *reason, uint32_t milliseconds, int32_t status);

int32_t memstow_shutdown_on_signal(int32_t number, uint32_t milliseconds, int32_t status);

int64_t memstow_shutdown_run(uint32_t stage);

int32_t memstow_shutdown_step(const char *step, const char *name, int64_t result);

int64_t memstow_shutdown_processes(uint32_t milliseconds);

int64_t memstow_shutdown_end(uint32_t goes_on);

int64_t memstow_shutdown(const char *reason, uint32_t milliseconds, int32_t status);

#ifdef __cplusplus
}
#endif
#endif
