/* memstow.h — the registration ABI of libmemstow.so: a program says which owner has memory, and what a trigger does
 * with it. A trigger is a moment at which memstow moves or gives back memory as the program has said, for example the
 * end of a run.
 *
 * A program that runs under `memstow run` finds these functions by dlsym(RTLD_DEFAULT, …) or, from Python, by
 * ctypes.CDLL(None). Without memstow they are not there: look before you call. docs/abi.md explains them, with a
 * runnable example in C and one in Python.
 *
 * Every function may be called from any thread at any time, before and after fork, with any argument, and keeps errno.
 * A function that fails returns -errno and changes nothing; memstow_error() then says why. Texts are UTF-8,
 * NUL-terminated and copied; NULL is "". Sizes are bytes. Where no comment says otherwise, these errors mean:
 *
 * - -ENODEV: the process keeps no ledger.
 * - -EINVAL: an argument makes no sense.
 * - -ENOENT: there is no such owner.
 * - -EFAULT: a pointer leads to memory that cannot be read or written.
 * - -ENOMEM: there is no memory.
 * - -EBUSY: another thread has held a lock of memstow's for too long.
 *
 * Most structures begin with `size`, which the caller sets to the sizeof of the structure. A function that writes
 * several structures gets this size as an argument. memstow reads or writes at most that many bytes of a structure. A
 * later minor version only appends fields. */
#ifndef MEMSTOW_H
#define MEMSTOW_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface: major << 16 | minor. A new minor adds functions, and changes none. */
#define MEMSTOW_ABI_VERSION 0x0001000Bu

/* Returns the version of this interface that the loaded library implements, in the form of MEMSTOW_ABI_VERSION. */
uint32_t memstow_abi_version(void);

/* 1: the process keeps a ledger. 0: it keeps none, for example because --follow left it out, or because there was no
 * memory for a ledger. */
int32_t memstow_is_tracking(void);

/* The reason of this thread's latest failure; "" if no call of this thread has failed. Never NULL. Valid until the
 * thread's next call. */
const char *memstow_error(void);

/* --- owners --- */

/* What an owner is: a model; a node of a workflow; a run (one execution of the program's work); anything else
 * (custom). */
enum memstow_kind {
    MEMSTOW_MODEL = 1,
    MEMSTOW_NODE = 2,
    MEMSTOW_RUN = 3,
    MEMSTOW_CUSTOM = 4,
    MEMSTOW_STATE = 5, /* since 1.7: a value of the store (below); the store opens and retires such owners */
};

/* Opens or finds the owner of this kind with these two keys, and returns its id, above 0. For a run, call
 * memstow_run_begin instead.
 *
 * The program chooses the keys, for example addresses of its objects. Among owners that are not retired, the same keys
 * mean the same owner, which keeps its first name and origin. Keys 0, 0 always open a new owner. When two ledgers are
 * compared, owners are matched by kind, name and origin. An id is never given twice. -ENOSPC: there are 2^20 owners
 * already. */
int64_t memstow_owner_open(uint32_t kind, const char *name, const char *origin, uint64_t key1, uint64_t key2);

/* Gives all memory of `provisional`, present and future, to `owner`, and retires `provisional`. Both are models or
 * customs. Use it when a model is loaded before its object exists: load the model under a provisional owner. */
int32_t memstow_owner_adopt(uint32_t owner, uint32_t provisional);

/* Says that the owner is gone, so that another owner may have its keys. Memory that the owner still has remains its
 * own; a leak report begins with such memory. When the last of this memory is freed, the memory of the owner's heap
 * goes back to the system at once. The id stays valid for all other calls: scopes, policy, assignment, stow and
 * restore. Triggers, however, leave a retired owner alone. */
int32_t memstow_owner_retire(uint32_t owner);

enum memstow_policy { MEMSTOW_NO_POLICY = 0, MEMSTOW_KEEP = 1, MEMSTOW_STOW = 2, MEMSTOW_FREE = 3 };

/* Sets what a trigger does with a model, a custom or a value of the store. Keep: nothing. Stow: its memory is moved out
 * (memstow_stow). Free: the program drops the owner's objects (memstow_trigger_begin). MEMSTOW_NO_POLICY, the initial
 * value, counts as keep. Under pressure, owners of lower priority go first; the initial priority is 0. */
int32_t memstow_owner_policy(uint32_t owner, uint32_t policy, int32_t priority);

/* idle = 1: the program promises that nobody reads or writes the owner's memory, on the host or on a device, until it
 * calls this function with 0.
 *
 * Where the kernel cannot move pages atomically, only idle owners are stowed. Device memory moves only for idle owners,
 * because device memory does not come back by itself when a device uses it. With MEMSTOW_CUDA_MOVES, memstow may take
 * an idle owner's memory off the device at any time, when another owner needs memory there. The call with 0 waits until
 * such a move ends. -EBUSY: the move does not end within a minute. After the call with 0, restore memory that is off
 * the device (device_stowed_bytes) before you use it. */
int32_t memstow_owner_idle(uint32_t owner, uint32_t idle);

/* discard = 1: when the owner's device memory leaves the device, its content is dropped. No copy is made, so the memory
 * leaves at once and takes no memory of the host. Use it for caches that the program can compute again, such as the
 * keys and values of a language model, never for weights.
 *
 * AFTER memstow_restore THE CONTENT IS UNDEFINED: the addresses are valid, but the bytes there may have any values. The
 * program must write before it reads. This holds for memory that leaves after this call, by memstow_stow, a trigger or
 * a rescue. Memory that left before, with a copy, comes back with its content. The owner's host memory keeps its
 * content in any case. discard = 0, the initial value: content is kept. Since 1.8. */
int32_t memstow_owner_discard(uint32_t owner, uint32_t discard);

/* Devices that have figures of their own: those with the driver's numbers 0 to 7. */
enum { MEMSTOW_DEVICES = 8 };

struct memstow_figures {
    uint32_t size;
    uint32_t kind, policy; /* enum memstow_kind, memstow_policy */
    int32_t priority;
    uint32_t retired, adopted_by; /* retired: 0 or 1; adopted_by: the owner that has all its memory now, or 0 */
    uint64_t live_bytes, live_blocks, allocated_bytes; /* host and mapped together */
    uint64_t host_bytes, mapped_bytes, cuda_bytes;     /* the two parts of live_bytes; cuda_bytes: device memory */
    /* The host part of movable_bytes that is in memory now. A stowed page counts only if it was used after it was
     * stowed. Pages that were read but never written share one page of zeros, and do not count. Before Linux 6.7 such
     * pages cannot be told from others: they count, and memstow_stow moves them. UINT64_MAX: not known. */
    uint64_t resident_bytes;
    uint64_t stowed_bytes;  /* bytes whose content was moved out; their addresses stay */
    uint64_t movable_bytes; /* whole pages of large blocks and mappings, and device memory that can move */
    /* since 1.3: the part of stowed_bytes that was device memory. A use does not bring this memory back: a use before
     * memstow_restore breaks the device's context. */
    uint64_t device_stowed_bytes;
    /* since 1.11: the part of cuda_bytes that is on each device now, by the device's number. Memory that was moved out
     * of its device is on none. */
    uint64_t on_device_bytes[MEMSTOW_DEVICES];
};

/* Writes the owner's figures to `out`. The counters of all threads are added up, which takes milliseconds if memory was
 * allocated at a million call stacks. */
int32_t memstow_owner_figures(uint32_t owner, struct memstow_figures *out);

/* The live memory that is counted for the same model or custom, the same node and the same run. An id of 0: no owner of
 * that kind. Since 1.4. */
struct memstow_share {
    uint32_t model, node, run, reserved;
    uint64_t live_bytes, live_blocks; /* host and mapped memory together */
    uint64_t cuda_bytes;              /* device memory, not part of live_bytes */
};

/* All live memory that has an owner, divided by model, node and run. Each byte is in one share. Writes at most
 * `capacity` shares to `out`, each of `size` bytes (sizeof(struct memstow_share)), and returns the number of all
 * shares. The memory of one model, node and run may be in several shares, for example after memstow_owner_adopt: add
 * these shares up. The call takes about as long as one call of memstow_owner_figures. */
int64_t memstow_shares(struct memstow_share *out, uint32_t capacity, uint32_t size);

/* --- scopes: whose memory a thread allocates --- */

/* Enters a scope: memory that this thread allocates belongs to the owner until the scope is left. At any time, the
 * innermost scope of a model or custom counts, and the innermost scope of a node. A scope stays open when its owner is
 * retired. -ENOSPC: MEMSTOW_SCOPES are open. */
int32_t memstow_scope_enter(uint32_t owner);

/* Leaves the thread's innermost scope of the owner's kind (model and custom are one kind). -EPERM: that scope is
 * another owner's. */
int32_t memstow_scope_leave(uint32_t owner);

enum { MEMSTOW_SCOPES = 62 };
/* The scopes of a thread, outermost first. A program passes them to a worker thread, or restores them when a coroutine
 * goes on. */
struct memstow_scopes {
    uint32_t size;
    uint32_t count;
    uint32_t owners[MEMSTOW_SCOPES];
};

/* Replaces the scopes of this thread by `now` (NULL: no scopes), and writes the former ones to `before` (NULL: not
 * wanted). `now` and `before` may be the same structure. */
int32_t memstow_scope_swap(const struct memstow_scopes *now, struct memstow_scopes *before);
/* Writes the scopes of this thread, and changes nothing. */
int32_t memstow_scope_save(struct memstow_scopes *out);

/* Begins a load phase of this thread: until the phase ends, the thread allocates memory that is to stay, such as
 * weights. The scope, not the phase, says which owner has the memory. Phases decide which device memory may move:
 *
 * - If an owner has never had a phase, all its device memory may move.
 * - From an owner's first phase on, device memory that a thread allocates in the owner's scope may move only if the
 *   thread is in a phase, of any owner. Other device memory of the scope counts as short-lived: memstow leaves it to
 *   the driver, and never moves it.
 *
 * Phases nest, and go on when the thread's scopes are replaced. -EINVAL: the owner is no model or custom. Since
 * 1.10. */
int32_t memstow_load_begin(uint32_t owner);
/* Ends the thread's innermost phase. -EPERM: there is none. Since 1.10. */
int32_t memstow_load_end(void);

/* --- ranges: memory that exists becomes an owner's --- */

/* Gives `length` bytes at `start` to the model or custom from now on. The bytes are a block, a part of a block, or a
 * part of a mapping of the program. `start` is the start of a block, or lies in a block of at least 64 KiB or in a
 * mapping. The block keeps its stack, node and run, and each byte is counted once. Whole pages can move if they lie in
 * a block of at least 64 KiB or in a mapping.
 *
 * The bytes may also lie in a block from CUDA, on a device or pinned. A block on a device moves only with an owner that
 * has the whole block.
 *
 * The caller makes sure that nobody frees the block meanwhile. -ENXIO: there is no such memory; -EBUSY: the memory is
 * off the device, so call memstow_restore for its owner first; -ENOMEM: the ledger cannot grow, so the bytes cannot be
 * counted for the owner. After an error nothing has changed. The call waits while the ledger grows on a slow disk. */
int32_t memstow_assign(uint32_t owner, const void *start, uint64_t length);

/* From now on, the bytes belong to no model or custom. */
int32_t memstow_release_range(const void *start, uint64_t length);

/* --- the owners of a block (since 1.6) --- */

struct memstow_block {
    uint64_t start, size;      /* size 0: there is no counted block */
    uint32_t model, node, run; /* the owners that it is counted for now; 0: none of that kind */
    /* The number of its call stack in this process's ledger; 0: no stack was recorded. Equal stacks have the same
     * number. When no block of a stack is live any more, another stack may get the number. */
    uint32_t stack;
};

/* For the argument `how` of memstow_blocks: an address may also lie inside a block. */
enum { MEMSTOW_INSIDE = 1 };
/* Tells what memstow knows of the blocks at `count` addresses. `how`: 0 or MEMSTOW_INSIDE. Writes `count` structures,
 * each of `size` bytes (sizeof(struct memstow_block)), and returns at how many addresses there is a block. An address
 * is the start of a heap block. With MEMSTOW_INSIDE it may also lie inside a block of at least 64 KiB, a mapping of the
 * program, or a block from CUDA. An address may be invalid. The answer holds only for the moment: another thread may
 * free the block meanwhile. -ENODEV also in a sandbox. */
int64_t memstow_blocks(const uint64_t *addresses, uint32_t count, uint32_t how, struct memstow_block *out,
                       uint32_t size);

/* --- runs --- */

/* How a run ended. */
enum memstow_outcome { MEMSTOW_OK = 0, MEMSTOW_FAILED = 1, MEMSTOW_CANCELLED = 2, MEMSTOW_OUT_OF_MEMORY = 3 };

/* Begins a run: all later allocations, on any thread, belong to it. Returns the id of its owner, of kind run. -EBUSY:
 * another run has not ended. */
int64_t memstow_run_begin(const char *name);
/* Ends the run. -ENOENT: that run is not the present one. */
int32_t memstow_run_end(uint32_t run, uint32_t outcome);

/* --- moving memory out and back --- */

/* Moves the owner's memory out to files in the stow directory, as far as possible. Addresses stay, and a later use
 * brings the memory back page by page. Since 1.3, if MEMSTOW_CUDA_MOVES is set, device memory of an idle owner moves,
 * too: to memory of the process. Device memory comes back only by memstow_restore. Returns how many bytes moved. The
 * trace (memstow_decisions) says which memory could not move, and why.
 *
 * - -EBUSY: the owner's memory is moving already.
 * - -ENOTSUP: the kernel cannot move the memory atomically, and the owner is not idle; or there is no stow directory;
 *   or that directory is in memory or on a network; or there is another reason, which docs/moving.md explains.
 * - -ENOSPC, -EIO: errors of the disk.
 * - -ECANCELED: the move was cancelled before any memory had moved. `memstow stow --cancel` cancels a move, and so does
 *   the sender of the request (memstow_request_next) for which the move was made.
 * - For device memory, -EBUSY: the owner is not idle, a stream is in capture, a kernel does not end, or the memory was
 *   written to meanwhile; -EPERM: another library knows the address of the memory, or another owner has parts of it;
 *   -ENOMEM: the host has no memory for it.
 *
 * No content is lost in any case, except what memstow_owner_discard allows to drop. */
int64_t memstow_stow(uint32_t owner);
/* Brings all of the owner's memory back into memory that no file backs, and returns how many bytes came back. -EIO: a
 * file cannot be read, and its memory stays stowed; -ENOTSUP: a device reads the host's memory, and the device is not
 * at rest or the owner is not idle; -ECANCELED: as for memstow_stow; -ENOMEM, -EBUSY: device memory is still off its
 * device, and must not be used. */
int64_t memstow_restore(uint32_t owner);
/* Gives memory back to the system without loss of content: free memory of the owner's heap, and clean pages of files.
 * Returns the bytes of the clean pages; the bytes of the heap are not known. The heaps of owners that this owner
 * adopted, and the heap of a retired owner, are left out: their pages go back as they become free. */
int64_t memstow_release(uint32_t owner);

/* --- triggers and the trace of decisions --- */

/* Why a trigger happens: a run has ended, somebody asked for it, memory is short, or an owner was not used for some
 * time. */
enum memstow_reason {
    MEMSTOW_RUN_ENDED = 1,
    MEMSTOW_REQUEST = 2,
    MEMSTOW_PRESSURE = 3,
    MEMSTOW_IDLE = 4,
};

/* What a trigger has decided for one owner. */
struct memstow_decision {
    uint32_t owner;
    uint32_t policy; /* the present policy: enum memstow_policy, never MEMSTOW_NO_POLICY */
    /* what to do now: the policy, or MEMSTOW_KEEP if the policy does not apply now, or MEMSTOW_STOW if `why` is
     * MEMSTOW_WHY_PRESSURE */
    uint32_t action;
    uint32_t why;          /* enum memstow_why */
    uint64_t live_bytes;   /* the owner's host and mapped memory together */
    uint64_t device_bytes; /* since 1.4: device memory of the owner, not part of live_bytes */
};
enum memstow_why {
    MEMSTOW_WHY_NOTHING_SAID = 1, /* no policy is set: keep */
    MEMSTOW_WHY_POLICY = 2,       /* the owner's policy, which applies now */
    MEMSTOW_WHY_IN_USE = 3,       /* one of the owner's scopes is open */
    MEMSTOW_WHY_PRESSURE = 4,     /* the policy is keep, but memory is short */
    MEMSTOW_WHY_EMPTY = 5,        /* the owner has no memory */
    MEMSTOW_WHY_RETIRED = 6,      /* retired: the trigger only notes what the owner left */
    MEMSTOW_WHY_NOT_NEEDED = 7,   /* the owners before this one give enough */
    MEMSTOW_WHY_CANNOT = 8,       /* the policy is stow, but moving fails (see memstow_stow) or would not help */
    MEMSTOW_WHY_RECENT = 9,       /* the owner was used too recently for MEMSTOW_IDLE */
};

/* Begins a trigger, and decides what to do with each owner. `text` goes into the trace. The decisions are in the order
 * of execution. A program whose own objects hold the memory reads the list, drops the objects of the owners that are to
 * be freed, and calls memstow_trigger_end.
 *
 * Writes at most `capacity` decisions to `out`, each of `size` bytes (sizeof(struct memstow_decision)), and returns the
 * number of all decisions. `needed`: under MEMSTOW_PRESSURE, the bytes to be given back (0: as many as possible); else
 * 0. -EBUSY: another trigger has not ended. If a thread ends without ending its trigger, the trigger is over. */
int64_t memstow_trigger_begin(uint32_t reason, const char *text, uint64_t needed, struct memstow_decision *out,
                              uint32_t capacity, uint32_t size);
/* Executes the rest of the decisions: stows, gives back free memory, and notes in the trace which memory remains.
 * Returns the bytes given back. -ENOENT: no trigger has begun. */
int64_t memstow_trigger_end(void);
/* Begins and ends a trigger, for a program that has nothing to drop. Returns the bytes given back. */
int64_t memstow_trigger(uint32_t reason, const char *text);

/* Adds a line to the trace: a JSON object of at most 4000 bytes. docs/decisions.md describes the lines that memstow
 * writes, and the lines that it expects of a program. */
int32_t memstow_trace(const char *json);
/* Copies whole lines of the trace into `to`, each with its newline, from line number `from` on (0: the oldest line).
 * Returns their length. `after` gets the number of the next line (NULL: not wanted). -ENOSPC: the next line alone is
 * longer than `capacity`; 4097 bytes are enough for any line. */
int64_t memstow_decisions(char *to, uint64_t capacity, uint64_t from, uint64_t *after);

/* --- requests from outside (`memstow trigger PID` and others) --- */

struct memstow_request {
    uint32_t size;
    uint32_t kind;   /* enum memstow_request_kind */
    uint64_t ticket; /* the number of the request, for memstow_request_done */
    uint32_t owner;  /* for stow, restore, release: the owner; else 0 */
    uint32_t reason; /* for a trigger: enum memstow_reason */
    char text[256];  /* for a trigger: pass it to memstow_trigger_begin unchanged; for holders: call stacks */
    uint64_t needed; /* for a trigger: pass it to memstow_trigger_begin, too */
};
/* What the program is to do: begin and end a trigger; or call memstow_stow, memstow_restore or memstow_release for the
 * owner. */
enum memstow_request_kind {
    MEMSTOW_ASK_TRIGGER = 1,
    MEMSTOW_ASK_STOW = 2,
    MEMSTOW_ASK_RESTORE = 3,
    MEMSTOW_ASK_RELEASE = 4,
    /* since 1.6: `memstow leaks PID` sends the next two, and only memstow_request_of returns them */
    MEMSTOW_ASK_COLLECT = 7, /* collect all garbage while no run is on; answer when that is done */
    MEMSTOW_ASK_HOLDERS = 8, /* say in the trace what holds the blocks of the call stacks in `text` (docs/control.md) */
};

/* Waits for the next request of any kind except COLLECT and HOLDERS, at most `milliseconds`. 1: `out` is a request; 0:
 * no request came, or a signal came. Until the first call, memstow answers requests of these kinds; from the first call
 * on, the program must answer them. If the environment variable MEMSTOW_PRESSURE or MEMSTOW_IDLE is set, the triggers
 * that memstow begins by itself come to the program as requests, too. -ENODEV also in a sandbox, where no request can
 * come any more. */
int32_t memstow_request_next(struct memstow_request *out, uint32_t milliseconds);
/* As memstow_request_next, but only for some kinds of requests: `kinds` has a bit 1 << MEMSTOW_ASK_… for each kind.
 * From the first call on, the program must answer requests of these kinds. memstow answers requests of kinds that the
 * program has never asked for, except COLLECT and HOLDERS, which it refuses. Since 1.6. */
int32_t memstow_request_of(struct memstow_request *out, uint32_t kinds, uint32_t milliseconds);
/* Answers a request with a number (bytes, or -errno) and a line of text. -ENOENT: no request with this ticket waits for
 * an answer. */
int32_t memstow_request_done(uint64_t ticket, int64_t result, const char *text);

/* --- the peak of a period (since 1.2) --- */

/* The highest number of live bytes, host and mapped memory together, since the latest call with `anew` not 0, or since
 * the start. If `anew` is not 0, a new period begins with the present live bytes. So memstow_peak(0) right after
 * memstow_peak(1) returns the present live bytes. The process has one period at a time. The result may be off by 16 KiB
 * for each other thread that allocates, and by 1 MiB at most. */
int64_t memstow_peak(uint32_t anew);

/* --- the store: what lives on from one run to the next (docs/state.md): since 1.7 --- */

/* A loop has values, each with an id. The values change together: an iteration begins, values are put, the iteration
 * commits. Before the commit, get and list already show the new values, on every thread, and get_committed still shows
 * the old ones. The new values are dropped if the iteration is abandoned, or the process ends before the commit. A
 * value that is not put in an iteration stays as it was.
 *
 * The bytes of a value never change. They lie in memory or in a file, and are counted once, for the owner
 * `state:LOOP/ID` (MEMSTOW_STATE). memstow_stow, memstow_restore and triggers move them by the owner's policy; a
 * trigger with the policy free leaves them. Values outlive runs. They end when they are released, when the loop is
 * closed, or when the process ends in any way. Exception: if the loop has a prefix (see below), its committed values
 * stay on the disk when the process ends, and, with keep = 1, when the loop is closed. A forked child has no loops.
 * -ENODEV also in a sandbox. */
struct memstow_state_options {
    uint32_t size;
    uint32_t in_file; /* 1: all values lie in files */
    /* The limit for values in memory, in bytes, for committed values and those of the present iteration together. A
     * value that would exceed the limit lies in a file. 0: no limit. */
    uint64_t ram_limit;
    /* A name, or names with '/' between them: the values lie in files below DIRECTORY/PREFIX.state, and a loop that
     * opens the prefix again continues with them. NULL: no prefix. */
    const char *prefix;
    const char *directory; /* where the files lie; NULL: in the directory for stowed memory (docs/moving.md) */
};

/* Opens the loop, and returns its number, above 0. If the prefix has a committed iteration, the loop begins with the
 * values of that iteration.
 *
 * -EEXIST: a loop of that name is open. Errors of a prefix:
 *
 * - -EBUSY: another loop, in this process or another, has the prefix.
 * - -EINVAL: the prefix would lead out of the directory.
 * - -ELOOP: the prefix contains a link.
 * - -EPERM: files there belong to another user, or other users can write to them.
 * - -EUCLEAN: a file is damaged.
 *
 * Errors of files, in all functions of the store: -ENOSPC, -EFBIG, -EIO, -EMFILE; -ENOTSUP: the directory cannot be
 * used, for a reason that docs/moving.md explains. */
int64_t memstow_state_open(const char *loop, const struct memstow_state_options *options);

/* Begins an iteration, and returns its generation: the latest committed generation plus 1. -EBUSY: an earlier iteration
 * has not ended. */
int64_t memstow_state_begin(int64_t state);

/* A piece of a value. `start` is an address for put, and an offset into the view for get. */
struct memstow_state_part {
    uint64_t start, length;
};
enum { MEMSTOW_STATE_PARTS = 1 << 20, MEMSTOW_STATE_ID = 200, MEMSTOW_STATE_TYPE = 64 };

/* Copies a value into the present iteration, and returns the id of its owner. `id` has 1 to MEMSTOW_STATE_ID bytes.
 * `type` has less than MEMSTOW_STATE_TYPE bytes, and only the program interprets it. A second put of the same id in one
 * iteration replaces the first. A put that fails leaves nothing behind. -EPERM: no iteration has begun; -ECANCELED: the
 * iteration ended meanwhile. */
int64_t memstow_state_put(int64_t state, const char *id, const char *type, const struct memstow_state_part *parts,
                          uint32_t count);

/* Commits the iteration: the values that were put become the loop's values. Returns the generation. If the commit
 * fails, no value changes, and the iteration goes on. With a prefix, the values are on the disk when the function
 * returns. -E2BIG: the loop has more values than a prefix can hold (about a million). */
int64_t memstow_state_commit(int64_t state);
/* Ends the iteration, and drops the values that were put. 0 also if no iteration has begun. */
int32_t memstow_state_abandon(int64_t state);

/* Where the bytes of a value are. MEMORY: in memory. FILE: in a file, since the value was put or its loop was opened.
 * STOWED: in a file to which they were moved. */
enum memstow_state_place { MEMSTOW_STATE_MEMORY = 1, MEMSTOW_STATE_FILE = 2, MEMSTOW_STATE_STOWED = 3 };

struct memstow_state_value {
    uint32_t size;
    uint32_t owner;
    uint32_t place; /* enum memstow_state_place */
    uint32_t parts;
    uint64_t generation; /* the generation of the iteration in which the value was put */
    uint64_t bytes;      /* sum of the lengths of its parts */
    uint64_t held_bytes; /* the bytes that are counted: parts, header and padding */
    char id[MEMSTOW_STATE_ID + 8], type[MEMSTOW_STATE_TYPE];
    /* set by memstow_state_get and memstow_state_get_committed: */
    void *view; /* private and writable: no other reader sees changes. Give it back by munmap */
    uint64_t view_length;
    const struct memstow_state_part *part; /* the table of the value's `parts` parts, in the view */
};

/* Maps a value without a copy: the value of the present iteration, or else the latest committed one. The view outlives
 * the value. -ENOENT: there is no value with that id, or no such loop. */
int32_t memstow_state_get(int64_t state, const char *id, struct memstow_state_value *out);

/* Like memstow_state_get, but gives the latest committed value, and never a value of the present iteration. It is for
 * readers that are not part of the iteration. -ENOENT also for a value that has never been committed. Since 1.9. */
int32_t memstow_state_get_committed(int64_t state, const char *id, struct memstow_state_value *out);

/* Lists the values that memstow_state_get would find, but gives no views of them. Writes at most `capacity` structures,
 * each of `size` bytes (sizeof(struct memstow_state_value)), and returns the number of all values. */
int64_t memstow_state_list(int64_t state, struct memstow_state_value *out, uint32_t capacity, uint32_t size);

/* The latest committed generation; 0: none. */
int64_t memstow_state_generation(int64_t state);

/* Drops a value, also from the disk. -ENOENT: there is no such value. */
int32_t memstow_state_release(int64_t state, const char *id);

/* Drops all values and retires their owners. keep = 1: committed values below a prefix stay on the disk. keep = 0:
 * these values are removed, too. */
int32_t memstow_state_close(int64_t state, uint32_t keep);

/* --- snapshots --- */

/* Writes a snapshot of this process: runs `memstow snapshot`, and waits for it. -EEXIST: the file exists, and is no
 * snapshot of this user; -ENOENT: there is no such folder; -EIO: the file could not be written, or the ledger could not
 * be read; -ECHILD: the command could not be run. */
int32_t memstow_snapshot(const char *path);

/* --- clean endings (docs/endings.md), since 1.2. They need no ledger. -ENODEV: the process is in a sandbox. --- */

/* Sets the files for the log of a shutdown and for the list of processes, which `memstow reap` reads. By default they
 * are shutdown.log and process_registry.json in the folder that is current when each is first needed. NULL: no change.
 * A list that exists already stays where it is.
 *
 * A list belongs to one process. If a second process, such as a forked child, registers processes in the same folder
 * while the first process runs, the list of the second process is process_registry.PID.json, with the second process's
 * pid. When a new list takes the place of the list of a process that is gone, the old list is renamed in the same way,
 * with the pid of its own process. If the old list names no process that is to be ended, it is removed instead. A list
 * is for processes of one PID namespace: processes of another namespace seem to be gone. -ENAMETOOLONG: a path is too
 * long. */
int32_t memstow_shutdown_files(const char *log, const char *registry);

/* The stages of a shutdown, one after the other: refuse new work, finish the work that is there, stop what does not
 * finish, clean up; then processes are ended, and threads waited for. */
enum memstow_stage {
    MEMSTOW_STOP_ACCEPTING = 1,
    MEMSTOW_DRAIN = 2,  /* handlers run side by side, within 10 s, or the longest of their limits if that is longer */
    MEMSTOW_CANCEL = 3, /* runs only if a handler of DRAIN failed or was late */
    MEMSTOW_CLEAN = 4,
    MEMSTOW_END_PROCESSES = 5, /* this stage and the next: since 1.6; memstow_shutdown_run does not run them */
    MEMSTOW_END_THREADS = 6,
};

struct memstow_handler {
    uint32_t size;
    uint32_t stage;
    const char *name;  /* at most 63 bytes; unique */
    const char *after; /* comma-separated names of handlers of this stage; this handler begins after they have ended */
    /* The time limit of the handler; 0: 10,000. A handler that takes longer is abandoned, and the shutdown goes on. */
    uint32_t milliseconds;
    uint32_t parallel;             /* 1: it may run beside other handlers that have 1 here */
    int32_t (*run)(void *context); /* runs on a thread of its own; returns 0 or -errno */
    void *context;
};

enum { MEMSTOW_HANDLERS = 256 };
/* Registers a handler for one of the first four stages. -EEXIST: a handler has that name; -ENOSPC: there are
 * MEMSTOW_HANDLERS handlers. */
int32_t memstow_shutdown_handler(const struct memstow_handler *handler);

/* Registers a process that this one has started. The registered process ends with this process; with keep = 1 it lives
 * on. memstow knows the registered process by pid and start time, and has it in the list from now on.
 *
 * - If the registered process leads a process group, the group ends with it. A process leads a group after setpgid(0,
 *   0) before exec, or with POSIX_SPAWN_SETPGROUP. If it leads no group, the processes that it has started are not
 *   ended.
 * - If it lives on, the processes that it has started live on, too, and so do all members of sessions and groups that
 *   it began, even if they are registered to end.
 *
 * -ESRCH: there is no such process, or it is this one; -ENOSPC: 256 are registered; -EIO: the list cannot be
 * written. */
int32_t memstow_shutdown_process(int32_t pid, const char *name, uint32_t keep);
/* Since 1.5: as memstow_shutdown_process, for a process that has MEMSTOW_STARTED=PID.START.NUMBER in its environment.
 * PID and START are pid and start time of this process (field 22 of /proc/self/stat). NUMBER is not 0, and no other
 * process that this one starts has the same NUMBER. Processes that the registered process starts inherit the variable.
 * So `memstow reap` finds them even after this process and the registered one are gone. */
int32_t memstow_shutdown_launched(int32_t pid, const char *name, uint32_t keep, uint64_t number);
/* Ends the registration of a process: the process will not be ended, and its entry leaves the list. -ENOENT: it was not
 * registered. */
int32_t memstow_shutdown_forget(int32_t pid);

/* Begins a shutdown: the process has `milliseconds` from now on (0: 30,000) to end. After that, memstow ends the
 * process and its registered processes, whatever its threads are doing, with the exit status `status`. Without a
 * shutdown, memstow never ends the process. -EALREADY: a shutdown has begun. */
int32_t memstow_shutdown_begin(const char *reason, uint32_t milliseconds, int32_t status);
/* Lets a signal begin a shutdown, as memstow_shutdown_begin does, before the program's own handler for the signal is
 * called. So the limit holds even if no code of the program runs any more. A forked child does not inherit this
 * setting. -EINVAL: the signal has no handler. */
int32_t memstow_shutdown_on_signal(int32_t number, uint32_t milliseconds, int32_t status);
/* Since 1.6: begins a stage of a shutdown that has begun. The log gets one line for each stage, with the memory and the
 * descriptors of the process at that time. All processes that this one has started so far are found and remembered, so
 * they are known even after their parents have ended. The functions that run a stage call this function first. Call it
 * yourself if the program does work of its own in a stage before it calls one of them. -EINVAL: there is no such
 * stage. */
int32_t memstow_shutdown_stage(uint32_t stage);
/* Runs the handlers of a stage, and returns how many failed or took too long. -EALREADY: another thread is running a
 * stage. */
int64_t memstow_shutdown_run(uint32_t stage);
/* Writes a line to the log for a step of the program itself: the step, the name of its object, and 0 or -errno. */
int32_t memstow_shutdown_step(const char *step, const char *name, int64_t result);
/* Ends the registered processes: sends SIGTERM, and after `milliseconds` (0: 5,000) SIGKILL. If a process that leads a
 * group has ended, the rest of the group gets these signals, too. Returns how many had to be killed. */
int64_t memstow_shutdown_processes(uint32_t milliseconds);
/* Since 1.4: registers the calling thread, which the program's handlers end before the process ends. The thread is
 * known by tid and start time, so it need not be unregistered when it ends. memstow_shutdown_threads waits for
 * registered threads only. Other threads end with the process; memstow_shutdown_end names the threads that are left.
 * -EINVAL: it is the first thread; -ENOSPC: 256 threads are registered. */
int32_t memstow_shutdown_thread(const char *name);
/* Since 1.4: waits for all registered threads except the caller, at most `milliseconds` (0: 3,000) for all together.
 * Returns how many are left. The log gets a line for each thread. */
int64_t memstow_shutdown_threads(uint32_t milliseconds);
/* Writes to the log which threads, processes and (since 1.6) descriptors are left. Returns the number of threads and
 * processes. `goes_on` = 1: the process goes on after all, and will not be ended. `goes_on` = 0: the process may use
 * the rest of its time to end. -ENOENT: no shutdown has begun.
 *
 * Since 1.6 it counts all processes that come from this one, registered or not, except processes that live on:
 *
 * - its children, and the processes that they have started;
 * - processes that were its children or their descendants when a stage began, even if their parent has ended;
 * - processes in a group or session that this process, or one of the processes above, began;
 * - processes with MEMSTOW_STARTED=PID.START.… or MEMSTOW_PROGRAM=PID.START in their environment, with this process's
 *   pid and start time. A program that puts MEMSTOW_PROGRAM into its own environment finds all processes that inherit
 *   it. */
int64_t memstow_shutdown_end(uint32_t goes_on);
/* Since 1.6: tells which processes the latest call of memstow_shutdown_end counted. Returns their number, and writes
 * the pids of the first `count` of them (256 at most). */
int64_t memstow_shutdown_left(int32_t *pids, uint32_t count);

/* Does a whole shutdown, for a program with handlers in C: begin, the four stages, processes, threads (since 1.4), end,
 * each with its default time. Returns the sum of the results of these steps. A thread that does not end counts twice:
 * in the steps threads and end. */
int64_t memstow_shutdown(const char *reason, uint32_t milliseconds, int32_t status);

#ifdef __cplusplus
}
#endif
#endif
