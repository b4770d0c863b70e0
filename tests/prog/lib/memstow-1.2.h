/* memstow.h — the registration ABI of libmemstow.so: who owns memory, and what is to become of it.
 *
 * A program that runs under `memstow run` finds these functions by dlsym(RTLD_DEFAULT, …) or, from Python, by
 * ctypes.CDLL(None). Without memstow they are not there: look before you call. docs/abi.md is the prose, with a
 * runnable example in C and one in Python.
 *
 * Every function may be called from any thread at any time, before and after fork, with any argument, and keeps errno.
 * What fails returns -errno and changes nothing; memstow_error() then says why. Common to all: -ENODEV, the process
 * keeps no ledger; -EINVAL, an argument that cannot be meant; -ENOENT, no such owner; -EFAULT, a pointer at memory that
 * cannot be read or written; -ENOMEM. Texts are UTF-8, NUL-terminated and copied; NULL is "". Sizes are bytes.
 *
 * Structures begin with `size`: the caller sets it to sizeof, and gets as much as that; a later minor version only
 * appends fields. */
#ifndef MEMSTOW_H
#define MEMSTOW_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface: major << 16 | minor. Functions are added with a new minor, never changed. */
#define MEMSTOW_ABI_VERSION 0x00010002u

/* The version that the library in the process implements. */
uint32_t memstow_abi_version(void);

/* 1 when the process keeps a ledger, 0 when it does not (left out by --follow, or no memory for one). */
int32_t memstow_is_tracking(void);

/* Why the last call of this thread failed; "" when none has. Valid until the thread's next call. Never NULL. */
const char *memstow_error(void);

/* --- owners --- */

enum memstow_kind { MEMSTOW_MODEL = 1, MEMSTOW_NODE = 2, MEMSTOW_RUN = 3, MEMSTOW_CUSTOM = 4 };

/* The id, above 0, of the owner of this kind (not MEMSTOW_RUN: memstow_run_begin) with these two keys, which the
 * program chooses: addresses of its objects, say. Among owners that are not retired the same keys are the same owner,
 * whose name and origin stay what they were first; keys 0, 0 are always a new one. Two ledgers are compared by kind,
 * name and origin. Ids are never given twice. -ENOSPC: there are 2^20 already. */
int64_t memstow_owner_open(uint32_t kind, const char *name, const char *origin, uint64_t key1, uint64_t key2);

/* All that `provisional` has, or will get, is `owner`'s; `provisional` is retired. Both are models or customs; a model
 * that is loaded before the object exists which it is known by is loaded under a provisional owner. */
int32_t memstow_owner_adopt(uint32_t owner, uint32_t provisional);

/* The owner is gone: its keys may be another's. What it still has stays its own, and is what a leak report begins with.
 * When the last of it is freed, what its heap holds goes back to the system at once. */
int32_t memstow_owner_retire(uint32_t owner);

enum memstow_policy { MEMSTOW_NO_POLICY = 0, MEMSTOW_KEEP = 1, MEMSTOW_STOW = 2, MEMSTOW_FREE = 3 };

/* What a trigger does with a model or custom owner; MEMSTOW_NO_POLICY, as at first, counts as keep. Under pressure,
 * owners of lower priority go first; 0 at first. */
int32_t memstow_owner_policy(uint32_t owner, uint32_t policy, int32_t priority);

/* 1: nobody reads or writes what the owner has until this is called with 0. Where the kernel cannot move pages
 * atomically only idle owners are stowed. */
int32_t memstow_owner_idle(uint32_t owner, uint32_t idle);

struct memstow_figures {
    uint32_t size;
    uint32_t kind, policy; /* enum memstow_kind, memstow_policy */
    int32_t priority;
    uint32_t retired, adopted_by;                      /* 0 or 1; 0 or the owner that has all of it now */
    uint64_t live_bytes, live_blocks, allocated_bytes; /* host and mapped together */
    uint64_t host_bytes, mapped_bytes, cuda_bytes;     /* of live_bytes; cuda beside them */
    uint64_t resident_bytes; /* of what can be stowed: blocks and ranges of whole pages; UINT64_MAX: cannot be told */
    uint64_t stowed_bytes;   /* content elsewhere, address still there */
    uint64_t movable_bytes;  /* what memstow_stow would look at */
};

/* Sums up what all threads counted: milliseconds where there are a million sites. */
int32_t memstow_owner_figures(uint32_t owner, struct memstow_figures *out);

/* --- scopes: what a thread allocates is whose --- */

/* Until it is left, what this thread allocates is the owner's: one model or custom and one node at a time, the
 * innermost scope of each. A scope of an owner that is retired meanwhile goes on. -ENOSPC: MEMSTOW_SCOPES are open. */
int32_t memstow_scope_enter(uint32_t owner);

/* Leaves the thread's innermost scope of the owner's kind (model and custom are one), which must be the owner's: else
 * -EPERM. */
int32_t memstow_scope_leave(uint32_t owner);

enum { MEMSTOW_SCOPES = 62 };
/* The scopes of a thread, outermost first, to go on with elsewhere: in a worker thread, or when a coroutine goes on. */
struct memstow_scopes {
    uint32_t size;
    uint32_t count;
    uint32_t owners[MEMSTOW_SCOPES];
};

/* Makes `now` the scopes of this thread (NULL: none), and writes those that it had to `before` (NULL: not wanted); the
 * two may be one. To only look, use memstow_scope_save. */
int32_t memstow_scope_swap(const struct memstow_scopes *now, struct memstow_scopes *before);
int32_t memstow_scope_save(struct memstow_scopes *out);

/* --- ranges: memory that exists becomes an owner's --- */

/* `length` bytes at `start` are the model's or custom's from now on: a block, or part of one, or of a mapping of the
 * program. `start` is that of a block, or lies in a block of at least 64 KiB or in a mapping. The stack, node and run
 * of the block stay what they were; each byte is counted once. What can be moved of it are the whole pages, in a block
 * of at least 64 KiB or in a mapping. The caller sees to it that nobody frees the block meanwhile. -ENXIO: it is no
 * such memory. */
int32_t memstow_assign(uint32_t owner, const void *start, uint64_t length);

/* The same with no owner. */
int32_t memstow_release_range(const void *start, uint64_t length);

/* --- runs --- */

enum memstow_outcome { MEMSTOW_OK = 0, MEMSTOW_FAILED = 1, MEMSTOW_CANCELLED = 2, MEMSTOW_OUT_OF_MEMORY = 3 };

/* Begins a run: from now on what any thread allocates is in it. The id of its owner, of kind run; -EBUSY: one is on. */
int64_t memstow_run_begin(const char *name);
/* -ENOENT: that run is not on. */
int32_t memstow_run_end(uint32_t run, uint32_t outcome);

/* --- moving memory out and back --- */

/* Moves what the owner has, as far as it can be moved, out to files in the stow directory; addresses stay, and whoever
 * uses it brings it back page by page. Returns the bytes that left; what could not be moved, and why, is in the trace.
 * -EBUSY: it is moving; -ENOTSUP: the kernel cannot move it atomically, and the owner is not idle; -ENOSPC, -EIO: of
 * the disk. Nothing is lost in any case. */
int64_t memstow_stow(uint32_t owner);
/* Brings all of it back into memory that is backed by no file. Returns the bytes; -EIO: it cannot be read, and stays
 * stowed; -ENOMEM, -EBUSY: what was in a device's memory is still out, and must not be used. */
int64_t memstow_restore(uint32_t owner);
/* Gives back what the system can have without losing anything: free memory of the owner's heap, clean pages of files.
 * Returns the bytes of the latter; of the heap nobody knows. Heaps of owners that it adopted, or of a retired one, are
 * not gone through: their pages go back as they become free. */
int64_t memstow_release(uint32_t owner);

/* --- triggers and the trace of decisions --- */

enum memstow_reason {
    MEMSTOW_RUN_ENDED = 1,
    MEMSTOW_REQUEST = 2,
    MEMSTOW_PRESSURE = 3,
    MEMSTOW_IDLE = 4,
};

/* What is to become of one owner. */
struct memstow_decision {
    uint32_t owner;
    uint32_t policy;     /* what applies: enum memstow_policy, never MEMSTOW_NO_POLICY */
    uint32_t action;     /* the same, or MEMSTOW_KEEP where that is not to be done now */
    uint32_t why;        /* enum memstow_why */
    uint64_t live_bytes; /* of the owner */
};
enum memstow_why {
    MEMSTOW_WHY_NOTHING_SAID = 1, /* no policy: keep */
    MEMSTOW_WHY_POLICY = 2,
    MEMSTOW_WHY_IN_USE = 3,     /* one of its scopes is open */
    MEMSTOW_WHY_PRESSURE = 4,   /* kept until memory was short */
    MEMSTOW_WHY_EMPTY = 5,      /* it has nothing */
    MEMSTOW_WHY_RETIRED = 6,    /* who had it is gone: only what it left is looked at */
    MEMSTOW_WHY_NOT_NEEDED = 7, /* pressure was over before its turn */
    MEMSTOW_WHY_CANNOT = 8,     /* to be stowed, but it cannot be moved: see memstow_stow */
    MEMSTOW_WHY_RECENT = 9,     /* used too lately for MEMSTOW_IDLE */
};

/* Begins a trigger and decides, in the order in which it is to be done: a program whose own objects hold memory looks
 * at the list, drops what it is to free, and calls memstow_trigger_end. Writes at most `room` decisions to `out`, each
 * of `size` bytes as sizeof(struct memstow_decision); returns how many there are. `needed`: bytes to be given back,
 * under MEMSTOW_PRESSURE (0: as much as can be had); else 0. -EBUSY: a trigger is on; one that nobody
 * ended is over when the thread that began it is. */
int64_t memstow_trigger_begin(uint32_t reason, const char *text, uint64_t needed, struct memstow_decision *out,
                              uint32_t room, uint32_t size);
/* Does what is left to do: stows, gives back free memory, and notes in the trace what remains. The bytes given back. */
int64_t memstow_trigger_end(void);
/* Both, for a program that has nothing to drop. */
int64_t memstow_trigger(uint32_t reason, const char *text);

/* Adds a line to the trace: a JSON object of at most 4000 bytes. docs/decisions.md has the lines that memstow writes by
 * itself, and those that it expects of a program. */
int32_t memstow_trace(const char *json);
/* Copies whole lines, each with its newline, from line `from` on (0: the first that is kept) into `to`; returns their
 * length, and writes the number of the line to go on with to `next` (NULL: not wanted). -ENOSPC: the next line alone is
 * longer than `room`; 4097 bytes are enough for any. */
int64_t memstow_decisions(char *to, uint64_t room, uint64_t from, uint64_t *next);

/* --- requests from outside (`memstow trigger PID` and others) --- */

struct memstow_request {
    uint32_t size;
    uint32_t kind; /* enum memstow_request_kind */
    uint64_t ticket;
    uint32_t owner;  /* of all but a trigger */
    uint32_t reason; /* of a trigger: enum memstow_reason */
    char text[256];  /* the same: for memstow_trigger_begin, as is */
    uint64_t needed; /* this */
};
enum memstow_request_kind {
    MEMSTOW_ASK_TRIGGER = 1,
    MEMSTOW_ASK_STOW = 2,
    MEMSTOW_ASK_RESTORE = 3,
    MEMSTOW_ASK_RELEASE = 4
};

/* The next request, after waiting for at most so long: 1, or 0 when none came, or a signal did. From its first call on,
 * requests are the program's to answer, and so is short memory, if memstow is to look for it; until then memstow
 * answers by itself. -ENODEV also: none can come any more, the process is in a sandbox. */
int32_t memstow_request_next(struct memstow_request *out, uint32_t milliseconds);
/* The answer: bytes, or -errno, and a line of text. -ENOENT: no such request is to be answered. */
int32_t memstow_request_done(uint64_t ticket, int64_t result, const char *text);

/* --- the most of a while (since 1.2) --- */

/* The most that was live at once, host and mapped together, since the last call with `anew` not 0, or since the start.
 * With it, the next while begins with what is live now; so memstow_peak(1), then memstow_peak(0), is what is live. One
 * while at a time for the whole process. Known as the peak of the report is: up to 16 KiB for each other thread that
 * allocates, and within 1 MiB for any number of them. */
int64_t memstow_peak(uint32_t anew);

/* --- snapshots --- */

/* Writes a snapshot of this process, as `memstow snapshot` does; it runs that command, and waits for it. -EEXIST: the
 * file is no snapshot of this user's; -ENOENT: there is no such folder; -EIO: it could not be written, or the ledger
 * not be read; -ECHILD: the command could not be run. */
int32_t memstow_snapshot(const char *path);

/* --- clean endings (docs/endings.md): since 1.2. These need no ledger --- */

/* Where the log of a shutdown goes, and the list of processes for `memstow reap`: by default shutdown.log and
 * process_registry.json in the folder that the process is in when either is first needed. NULL: as it is. A list is of
 * one process: another that registers some in the same folder, a forked child too, is to name one of its own. */
int32_t memstow_shutdown_files(const char *log, const char *registry);

/* The stages of a shutdown, one after the other. */
enum memstow_stage {
    MEMSTOW_STOP_ACCEPTING = 1,
    MEMSTOW_DRAIN = 2,
    MEMSTOW_CANCEL = 3, /* run only when a handler of DRAIN failed, or took longer than it may */
    MEMSTOW_CLEAN = 4,
};

struct memstow_handler {
    uint32_t size;
    uint32_t stage;
    const char *name;      /* at most 63 bytes; no other has it */
    const char *after;     /* names, with commas between them, of those in its stage that end before it begins */
    uint32_t milliseconds; /* it may take; 0: 10,000. Who takes longer is left to itself, and the next go on */
    uint32_t parallel;     /* 1: others may run beside it */
    int32_t (*run)(void *context); /* on a thread of its own; 0, or -errno */
    void *context;
};

/* -EEXIST: there is one of that name; -ENOSPC: there are MEMSTOW_HANDLERS. */
enum { MEMSTOW_HANDLERS = 256 };
int32_t memstow_shutdown_handler(const struct memstow_handler *handler);

/* A process that this one has started is to end with it, or with keep = 1 to live on. It is known by pid and start, and
 * stands in the list from now on. Its process group ends with it when it leads one. -ESRCH: there is no such process.
 */
int32_t memstow_shutdown_process(int32_t pid, const char *name, uint32_t keep);
int32_t memstow_shutdown_forget(int32_t pid);

/* Begins: from now on the process has `milliseconds` (0: 30,000) to end. When they are over memstow ends it, with the
 * exit status `status`, whatever its threads are doing, and its processes with it: this is the only function of memstow
 * that ends a process. -EALREADY: it has begun. */
int32_t memstow_shutdown_begin(const char *reason, uint32_t milliseconds, int32_t status);
/* From now on the signal begins a shutdown so, before the handler that the program has for it is called: the limit
 * holds though nothing of the program's ever gets to run. Not in forked children. -EINVAL: it has no handler. */
int32_t memstow_shutdown_on_signal(int32_t number, uint32_t milliseconds, int32_t status);
/* Runs the handlers of a stage: how many failed or took too long. -EALREADY: another thread is at it. */
int64_t memstow_shutdown_run(uint32_t stage);
/* A line in the log, of what the program itself does: a step, the name of what it is about, and 0 or -errno. */
int32_t memstow_shutdown_step(const char *step, const char *name, int64_t result);
/* Ends the registered processes: SIGTERM, after `milliseconds` (0: 5,000) SIGKILL, also to who is left of a group whose
 * leader has ended. How many had to be killed. */
int64_t memstow_shutdown_processes(uint32_t milliseconds);
/* Notes in the log what is left, threads and processes: how many. 1: the process does not end, after all, and is not
 * ended; 0: it has what is left of its time to end. */
int64_t memstow_shutdown_end(uint32_t goes_on);

/* All of it, for a program whose handlers are C: begin, the four stages, processes, end. The sum of what they return.
 */
int64_t memstow_shutdown(const char *reason, uint32_t milliseconds, int32_t status);

#ifdef __cplusplus
}
#endif
#endif
