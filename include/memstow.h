/* memstow.h — the registration ABI of libmemstow.so: a program says who owns memory, and what a trigger does with it.
 *
 * A program that runs under `memstow run` finds these functions by dlsym(RTLD_DEFAULT, …) or, from Python, by
 * ctypes.CDLL(None). Without memstow they are not there: look before you call. docs/abi.md explains them, with a
 * runnable example in C and one in Python.
 *
 * Every function may be called from any thread at any time, before and after fork, with any argument, and keeps errno.
 * A function that fails returns -errno and changes nothing; memstow_error() then says why. These errors are common to
 * all: -ENODEV, the process keeps no ledger; -EINVAL, an argument makes no sense; -ENOENT, there is no such owner;
 * -EFAULT, a pointer leads to memory that cannot be read or written; -ENOMEM; -EBUSY, another thread has held a lock of
 * memstow's for too long. Texts are UTF-8, NUL-terminated and copied; NULL is "". Sizes are bytes.
 *
 * Structures begin with `size`. The caller sets it to sizeof, and gets as much as that. A later minor version only
 * appends fields. */
#ifndef MEMSTOW_H
#define MEMSTOW_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface: major << 16 | minor. A new minor adds functions, and changes none. */
#define MEMSTOW_ABI_VERSION 0x00010007u

/* The version that the library in the process implements. */
uint32_t memstow_abi_version(void);

/* 1: the process keeps a ledger. 0: it does not (left out by --follow, or no memory for one). */
int32_t memstow_is_tracking(void);

/* Why the last call of this thread failed; "" if none has. Never NULL. Valid until the thread's next call. */
const char *memstow_error(void);

/* --- owners --- */

enum memstow_kind {
    MEMSTOW_MODEL = 1,
    MEMSTOW_NODE = 2,
    MEMSTOW_RUN = 3,
    MEMSTOW_CUSTOM = 4,
    MEMSTOW_STATE = 5, /* since 1.7: a value of the store (below), which opens and retires it */
};

/* Opens or finds the owner of this kind with these two keys, and returns its id, above 0. Runs have memstow_run_begin
 * instead of this.
 *
 * The program chooses the keys: addresses of its objects, say. Among owners that are not retired, the same keys mean
 * the same owner, which keeps its first name and origin. Keys 0, 0 always open a new owner. Ledgers are compared by
 * kind, name and origin. An id is never given twice. -ENOSPC: there are 2^20 owners already. */
int64_t memstow_owner_open(uint32_t kind, const char *name, const char *origin, uint64_t key1, uint64_t key2);

/* Gives all that `provisional` has, or will get, to `owner`, and retires `provisional`. Both are models or customs. It
 * is for a model that is loaded before its object exists: load it under a provisional owner. */
int32_t memstow_owner_adopt(uint32_t owner, uint32_t provisional);

/* The owner is gone: another owner may have its keys. What it still has stays its own, and is what a leak report begins
 * with. When the last of it is freed, the memory of its heap goes back to the system at once. Its id stays good for all
 * other calls: its scopes can be entered, its policy set, memory assigned to it, stowed and restored. Only triggers
 * leave it alone. */
int32_t memstow_owner_retire(uint32_t owner);

enum memstow_policy { MEMSTOW_NO_POLICY = 0, MEMSTOW_KEEP = 1, MEMSTOW_STOW = 2, MEMSTOW_FREE = 3 };

/* What a trigger does with a model or custom owner. MEMSTOW_NO_POLICY, the initial value, counts as keep. Under
 * pressure, owners of lower priority go first; the initial value is 0. */
int32_t memstow_owner_policy(uint32_t owner, uint32_t policy, int32_t priority);

/* 1: the program promises that nobody reads or writes what the owner has, on the host or on a device, until it calls
 * this with 0.
 *
 * Where the kernel cannot move pages atomically, only idle owners are stowed. Device memory moves of idle owners only,
 * because a device cannot bring back what it uses. With MEMSTOW_CUDA_MOVES memstow may take an idle owner's memory out
 * of the device at any time, when another owner needs memory there. The call with 0 waits for that (-EBUSY: it does not
 * end within a minute). After it, restore what is out (device_stowed_bytes) before you use it. */
int32_t memstow_owner_idle(uint32_t owner, uint32_t idle);

struct memstow_figures {
    uint32_t size;
    uint32_t kind, policy; /* enum memstow_kind, memstow_policy */
    int32_t priority;
    uint32_t retired, adopted_by;                      /* 0 or 1; 0 or the owner that has all of it now */
    uint64_t live_bytes, live_blocks, allocated_bytes; /* host and mapped together */
    uint64_t host_bytes, mapped_bytes, cuda_bytes;     /* the parts of live_bytes, and device memory */
    /* Of what can be stowed (blocks and ranges of whole pages): what the process has in memory; of stowed memory, what
     * it used since. Pages that were only read are one page of zeros for all, and hold nothing. Before Linux 6.7 they
     * cannot be told from others, and memstow_stow moves them, too. UINT64_MAX: not known. */
    uint64_t resident_bytes;
    uint64_t stowed_bytes;  /* content elsewhere, address still there */
    uint64_t movable_bytes; /* what memstow_stow would look at */
    /* since 1.3: of stowed_bytes, what was in a device's memory. It does not come back by use: use without
     * memstow_restore breaks the device's context. */
    uint64_t device_stowed_bytes;
};

/* Sums up what all threads counted. It takes milliseconds where there are a million sites. */
int32_t memstow_owner_figures(uint32_t owner, struct memstow_figures *out);

/* What is live of one model or custom in one node and one run; 0: none of the kind. Since 1.4. */
struct memstow_share {
    uint32_t model, node, run, reserved;
    uint64_t live_bytes, live_blocks; /* host and mapped together */
    uint64_t cuda_bytes;              /* beside them */
};

/* All that is live and has an owner, by model, node and run: each byte is in one share. Writes at most `capacity`
 * shares to `out`, each of `size` bytes (sizeof(struct memstow_share)), and returns how many there are. The same three
 * may come more than once. It takes as long as memstow_owner_figures for all owners together. */
int64_t memstow_shares(struct memstow_share *out, uint32_t capacity, uint32_t size);

/* --- scopes: whose memory a thread allocates --- */

/* Until the scope is left, what this thread allocates is the owner's: of one model or custom and of one node at a time,
 * the innermost scope of each. A scope goes on when its owner is retired meanwhile. -ENOSPC: MEMSTOW_SCOPES are open.
 */
int32_t memstow_scope_enter(uint32_t owner);

/* Leaves the thread's innermost scope of the owner's kind (model and custom are one kind). -EPERM: that scope is
 * another owner's. */
int32_t memstow_scope_leave(uint32_t owner);

enum { MEMSTOW_SCOPES = 62 };
/* The scopes of a thread, outermost first: for a worker thread, or for a coroutine that goes on. */
struct memstow_scopes {
    uint32_t size;
    uint32_t count;
    uint32_t owners[MEMSTOW_SCOPES];
};

/* Makes `now` the scopes of this thread (NULL: none), and writes the former ones to `before` (NULL: not wanted). The
 * two may be one. */
int32_t memstow_scope_swap(const struct memstow_scopes *now, struct memstow_scopes *before);
/* Writes the scopes of this thread, and changes nothing. */
int32_t memstow_scope_save(struct memstow_scopes *out);

/* --- ranges: memory that exists becomes an owner's --- */

/* Gives `length` bytes at `start` to the model or custom from now on: a block, a part of one, or a part of a mapping of
 * the program. `start` is that of a block, or lies in a block of at least 64 KiB or in a mapping. The stack, node and
 * run of the block stay what they were, and each byte is counted once. Of these bytes, whole pages in a block of at
 * least 64 KiB or in a mapping can move.
 *
 * They may also lie in a block that CUDA gave, on a device or pinned. A block on a device moves with the owner that has
 * all of it.
 *
 * The caller makes sure that nobody frees the block meanwhile. -ENXIO: it is no such memory; -EBUSY: it is out of the
 * device, call memstow_restore of its owner first; -ENOMEM: the ledger has no room to count it elsewhere. Then nothing
 * has changed. The call waits while the ledger grows on a slow disk. */
int32_t memstow_assign(uint32_t owner, const void *start, uint64_t length);

/* Takes the owner of such bytes away. */
int32_t memstow_release_range(const void *start, uint64_t length);

/* --- the owners of a block (since 1.6) --- */

struct memstow_block {
    uint64_t start, size;      /* size 0: no block that is counted */
    uint32_t model, node, run; /* as it is counted now; 0: none of the kind */
    /* The number of its call stack in this process's ledger; 0: none was recorded. It is equal for equal stacks.
     * Another stack may get it once nothing is live there. */
    uint32_t stack;
};

/* For memstow_blocks: an address may lie inside of a block, too. */
enum { MEMSTOW_INSIDE = 1 };
/* What is known of the blocks at `count` addresses. Writes as many structures, each of `size` bytes (sizeof(struct
 * memstow_block)), and returns how many of them are blocks. An address is the beginning of a block of the heap. With
 * MEMSTOW_INSIDE it may also lie inside of a block of at least 64 KiB, of a mapping of the program's, or of a block
 * that CUDA gave. An address may lead nowhere. The answer is of the moment: another thread may free the block
 * meanwhile. -ENODEV also in a sandbox. */
int64_t memstow_blocks(const uint64_t *addresses, uint32_t count, uint32_t how, struct memstow_block *out,
                       uint32_t size);

/* --- runs --- */

enum memstow_outcome { MEMSTOW_OK = 0, MEMSTOW_FAILED = 1, MEMSTOW_CANCELLED = 2, MEMSTOW_OUT_OF_MEMORY = 3 };

/* Begins a run: all later allocations, on any thread, are in it. Returns the id of its owner, of kind run. -EBUSY: a
 * run is on. */
int64_t memstow_run_begin(const char *name);
/* Ends it. -ENOENT: that run is not on. */
int32_t memstow_run_end(uint32_t run, uint32_t outcome);

/* --- moving memory out and back --- */

/* Moves what the owner has, as far as possible, out to files in the stow directory. Addresses stay, and a later use
 * brings it back page by page. Since 1.3 it also moves what an idle owner has in devices, where MEMSTOW_CUDA_MOVES is
 * set: that goes to memory of the process, and comes back by memstow_restore alone. Returns the bytes that left. The
 * trace has what could not be moved, and why.
 *
 * - -EBUSY: it is moving.
 * - -ENOTSUP: the kernel cannot move it atomically, and the owner is not idle; or there is no stow directory, or it is
 *   in memory or on a network; or another reason of docs/moving.md.
 * - -ENOSPC, -EIO: of the disk.
 * - -ECANCELED: it was ended before any of it had moved, by the asker of the request (memstow_request_next) that it was
 *   made for, or from outside (memstow stow --cancel).
 * - Of devices, -EBUSY: the owner is not idle, a stream is being captured, a kernel does not end, or it was written to
 *   meanwhile; -EPERM: another library knows its address, or another owner has parts of it; -ENOMEM: the host has no
 *   memory for it.
 *
 * Nothing is lost in any case. */
int64_t memstow_stow(uint32_t owner);
/* Brings all of it back into memory that no file backs, and returns the bytes. -EIO: it cannot be read, and stays
 * stowed; -ENOTSUP: a device reads the host's memory, and is not at rest or the owner not idle; -ECANCELED, as above;
 * -ENOMEM, -EBUSY: what was in a device's memory is still out, and must not be used. */
int64_t memstow_restore(uint32_t owner);
/* Gives back what the system can have without a loss: free memory of the owner's heap, clean pages of files. Returns
 * the bytes of the latter; those of the heap are not known. It leaves out heaps of owners that this one adopted, and of
 * a retired owner: their pages go back as they become free. */
int64_t memstow_release(uint32_t owner);

/* --- triggers and the trace of decisions --- */

enum memstow_reason {
    MEMSTOW_RUN_ENDED = 1,
    MEMSTOW_REQUEST = 2,
    MEMSTOW_PRESSURE = 3,
    MEMSTOW_IDLE = 4,
};

/* What a trigger has decided for one owner. */
struct memstow_decision {
    uint32_t owner;
    uint32_t policy;       /* the present one: enum memstow_policy, never MEMSTOW_NO_POLICY */
    uint32_t action;       /* what to do: the same, or MEMSTOW_KEEP where that is not to be done now */
    uint32_t why;          /* enum memstow_why */
    uint64_t live_bytes;   /* of the owner, host and mapped together */
    uint64_t device_bytes; /* since 1.4: of the owner in devices, beside them */
};
enum memstow_why {
    MEMSTOW_WHY_NOTHING_SAID = 1, /* no policy: keep */
    MEMSTOW_WHY_POLICY = 2,
    MEMSTOW_WHY_IN_USE = 3,     /* one of its scopes is open */
    MEMSTOW_WHY_PRESSURE = 4,   /* kept until memory was short */
    MEMSTOW_WHY_EMPTY = 5,      /* it has nothing */
    MEMSTOW_WHY_RETIRED = 6,    /* it is retired: the trigger only looks at what it left */
    MEMSTOW_WHY_NOT_NEEDED = 7, /* pressure was over before its turn */
    MEMSTOW_WHY_CANNOT = 8,     /* to be stowed, but it cannot be moved (see memstow_stow), or that is of no use now */
    MEMSTOW_WHY_RECENT = 9,     /* used too lately for MEMSTOW_IDLE */
};

/* Begins a trigger and decides. The decisions are in the order of execution. A program whose own objects hold memory
 * looks at the list, drops what it is to free, and calls memstow_trigger_end.
 *
 * Writes at most `capacity` decisions to `out`, each of `size` bytes (sizeof(struct memstow_decision)), and returns how
 * many there are. `needed`: under MEMSTOW_PRESSURE, the bytes to be given back (0: as much as possible); else 0.
 * -EBUSY: a trigger is on. A trigger that nobody ended is over when the thread that began it is. */
int64_t memstow_trigger_begin(uint32_t reason, const char *text, uint64_t needed, struct memstow_decision *out,
                              uint32_t capacity, uint32_t size);
/* Does the rest: stows, gives back free memory, and notes in the trace what remains. Returns the bytes given back.
 * -ENOENT: no trigger is on. */
int64_t memstow_trigger_end(void);
/* Both, for a program that has nothing to drop. Returns the bytes given back. */
int64_t memstow_trigger(uint32_t reason, const char *text);

/* Adds a line to the trace: a JSON object of at most 4000 bytes. docs/decisions.md has the lines that memstow writes,
 * and those that it expects of a program. */
int32_t memstow_trace(const char *json);
/* Copies whole lines, each with its newline, into `to`, from line `from` on (0: the first that is there). Returns their
 * length, and writes the number of the next line to `next` (NULL: not wanted). -ENOSPC: the next line alone is longer
 * than `capacity`; 4097 bytes are enough for any line. */
int64_t memstow_decisions(char *to, uint64_t capacity, uint64_t from, uint64_t *next);

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
    MEMSTOW_ASK_RELEASE = 4,
    /* since 1.6, and only by memstow_request_of: `memstow leaks PID` asks */
    MEMSTOW_ASK_COLLECT = 7, /* look at all garbage, when no run is on; the answer is when that is done */
    MEMSTOW_ASK_HOLDERS = 8, /* say in the trace what holds blocks of the call stacks in the text (docs/control.md) */
};

/* Waits for the next request, at most so long. 1: there is one; 0: none came, or a signal did. From the first call on,
 * the program answers requests. It also gets a request when memory is short, if memstow is to look for that. Until then
 * memstow answers by itself. -ENODEV also in a sandbox, where none can come any more. */
int32_t memstow_request_next(struct memstow_request *out, uint32_t milliseconds);
/* The same, of some kinds only: a bit for each, 1 << MEMSTOW_ASK_…. From the first call on, the program answers
 * requests of these kinds, and memstow the others. Before that, COLLECT and HOLDERS are refused. Since 1.6. */
int32_t memstow_request_of(struct memstow_request *out, uint32_t kinds, uint32_t milliseconds);
/* Answers a request: bytes, or -errno, and a line of text. -ENOENT: no such request waits for an answer. */
int32_t memstow_request_done(uint64_t ticket, int64_t result, const char *text);

/* --- the peak of a period (since 1.2) --- */

/* The most that was live at once, host and mapped together, since the last call with `anew` not 0, or since the start.
 * `anew` not 0 begins a new period with what is live now: memstow_peak(1), then memstow_peak(0), is what is live. The
 * whole process has one period at a time. It is exact to 16 KiB for each other thread that allocates, and to 1 MiB for
 * any number of them. */
int64_t memstow_peak(uint32_t anew);

/* --- the store: what lives on from one run to the next (docs/state.md): since 1.7 --- */

/* A loop has values, by id. They change together: an iteration begins, values are put, it commits. Before the commit,
 * get and list already show what was put, on every thread; abandon, a commit that fails, or a kill takes it back. A
 * value that was not put in an iteration stays.
 *
 * The bytes of a value never change. They lie in memory or in a file, and are counted once, for the owner
 * `state:LOOP/ID` (MEMSTOW_STATE). memstow_stow, memstow_restore and triggers move them by the owner's policy; a
 * trigger that frees leaves them. Values outlive runs. They go when they are released, the loop is closed or the
 * process ends, however it ends; values below a prefix are on the disk. A forked child has no loops. -ENODEV also in a
 * sandbox. */
struct memstow_state_options {
    uint32_t size;
    uint32_t in_file; /* 1: all values lie in files */
    /* Bytes of values in memory, both generations; a value beyond that lies in a file. 0: no limit. */
    uint64_t ram_limit;
    /* The values lie in files below DIRECTORY/PREFIX.state; a loop that opens it again goes on from there. A name, or
     * names with '/' between; NULL: none. */
    const char *prefix;
    const char *directory; /* for files; NULL: where memory is stowed to (docs/moving.md) */
};

/* Opens the loop, and returns its number, above 0. If the prefix has a committed iteration, its values are there.
 *
 * -EEXIST: a loop of that name is open. Of a prefix: -EBUSY, another loop has it, in this process or another; -EINVAL,
 * it would lead out of the directory; -ELOOP, it leads over a link; -EPERM, files there are another user's or others
 * can write to them; -EUCLEAN, a file is damaged. Of files, here and below: -ENOSPC, -EFBIG, -EIO, -EMFILE; -ENOTSUP:
 * the directory will not do, for a reason of docs/moving.md. */
int64_t memstow_state_open(const char *loop, const struct memstow_state_options *options);

/* Begins an iteration, and returns its generation: that of the last one plus 1. -EBUSY: an iteration is on. */
int64_t memstow_state_begin(int64_t state);

/* A piece of a value. `start` is an address for put, and an offset into the view for get. */
struct memstow_state_part {
    uint64_t start, length;
};
enum { MEMSTOW_STATE_PARTS = 1 << 20, MEMSTOW_STATE_ID = 200, MEMSTOW_STATE_TYPE = 64 };

/* Copies a value into the present iteration, and returns the id of its owner. `id` is at most MEMSTOW_STATE_ID bytes
 * and not empty; `type` is less than MEMSTOW_STATE_TYPE bytes, and the program's to choose. A second put in the same
 * iteration replaces the first. A put that fails leaves nothing. -EPERM: no iteration is on; -ECANCELED: it ended
 * meanwhile. */
int64_t memstow_state_put(int64_t state, const char *id, const char *type, const struct memstow_state_part *parts,
                          uint32_t count);

/* Makes all that was put the loop's values, and returns the generation. If it fails, nothing of it is, and the
 * iteration is still on. With a prefix the values are on the disk by then. */
int64_t memstow_state_commit(int64_t state);
/* Ends the iteration, and drops what was put. 0 also when none is on. */
int32_t memstow_state_abandon(int64_t state);

enum memstow_state_place { MEMSTOW_STATE_MEMORY = 1, MEMSTOW_STATE_FILE = 2, MEMSTOW_STATE_STOWED = 3 };

struct memstow_state_value {
    uint32_t size;
    uint32_t owner;
    uint32_t place; /* enum memstow_state_place */
    uint32_t parts;
    uint64_t generation; /* in which it was put */
    uint64_t bytes;      /* of its parts together */
    uint64_t held_bytes; /* with what the store needs beside them: what is counted */
    char id[MEMSTOW_STATE_ID + 8], type[MEMSTOW_STATE_TYPE];
    /* of memstow_state_get: */
    void *view; /* private and writable; no other reader sees what is written there. Give it back by munmap */
    uint64_t view_length;
    const struct memstow_state_part *part; /* `parts` of them, in the view */
};

/* Maps a value, without a copy: that of the present iteration, or else of the last. The view outlives the value.
 * -ENOENT: there is no value of that id, or no such loop. */
int32_t memstow_state_get(int64_t state, const char *id, struct memstow_state_value *out);

/* The values that memstow_state_get would find, without views. Writes at most `capacity`, each of `size` bytes
 * (sizeof(struct memstow_state_value)), and returns how many there are. */
int64_t memstow_state_list(int64_t state, struct memstow_state_value *out, uint32_t capacity, uint32_t size);

/* The last committed generation; 0: none. */
int64_t memstow_state_generation(int64_t state);

/* Drops the value, also from the disk. -ENOENT: there is none. */
int32_t memstow_state_release(int64_t state, const char *id);

/* Drops all values and retires their owners. keep = 1: what was committed below a prefix stays on the disk; 0: it is
 * removed. */
int32_t memstow_state_close(int64_t state, uint32_t keep);

/* --- snapshots --- */

/* Writes a snapshot of this process: it runs `memstow snapshot`, and waits for it. -EEXIST: the file is no snapshot of
 * this user's; -ENOENT: there is no such folder; -EIO: it could not be written, or the ledger not be read; -ECHILD: the
 * command could not be run. */
int32_t memstow_snapshot(const char *path);

/* --- clean endings (docs/endings.md): since 1.2. These need no ledger; -ENODEV: the process is in a sandbox --- */

/* Sets the files for the log of a shutdown, and for the list of processes for `memstow reap`. By default they are
 * shutdown.log and process_registry.json, in the folder of the process when either is first needed. NULL: no change. A
 * list that exists already stays where it is.
 *
 * A list belongs to one process. A second process that registers some in the same folder meanwhile, also a forked
 * child, has process_registry.PID.json. The list of a process that is gone is moved to such a name. Both files are for
 * processes of one PID namespace: processes of another one seem to be gone. -ENAMETOOLONG: a path is too long. */
int32_t memstow_shutdown_files(const char *log, const char *registry);

/* The stages of a shutdown, one after the other. */
enum memstow_stage {
    MEMSTOW_STOP_ACCEPTING = 1,
    MEMSTOW_DRAIN = 2,  /* side by side, for 10 s together, or as long as one of them asks for */
    MEMSTOW_CANCEL = 3, /* run only when a handler of DRAIN failed, or took too long */
    MEMSTOW_CLEAN = 4,
    MEMSTOW_END_PROCESSES = 5, /* since 1.6, as the next; memstow_shutdown_run does not run these two */
    MEMSTOW_END_THREADS = 6,
};

struct memstow_handler {
    uint32_t size;
    uint32_t stage;
    const char *name;  /* at most 63 bytes; unique */
    const char *after; /* names, with commas between them, of the handlers in its stage that end before it begins */
    /* The time that it may take; 0: 10,000. A handler that takes longer is abandoned, and the next ones go on. */
    uint32_t milliseconds;
    uint32_t parallel;             /* 1: others may run beside it */
    int32_t (*run)(void *context); /* on a thread of its own; 0, or -errno */
    void *context;
};

enum { MEMSTOW_HANDLERS = 256 };
/* Registers a handler for one of the first four stages. -EEXIST: there is one of that name; -ENOSPC: there are
 * MEMSTOW_HANDLERS. */
int32_t memstow_shutdown_handler(const struct memstow_handler *handler);

/* Registers a process that this one has started. It is to end with this one, or with keep = 1 to live on. It is known
 * by pid and start, and stands in the list from now on.
 *
 * - Its process group ends with it if it leads one, as after setpgid(0, 0) before exec or by posix_spawn with
 *   POSIX_SPAWN_SETPGROUP. If it does not lead one, what it has started itself is left.
 * - If it lives on, so does what it has started, and what is in a session or group that it began, also if that is
 *   registered to end.
 *
 * -ESRCH: there is no such process, or it is this one; -ENOSPC: there are 256; -EIO: the list cannot be written. */
int32_t memstow_shutdown_process(int32_t pid, const char *name, uint32_t keep);
/* Since 1.5: the same for a process with MEMSTOW_STARTED=PID.START.number in its environment. PID and START are this
 * process's own pid and start (field 22 of /proc/self/stat). The number is not 0, and no other process that this one
 * starts has it. What the process starts inherits the variable: `memstow reap` finds it by that when this process and
 * that one are gone. */
int32_t memstow_shutdown_launched(int32_t pid, const char *name, uint32_t keep, uint64_t number);
/* The process is not registered any more: it will not be ended, and leaves the list. -ENOENT: it was not registered. */
int32_t memstow_shutdown_forget(int32_t pid);

/* Begins a shutdown: from now on the process has `milliseconds` (0: 30,000) to end. Then memstow ends it, with the exit
 * status `status`, whatever its threads are doing, and its processes with it. This is the only function of memstow that
 * ends a process. -EALREADY: it has begun. */
int32_t memstow_shutdown_begin(const char *reason, uint32_t milliseconds, int32_t status);
/* Lets a signal begin such a shutdown, before the program's own handler for it is called. So the limit holds even if no
 * code of the program's ever gets to run. Not in forked children. -EINVAL: the signal has no handler. */
int32_t memstow_shutdown_on_signal(int32_t number, uint32_t milliseconds, int32_t status);
/* Since 1.6: begins a stage of a shutdown that has begun. The log gets a line with the memory and the descriptors of
 * the process by then, once for each stage. From now on every process that this one has started is known, also when its
 * parent ends. The functions that run a stage call this first. It is for a program that does something of its own in
 * the stage before. -EINVAL: no such stage. */
int32_t memstow_shutdown_stage(uint32_t stage);
/* Runs the handlers of a stage, and returns how many failed or took too long. -EALREADY: another thread does so. */
int64_t memstow_shutdown_run(uint32_t stage);
/* Writes a line to the log for what the program itself does: a step, the name of what it is about, and 0 or -errno. */
int32_t memstow_shutdown_step(const char *step, const char *name, int64_t result);
/* Ends the registered processes: SIGTERM, after `milliseconds` (0: 5,000) SIGKILL, also to the rest of a group whose
 * leader has ended. Returns how many had to be killed. */
int64_t memstow_shutdown_processes(uint32_t milliseconds);
/* Since 1.4: says that the program ends the calling thread before itself, by its handlers. The thread is known by tid
 * and start, and need not say when it ends. Nobody waits for other threads: they end with the process, and
 * memstow_shutdown_end names those that are there. -EINVAL: it is the first thread; -ENOSPC: there are 256 such
 * threads. */
int32_t memstow_shutdown_thread(const char *name);
/* Since 1.4: waits for these threads, but for the caller, at most `milliseconds` each (0: 3,000), side by side. Returns
 * how many are still there; each is a line of the log. */
int64_t memstow_shutdown_threads(uint32_t milliseconds);
/* Notes in the log what is left: threads, processes and, since 1.6, descriptors. Returns how many threads and
 * processes. `goes_on` 1: the process does not end, after all, and is not ended; 0: it has what is left of its time to
 * end. -ENOENT: no shutdown has begun.
 *
 * Since 1.6 it counts all processes that come of this one, registered or not, but for those that live on:
 *
 * - its children, and what they have started;
 * - those that were among these when a stage began, though their parent has ended;
 * - those in a group or session that this process, or one of these, began;
 * - those with MEMSTOW_STARTED=PID.START.… or MEMSTOW_PROGRAM=PID.START in their environment, with this process's pid
 *   and start. A program that puts the latter into its own environment finds all that inherits it. */
int64_t memstow_shutdown_end(uint32_t goes_on);
/* Since 1.6: the processes among these, of the last call. Returns how many, and writes the pids of the first `count` of
 * them (256 at most). */
int64_t memstow_shutdown_left(int32_t *pids, uint32_t count);

/* All of it, for a program with handlers in C: begin, the four stages, processes, threads (since 1.4), end, each with
 * its default time. Returns the sum of what they return: a thread that does not end counts twice. */
int64_t memstow_shutdown(const char *reason, uint32_t milliseconds, int32_t status);

#ifdef __cplusplus
}
#endif
#endif
