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
#define MEMSTOW_ABI_VERSION 0x00010007u

/* The version that the library in the process implements. */
uint32_t memstow_abi_version(void);

/* 1 when the process keeps a ledger, 0 when it does not (left out by --follow, or no memory for one). */
int32_t memstow_is_tracking(void);

/* Why the last call of this thread failed; "" when none has. Valid until the thread's next call. Never NULL. */
const char *memstow_error(void);

/* --- owners --- */

enum memstow_kind {
    MEMSTOW_MODEL = 1,
    MEMSTOW_NODE = 2,
    MEMSTOW_RUN = 3,
    MEMSTOW_CUSTOM = 4,
    MEMSTOW_STATE = 5, /* since 1.7: a value of the store (below), which opens and retires it */
};

/* The id, above 0, of the owner of this kind (not MEMSTOW_RUN: memstow_run_begin) with these two keys, which the
 * program chooses: addresses of its objects, say. Among owners that are not retired the same keys are the same owner,
 * whose name and origin stay what they were first; keys 0, 0 are always a new one. Two ledgers are compared by kind,
 * name and origin. Ids are never given twice. -ENOSPC: there are 2^20 already. */
int64_t memstow_owner_open(uint32_t kind, const char *name, const char *origin, uint64_t key1, uint64_t key2);

/* All that `provisional` has, or will get, is `owner`'s; `provisional` is retired. Both are models or customs; a model
 * that is loaded before the object exists which it is known by is loaded under a provisional owner. */
int32_t memstow_owner_adopt(uint32_t owner, uint32_t provisional);

/* The owner is gone: its keys may be another's. What it still has stays its own, and is what a leak report begins with.
 * When the last of it is freed, what its heap holds goes back to the system at once. Its id stays good for all other
 * calls: scopes of it can be entered, its policy set, memory assigned to it, stowed and restored. Only triggers leave
 * it alone. */
int32_t memstow_owner_retire(uint32_t owner);

enum memstow_policy { MEMSTOW_NO_POLICY = 0, MEMSTOW_KEEP = 1, MEMSTOW_STOW = 2, MEMSTOW_FREE = 3 };

/* What a trigger does with a model or custom owner; MEMSTOW_NO_POLICY, as at first, counts as keep. Under pressure,
 * owners of lower priority go first; 0 at first. */
int32_t memstow_owner_policy(uint32_t owner, uint32_t policy, int32_t priority);

/* 1: nobody reads or writes what the owner has until this is called with 0, on the host or on a device. Where the
 * kernel cannot move pages atomically only idle owners are stowed; what is in a device's memory moves of idle owners
 * only, because a device cannot bring back what is used. Where memstow moves that (MEMSTOW_CUDA_MOVES) it may take it
 * out of the device at any time while the owner is idle, when there is no memory for somebody else: after 0, which
 * waits for that, what is out (device_stowed_bytes) is to be restored before it is used. */
int32_t memstow_owner_idle(uint32_t owner, uint32_t idle);

struct memstow_figures {
    uint32_t size;
    uint32_t kind, policy; /* enum memstow_kind, memstow_policy */
    int32_t priority;
    uint32_t retired, adopted_by;                      /* 0 or 1; 0 or the owner that has all of it now */
    uint64_t live_bytes, live_blocks, allocated_bytes; /* host and mapped together */
    uint64_t host_bytes, mapped_bytes, cuda_bytes;     /* of live_bytes; cuda beside them */
    /* Of what can be stowed, blocks and ranges of whole pages: what the process has in memory; of stowed memory, what
     * it used since. Pages that were only read are one page of zeros for all, and hold nothing (Linux 6.7 and later;
     * before, they cannot be told from others, and memstow_stow moves them, too). UINT64_MAX: cannot be told. */
    uint64_t resident_bytes;
    uint64_t stowed_bytes;  /* content elsewhere, address still there */
    uint64_t movable_bytes; /* what memstow_stow would look at */
    /* since 1.3: of stowed_bytes, what was in a device's memory. It does not come back by use, which breaks the
     * device's context: memstow_restore must have brought it back before. */
    uint64_t device_stowed_bytes;
};

/* Sums up what all threads counted: milliseconds where there are a million sites. */
int32_t memstow_owner_figures(uint32_t owner, struct memstow_figures *out);

/* What is live of one model or custom in one node and one run; 0 is none of the kind. Since 1.4. */
struct memstow_share {
    uint32_t model, node, run, reserved;
    uint64_t live_bytes, live_blocks; /* host and mapped together */
    uint64_t cuda_bytes;              /* beside them */
};

/* All that is live and somebody's, by model, node and run: each byte is in one share. Writes at most `room` shares to
 * `out`, each of `size` bytes as sizeof(struct memstow_share); returns how many there are. The same three may come more
 * than once. As long as memstow_owner_figures for all owners together. */
int64_t memstow_shares(struct memstow_share *out, uint32_t room, uint32_t size);

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
 * of at least 64 KiB or in a mapping. Or all of it lies in a block that CUDA gave, on a device or pinned: a block on a
 * device moves with the owner that has all of it. The caller sees to it that nobody frees the block meanwhile. -ENXIO:
 * it is no such memory; -EBUSY: it is out of the device, and memstow_restore of its owner comes first; -ENOMEM: the
 * ledger has no room to count it elsewhere. Then nothing has changed. While the ledger grows on a disk that is slow,
 * this waits. */
int32_t memstow_assign(uint32_t owner, const void *start, uint64_t length);

/* The same with no owner. */
int32_t memstow_release_range(const void *start, uint64_t length);

/* --- whose a block is (since 1.6) --- */

struct memstow_block {
    uint64_t start, size;      /* size 0: no block that is counted */
    uint32_t model, node, run; /* as it is counted now; 0: none of the kind */
    uint32_t stack; /* its call stack's number in this process's ledger: 0: none was recorded. Equal for equal stacks,
                       and another stack's once nothing is live there */
};

/* What is known of the blocks at `count` addresses: writes as many structures, each of `size` bytes as sizeof(struct
 * memstow_block), and returns how many of them are blocks. An address is where a block of the heap begins; with
 * MEMSTOW_INSIDE also one inside of a block of at least 64 KiB, of a mapping of the program's own, or of a block that
 * CUDA gave. An address may lead nowhere. The answer is of the moment: another thread may free the block meanwhile.
 * -ENODEV also in a sandbox. */
enum { MEMSTOW_INSIDE = 1 };
int64_t memstow_blocks(const uint64_t *addresses, uint32_t count, uint32_t how, struct memstow_block *out,
                       uint32_t size);

/* --- runs --- */

enum memstow_outcome { MEMSTOW_OK = 0, MEMSTOW_FAILED = 1, MEMSTOW_CANCELLED = 2, MEMSTOW_OUT_OF_MEMORY = 3 };

/* Begins a run: from now on what any thread allocates is in it. The id of its owner, of kind run; -EBUSY: one is on. */
int64_t memstow_run_begin(const char *name);
/* -ENOENT: that run is not on. */
int32_t memstow_run_end(uint32_t run, uint32_t outcome);

/* --- moving memory out and back --- */

/* Moves what the owner has, as far as it can be moved, out to files in the stow directory; addresses stay, and whoever
 * uses it brings it back page by page. Since 1.3 also what it has in devices, of idle owners and where
 * MEMSTOW_CUDA_MOVES is set: that goes to memory of the process, and comes back by memstow_restore alone.
 * Returns the bytes that left; what could not be moved, and why, is in the trace.
 * -EBUSY: it is moving; -ENOTSUP: the kernel cannot move it atomically, and the owner is not idle, or there is no stow
 * directory, or it is in memory or on a network, or any other reason of docs/moving.md; -ENOSPC, -EIO: of the disk;
 * -ECANCELED: it is made for a request of memstow_request_next, and who asked has taken that back, or it was ended from
 * outside (memstow stow --cancel), before any of it had moved.
 * Of devices: -EBUSY, also: the owner is not idle, a stream is being captured, a kernel does not end, it was written to
 * meanwhile; -EPERM: somebody else has a hold of it, or owns parts of it; -ENOMEM: no memory of the host's for it.
 * Nothing is lost in any case. */
int64_t memstow_stow(uint32_t owner);
/* Brings all of it back into memory that is backed by no file. Returns the bytes; -EIO: it cannot be read, and stays
 * stowed; -ENOTSUP: a device reads the host's memory, and is not at rest or the owner not idle; -ECANCELED, as above;
 * -ENOMEM, -EBUSY: what was in a device's memory is still out, and must not be used. */
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
    uint32_t policy;       /* what applies: enum memstow_policy, never MEMSTOW_NO_POLICY */
    uint32_t action;       /* the same, or MEMSTOW_KEEP where that is not to be done now */
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
    MEMSTOW_WHY_RETIRED = 6,    /* who had it is gone: only what it left is looked at */
    MEMSTOW_WHY_NOT_NEEDED = 7, /* pressure was over before its turn */
    MEMSTOW_WHY_CANNOT = 8,     /* to be stowed, but it cannot be moved: see memstow_stow; or of no use now */
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
    MEMSTOW_ASK_RELEASE = 4,
    /* since 1.6, and only by memstow_request_of: `memstow leaks PID` asks */
    MEMSTOW_ASK_COLLECT = 7, /* look at all garbage, when no run is on; the answer is when that is done */
    MEMSTOW_ASK_HOLDERS = 8, /* say in the trace what holds blocks of the call stacks in the text (docs/control.md) */
};

/* The next request, after waiting for at most so long: 1, or 0 when none came, or a signal did. From its first call on,
 * requests are the program's to answer, and so is short memory, if memstow is to look for it; until then memstow
 * answers by itself. -ENODEV also: none can come any more, the process is in a sandbox. */
int32_t memstow_request_next(struct memstow_request *out, uint32_t milliseconds);
/* The same, of some kinds only: a bit for each, 1 << MEMSTOW_ASK_…. From the first call on requests of these kinds are
 * the program's, and of others memstow's. Before, who asks for COLLECT or HOLDERS is refused. Since 1.6. */
int32_t memstow_request_of(struct memstow_request *out, uint32_t kinds, uint32_t milliseconds);
/* The answer: bytes, or -errno, and a line of text. -ENOENT: no such request is to be answered. */
int32_t memstow_request_done(uint64_t ticket, int64_t result, const char *text);

/* --- the most of a while (since 1.2) --- */

/* The most that was live at once, host and mapped together, since the last call with `anew` not 0, or since the start.
 * With it, the next while begins with what is live now; so memstow_peak(1), then memstow_peak(0), is what is live. One
 * while at a time for the whole process. Known as the peak of the report is: up to 16 KiB for each other thread that
 * allocates, and within 1 MiB for any number of them. */
int64_t memstow_peak(uint32_t anew);

/* --- the store: what lives on from one run to the next (docs/state.md): since 1.7 --- */

/* A loop has values, by id. They change together: an iteration begins, values are put, it commits; whoever gets a value
 * before that gets the last committed one. A value that was not put in an iteration stays. The bytes of a value never
 * change: they lie in memory or in a file, are counted once, for the owner `state:LOOP/ID` (MEMSTOW_STATE), and are
 * moved by memstow_stow, memstow_restore and triggers, by the owner's policy; a trigger that frees leaves them.
 * Values outlive runs, and are gone when they are released, the loop is closed or the process ends, however it ends;
 * what is below a prefix is on the disk. A forked child has no loops. -ENODEV also in a sandbox. */
struct memstow_state_options {
    uint32_t size;
    uint32_t in_file;      /* 1: all values lie in files */
    uint64_t ram_limit;    /* bytes of values in memory, both generations; what is put beyond lies in a file. 0: none */
    const char *prefix;    /* the values lie in files below DIRECTORY/PREFIX.state, from which the loop goes on when it
                            * is opened again. A name, or names with '/' between; NULL: none */
    const char *directory; /* for files; NULL: where memory is stowed to (docs/moving.md) */
};

/* Opens the loop: its number, above 0. With a prefix that has a committed iteration, its values are there.
 * -EEXIST: a loop of that name is open. Of a prefix: -EBUSY, another loop has it, in this process or another; -EINVAL,
 * it would lead out of the directory; -ELOOP, it leads over a link; -EPERM, files there are another user's or can be
 * written by others; -EUCLEAN, one is damaged. Of files, here and below: -ENOSPC, -EFBIG, -EIO, -EMFILE; -ENOTSUP: the
 * directory will not do, for the reasons that docs/moving.md has. */
int64_t memstow_state_open(const char *loop, const struct memstow_state_options *options);

/* Begins an iteration. Returns its generation, which is that of the last one plus 1. -EBUSY: one is on. */
int64_t memstow_state_begin(int64_t state);

/* A piece of a value: `start` is an address for put, and how far into the view it is for get. */
struct memstow_state_part {
    uint64_t start, length;
};
enum { MEMSTOW_STATE_PARTS = 1 << 20, MEMSTOW_STATE_ID = 200, MEMSTOW_STATE_TYPE = 64 };

/* Copies a value into the iteration that is on: the id of its owner. `id` is at most MEMSTOW_STATE_ID bytes and not
 * empty, `type` less than MEMSTOW_STATE_TYPE and the program's to choose. Put again, it replaces what was put in this
 * iteration. Nothing is kept of what failed. -EPERM: no iteration is on; -ECANCELED: it ended meanwhile. */
int64_t memstow_state_put(int64_t state, const char *id, const char *type, const struct memstow_state_part *parts,
                          uint32_t count);

/* All that was put becomes what the loop has, or, when this fails, nothing of it: then the iteration is still on.
 * Returns the generation. With a prefix it is on the disk by then. */
int64_t memstow_state_commit(int64_t state);
/* The iteration is over, and what was put is dropped. 0 also when none is on. */
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
    void *view; /* private and writable; what is written there is nobody else's. To be given back by munmap */
    uint64_t view_length;
    const struct memstow_state_part *part; /* `parts` of them, in the view */
};

/* Maps a value, without copying it: of the iteration that is on, or else of the last. The view outlives the value.
 * -ENOENT: there is no value of that id, or no such loop. */
int32_t memstow_state_get(int64_t state, const char *id, struct memstow_state_value *out);

/* The values that memstow_state_get would find, without views: writes at most `room`, each of `size` bytes as
 * sizeof(struct memstow_state_value); returns how many there are. */
int64_t memstow_state_list(int64_t state, struct memstow_state_value *out, uint32_t room, uint32_t size);

/* The last committed generation; 0: none. */
int64_t memstow_state_generation(int64_t state);

/* The value is gone, also from the disk. -ENOENT: there is none. */
int32_t memstow_state_release(int64_t state, const char *id);

/* Drops all values and retires their owners. keep = 1: what was committed below a prefix stays on the disk; 0: it is
 * removed. */
int32_t memstow_state_close(int64_t state, uint32_t keep);

/* --- snapshots --- */

/* Writes a snapshot of this process, as `memstow snapshot` does; it runs that command, and waits for it. -EEXIST: the
 * file is no snapshot of this user's; -ENOENT: there is no such folder; -EIO: it could not be written, or the ledger
 * not be read; -ECHILD: the command could not be run. */
int32_t memstow_snapshot(const char *path);

/* --- clean endings (docs/endings.md): since 1.2. These need no ledger --- */

/* Where the log of a shutdown goes, and the list of processes for `memstow reap`: by default shutdown.log and
 * process_registry.json in the folder that the process is in when either is first needed. NULL: as it is; a list that
 * is written stays where it is. A list is of one process: another that registers some in the same folder while that
 * runs, a forked child too, has process_registry.PID.json, and the list of one that is gone is moved to such a name.
 * Both for processes of one PID namespace: those of another seem gone. */
int32_t memstow_shutdown_files(const char *log, const char *registry);

/* The stages of a shutdown, one after the other. */
enum memstow_stage {
    MEMSTOW_STOP_ACCEPTING = 1,
    MEMSTOW_DRAIN = 2,  /* side by side, for 10 s together; or as long as one of them asks for */
    MEMSTOW_CANCEL = 3, /* run only when a handler of DRAIN failed, or took longer than it may */
    MEMSTOW_CLEAN = 4,
    MEMSTOW_END_PROCESSES = 5, /* since 1.6, as the next; of these two memstow_shutdown_run knows nothing */
    MEMSTOW_END_THREADS = 6,
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
 * stands in the list from now on. What one that lives on has started lives on with it, and who is in a session or group
 * that it began, also if registered to end. Its process group ends with it when it leads one, as after setpgid(0, 0)
 * before exec or by posix_spawn with POSIX_SPAWN_SETPGROUP; when it does not, what it has started itself is left.
 * -ESRCH: there is no such process. */
int32_t memstow_shutdown_process(int32_t pid, const char *name, uint32_t keep);
/* Since 1.5: the same of one that has MEMSTOW_STARTED=PID.START.number in its environment, where PID and START are this
 * process's own pid and start (field 22 of /proc/self/stat), and no other that this one starts has the number, which is
 * not 0. What it starts inherits that: `memstow reap` finds it by it, when this process and that one are gone. */
int32_t memstow_shutdown_launched(int32_t pid, const char *name, uint32_t keep, uint64_t number);
int32_t memstow_shutdown_forget(int32_t pid);

/* Begins: from now on the process has `milliseconds` (0: 30,000) to end. When they are over memstow ends it, with the
 * exit status `status`, whatever its threads are doing, and its processes with it: this is the only function of memstow
 * that ends a process. -EALREADY: it has begun. */
int32_t memstow_shutdown_begin(const char *reason, uint32_t milliseconds, int32_t status);
/* From now on the signal begins a shutdown so, before the handler that the program has for it is called: the limit
 * holds though nothing of the program's ever gets to run. Not in forked children. -EINVAL: it has no handler. */
int32_t memstow_shutdown_on_signal(int32_t number, uint32_t milliseconds, int32_t status);
/* Since 1.6: a stage of a shutdown that has begun begins. The log has a line with the memory and the descriptors that
 * the process has by then, once for each stage; and whoever this process has started by then is known, also when its
 * parent ends. The functions that run a stage call it first: it is for a program that has something of its own to do in
 * it before. -EINVAL: no such stage. */
int32_t memstow_shutdown_stage(uint32_t stage);
/* Runs the handlers of a stage: how many failed or took too long. -EALREADY: another thread is at it. */
int64_t memstow_shutdown_run(uint32_t stage);
/* A line in the log, of what the program itself does: a step, the name of what it is about, and 0 or -errno. */
int32_t memstow_shutdown_step(const char *step, const char *name, int64_t result);
/* Ends the registered processes: SIGTERM, after `milliseconds` (0: 5,000) SIGKILL, also to who is left of a group whose
 * leader has ended. How many had to be killed. */
int64_t memstow_shutdown_processes(uint32_t milliseconds);
/* Since 1.4: the calling thread, which is not the first, is one that the program ends before itself, by its handlers
 * say. It is known by tid and start, and need not say when it ends. Other threads are not waited for: the end of the
 * process is theirs, and memstow_shutdown_end names those that are there. -EINVAL: it is the first; -ENOSPC: there are
 * 256 such threads. */
int32_t memstow_shutdown_thread(const char *name);
/* Since 1.4: waits for these threads, but for the caller, at most `milliseconds` each (0: 3,000), side by side. How
 * many are there still; each is a line of the log. */
int64_t memstow_shutdown_threads(uint32_t milliseconds);
/* Notes in the log what is left: threads, processes and, since 1.6, descriptors. How many threads and processes. Since
 * 1.6 these are not only the registered ones, but all that come of this process, except for what is to live on: its
 * children, and what they have started; who was one of these when a stage began, though its parent has ended; who is in
 * a group or session that one of them began, or this process; and who has MEMSTOW_STARTED=PID.START.… or
 * MEMSTOW_PROGRAM=PID.START in its environment, with this process's pid and start; a program that puts the latter into
 * its own finds with it all that inherits it. 1: the process does not end, after all, and is not ended; 0: it has what
 * is left of its time to end. */
int64_t memstow_shutdown_end(uint32_t goes_on);
/* Since 1.6: the processes among these, of the last time: how many, and the pids of the first `count` of them (256 at
 * most). */
int64_t memstow_shutdown_left(int32_t *pids, uint32_t count);

/* All of it, for a program whose handlers are C: begin, the four stages, processes, threads (since 1.4), end, each with
 * the time that it has by itself. The sum of what they return: a thread that does not end counts twice. */
int64_t memstow_shutdown(const char *reason, uint32_t milliseconds, int32_t status);

#ifdef __cplusplus
}
#endif
#endif
