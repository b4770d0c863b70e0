/* register_shutdown.c — the entry points of memstow.h for clean endings.
 * In: the program's calls, with any argument. Out: the same calls to shutdown.c and shutdown_processes.c, with checked
 * arguments. Every call keeps errno, and notes for memstow_error why it failed. */
#include "include/memstow.h"

#include <errno.h>
#include <string.h>

#include "preload/abi/entry.h"
#include "preload/ledger/ledger.h"
#include "preload/life/left_origins.h"
#include "preload/shutdown/shutdown.h"
#include "preload/shutdown/shutdown_audit.h"
#include "preload/shutdown/shutdown_file.h"
#include "preload/shutdown/shutdown_list.h"
#include "preload/shutdown/shutdown_log.h"
#include "preload/shutdown/shutdown_processes.h"
#include "preload/shutdown/shutdown_threads.h"
#include "preload/base/seal.h"

enum { NAME_SIZE = 64, AFTER_SIZE = 512, MS = 1000000, HANDLER_LEAST = sizeof(struct memstow_handler) };

/* Prepares the coordinator for any call. True: the call must be refused, because the process is in a sandbox, where no
 * file may be opened. */
static bool is_refused(void) {
    shutdown_check_process();
    shutdown_audit_ask(&left_origins);
    return seal_is_set();
}

static int64_t register_shutdown_sealed(void) { return entry_fails(-ENODEV, "the process is in a sandbox"); }

EXPORTED int32_t memstow_shutdown_files(const char *log, const char *registry) {
    char first[SHUTDOWN_PATH], second[SHUTDOWN_PATH];
    if (is_refused()) return (int32_t)register_shutdown_sealed();
    if (!entry_text(first, sizeof first, log) || !entry_text(second, sizeof second, registry))
        return (int32_t)entry_fails(-EFAULT, "a path cannot be read");
    if (!shutdown_log_file(first) || !shutdown_list_file(second))
        return (int32_t)entry_fails(-ENAMETOOLONG, "a path is too long");
    return 0;
}

static int32_t add_handler(const struct memstow_handler *handler) {
    char name[NAME_SIZE + 1], after[AFTER_SIZE + 1];
    if (!entry_text(name, sizeof name, handler->name) || !entry_text(after, sizeof after, handler->after))
        return (int32_t)entry_fails(-EFAULT, "a name cannot be read");
    if (!name[0] || strlen(name) >= NAME_SIZE || strchr(name, ',') || strlen(after) >= AFTER_SIZE)
        return (int32_t)entry_fails(-EINVAL, "a name is empty, too long, or has a comma in it");
    if (handler->stage < MEMSTOW_STOP_ACCEPTING || handler->stage > MEMSTOW_CLEAN || !handler->run)
        return (int32_t)entry_fails(-EINVAL, "there is no such stage, or the handler has no function");
    int result = shutdown_handler(handler, name, after);
    if (result == -EEXIST) return (int32_t)entry_fails(result, "there is a handler of that name");
    if (result == -ENOSPC) return (int32_t)entry_fails(result, "there are 256 handlers");
    return (int32_t)entry_result(result);
}

EXPORTED int32_t memstow_shutdown_handler(const struct memstow_handler *handler) {
    struct memstow_handler copy = {0};
    uint32_t size = 0;
    if (is_refused()) return (int32_t)register_shutdown_sealed();
    if (!entry_in(&size, handler, sizeof size)) return (int32_t)entry_fails(-EFAULT, "the handler cannot be read");
    if (size < HANDLER_LEAST) return (int32_t)entry_fails(-EINVAL, "the handler's size is too small");
    if (!entry_in(&copy, handler, sizeof copy)) return (int32_t)entry_fails(-EFAULT, "the handler cannot be read");
    return add_handler(&copy);
}

static int32_t add_process(int32_t pid, const char *name, uint32_t keep, uint64_t number) {
    char text[NAME_SIZE];
    if (is_refused()) return (int32_t)register_shutdown_sealed();
    if (!entry_text(text, sizeof text, name)) return (int32_t)entry_fails(-EFAULT, "the name cannot be read");
    int result = pid < 2 ? -ESRCH : shutdown_process_add((uint32_t)pid, text, keep == 1, number);
    if (result == -ESRCH) return (int32_t)entry_fails(result, "there is no such process, or it is the calling one");
    if (result == -ENOSPC) return (int32_t)entry_fails(result, "there are 256 processes");
    if (result == -EIO) return (int32_t)entry_fails(result, "process_registry.json cannot be written");
    return (int32_t)entry_result(result);
}

EXPORTED int32_t memstow_shutdown_process(int32_t pid, const char *name, uint32_t keep) {
    return add_process(pid, name, keep, 0);
}

EXPORTED int32_t memstow_shutdown_launched(int32_t pid, const char *name, uint32_t keep, uint64_t number) {
    return number ? add_process(pid, name, keep, number)
                  : (int32_t)entry_fails(-EINVAL, "NUMBER in MEMSTOW_STARTED must not be 0");
}

EXPORTED int32_t memstow_shutdown_forget(int32_t pid) {
    if (is_refused()) return (int32_t)register_shutdown_sealed();
    int result = pid < 2 ? -ENOENT : shutdown_process_forget((uint32_t)pid);
    return result == -ENOENT ? (int32_t)entry_fails(result, "no such process is registered")
                             : (int32_t)entry_result(result);
}

EXPORTED int32_t memstow_shutdown_begin(const char *reason, uint32_t milliseconds, int32_t status) {
    char text[256];
    if (is_refused()) return (int32_t)register_shutdown_sealed();
    if (!entry_text(text, sizeof text, reason)) return (int32_t)entry_fails(-EFAULT, "the reason cannot be read");
    uint64_t ms = milliseconds ? milliseconds : SHUTDOWN_LIMIT_S * 1000;
    int result = shutdown_begin(text, ms * MS, status);
    return result == -EALREADY ? (int32_t)entry_fails(result, "a shutdown has begun") : (int32_t)entry_result(result);
}

EXPORTED int32_t memstow_shutdown_on_signal(int32_t number, uint32_t milliseconds, int32_t status) {
    int error = errno;
    if (is_refused()) return (int32_t)register_shutdown_sealed();
    uint64_t ms = milliseconds ? milliseconds : SHUTDOWN_LIMIT_S * 1000;
    int result = shutdown_on_signal(number, ms * MS, status);
    errno = error;
    return result < 0 ? (int32_t)entry_fails(result, "no such signal, or the program has no handler for it") : 0;
}

EXPORTED int32_t memstow_shutdown_stage(uint32_t stage) {
    if (is_refused()) return (int32_t)register_shutdown_sealed();
    if (stage < MEMSTOW_STOP_ACCEPTING || stage > MEMSTOW_END_THREADS)
        return (int32_t)entry_fails(-EINVAL, "no such stage");
    shutdown_stage(stage);
    return 0;
}

EXPORTED int64_t memstow_shutdown_run(uint32_t stage) {
    if (is_refused()) return register_shutdown_sealed();
    if (stage < MEMSTOW_STOP_ACCEPTING || stage > MEMSTOW_CLEAN) return entry_fails(-EINVAL, "no such stage");
    int error = errno;
    int64_t result = shutdown_run(stage);
    errno = error;
    return result;
}

EXPORTED int32_t memstow_shutdown_step(const char *step, const char *name, int64_t result) {
    char what[NAME_SIZE], whose[NAME_SIZE];
    if (is_refused()) return (int32_t)register_shutdown_sealed();
    if (!entry_text(what, sizeof what, step) || !entry_text(whose, sizeof whose, name))
        return (int32_t)entry_fails(-EFAULT, "a name cannot be read");
    shutdown_log_step(what, whose, result, 0);
    return 0;
}

EXPORTED int64_t memstow_shutdown_processes(uint32_t milliseconds) {
    if (is_refused()) return register_shutdown_sealed();
    uint64_t ms = milliseconds ? milliseconds : SHUTDOWN_PROCESS_S * 1000;
    shutdown_stage(MEMSTOW_END_PROCESSES);
    return shutdown_processes_end(ms * MS);
}

EXPORTED int32_t memstow_shutdown_thread(const char *name) {
    char text[NAME_SIZE];
    if (is_refused()) return (int32_t)register_shutdown_sealed();
    if (!entry_text(text, sizeof text, name)) return (int32_t)entry_fails(-EFAULT, "the name cannot be read");
    int result = shutdown_thread_add(text);
    if (result == -EINVAL) return (int32_t)entry_fails(result, "the first thread ends with the process");
    if (result == -ENOSPC) return (int32_t)entry_fails(result, "there are 256 threads");
    return (int32_t)entry_result(result);
}

EXPORTED int64_t memstow_shutdown_threads(uint32_t milliseconds) {
    if (is_refused()) return register_shutdown_sealed();
    uint64_t ms = milliseconds ? milliseconds : SHUTDOWN_THREAD_S * 1000;
    shutdown_stage(MEMSTOW_END_THREADS);
    return shutdown_threads_wait(ms * MS);
}

EXPORTED int64_t memstow_shutdown_end(uint32_t goes_on) {
    if (is_refused()) return register_shutdown_sealed();
    int64_t result = shutdown_end(goes_on == 1);
    return result == -ENOENT ? entry_fails(result, "no shutdown has begun") : result;
}

EXPORTED int64_t memstow_shutdown_left(int32_t *pids, uint32_t count) {
    if (is_refused()) return register_shutdown_sealed();
    enum { PIDS_MOST = 256 };
    int32_t copy[PIDS_MOST];
    uint32_t capacity = count < PIDS_MOST ? count : PIDS_MOST;
    int64_t left = shutdown_processes_were_left(copy, capacity);
    size_t length = (left < capacity ? (size_t)left : capacity) * sizeof *pids;
    if (length && !entry_out(pids, copy, length)) return entry_fails(-EFAULT, "the list cannot be written");
    return left;
}

EXPORTED int64_t memstow_shutdown(const char *reason, uint32_t milliseconds, int32_t status) {
    int64_t result = memstow_shutdown_begin(reason, milliseconds, status);
    if (result < 0) return result;
    for (uint32_t stage = MEMSTOW_STOP_ACCEPTING; stage <= MEMSTOW_CLEAN; stage++)
        result += memstow_shutdown_run(stage);
    result += memstow_shutdown_processes(0);
    result += memstow_shutdown_threads(0);
    return result + memstow_shutdown_end(0);
}
