/* stow.h — moves host memory out to files and back, at the same address.
 * In: pieces of memory with their owner, from triggers and requests; the program's changes to its memory, from the
 * hooks. Out: the bytes that moved, and for each piece the reason why a part of it stayed. No content is lost, whatever
 * fails; docs/moving.md says how. The engine keeps its tables in memory of its own, never in memory that may move. */
#ifndef MEMSTOW_STOW_H
#define MEMSTOW_STOW_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stow/move_end.h"

#pragma GCC visibility push(hidden)

/* Why a piece, or a part of it, did not move. stow_refusal_text gives the text of a reason. */
enum stow_refusal {
    STOW_DONE,          /* nothing was refused */
    STOW_EMPTY,         /* stow_out: the piece has no whole page in memory; stow_in: nothing of it is stowed */
    STOW_GONE,          /* freed, unmapped or changed meanwhile */
    STOW_CANCELLED,     /* stow_options.end stopped the move */
    STOW_NOT_PRIVATE,   /* shared with other processes */
    STOW_NO_ACCESS,     /* not both readable and writable, or code */
    STOW_LOCKED,        /* mlock */
    STOW_LOCKS_FUTURE,  /* mlockall(MCL_FUTURE): the new mapping would be locked, too */
    STOW_PINNED,        /* a device, or a system call in progress, holds its pages */
    STOW_REGISTERED,    /* locked by stow_lock_range */
    STOW_DEVICE_READS,  /* a device can use it where it is; the engine never gives this reason, only its callers do */
    STOW_HELD_UNSEEN,   /* stow_options.held_unseen is set, and the kernel does not say which pages a device holds */
    STOW_MEMORY_POLICY, /* mbind */
    STOW_KEY,           /* pkey_mprotect */
    STOW_SEALED,        /* mseal */
    STOW_FORK_ADVICE,   /* MADV_DONTFORK, MADV_WIPEONFORK */
    STOW_NO_DUMP,       /* MADV_DONTDUMP: it may be a secret, which must not go to a disk */
    STOW_FAULTS_TAKEN,  /* the program uses userfaultfd on it */
    STOW_SPECIAL,       /* hugetlb, device memory, a shadow stack, or a file's pages that are locked */
    STOW_NAMELESS_FILE, /* a file that has lost its name: nobody can see whether its file system is in memory */
    STOW_STACK,         /* memory that grows down, or the mover's own stack or thread-local storage */
    STOW_NOT_IDLE,      /* the kernel cannot move it atomically, and its owner is not idle */
    STOW_IN_USE,        /* its owner was declared idle, but somebody wrote to it */
    STOW_MAPPINGS,      /* the program is near vm.max_map_count */
    STOW_ADDRESS_SPACE, /* RLIMIT_AS or the kernel leaves no address space to move through */
    STOW_NO_DIRECTORY,  /* there is no directory, or it is not writable */
    STOW_MEMORY_TARGET, /* the directory is on tmpfs, ramfs or the like: no memory would be freed */
    STOW_UNSAFE_TARGET, /* the directory is on FUSE, a network or an unknown file system */
    STOW_FILE_LIMIT,    /* RLIMIT_FSIZE */
    STOW_DISK_FULL,
    STOW_DISK_ERROR,     /* the disk answered with an error */
    STOW_NO_DESCRIPTOR,  /* none is left, or the program closed ours */
    STOW_SANDBOX,        /* the process entered seccomp */
    STOW_NO_KERNEL_HELP, /* a necessary system call is missing or forbidden */
    STOW_REFUSALS
};

const char *stow_refusal_text(uint32_t refusal);

struct stow_piece {
    uint64_t start, length; /* any range; only the whole pages in it move */
    uint32_t owner;
    uint32_t refusal; /* out: the first reason why a part of the piece stayed */
    uint64_t moved;   /* out: bytes */
};

/* How memory is moved, the best method first. STOW_BY_MOVE: by the kernel's page move (UFFDIO_MOVE). STOW_BY_REMAP: by
 * mremap. STOW_BY_COMPARING: memory is copied to the file, and the file's mapping replaces the memory if that is still
 * equal to the copy. The last two methods need an idle owner. If the kernel lacks a method, the next one is used. */
enum stow_method { STOW_BY_MOVE, STOW_BY_REMAP, STOW_BY_COMPARING };

struct stow_options {
    bool idle;             /* the caller promises that nobody reads or writes the pieces until the call returns */
    bool held_unseen;      /* a device may hold pages without stow_lock_range; only STOW_BY_MOVE notices such pages */
    uint32_t method;       /* enum stow_method: the best method that may be used */
    const char *directory; /* NULL: MEMSTOW_STOW_DIR; if that is not set, the directory for caches or /var/tmp */
    struct move_end end;   /* ends the move early, after its present chunk (move_end.h) */
    /* Called on the engine's thread: when the move begins, when the amount is known (`wanted` is 0 until then), and
     * after each chunk. The function must not use the program's allocator. NULL: no calls. */
    void (*tell)(uint64_t moved, uint64_t wanted, void *context);
    /* Returns whether the owner still has the piece. stow_out calls it once for each piece, on the engine's thread.
     * From this call on, a thread that frees or unmaps the piece waits until the piece's present chunk has moved. The
     * rest of the piece then stays. NULL: the owner has all pieces. The function must not use the program's
     * allocator. */
    bool (*is_there)(const struct stow_piece *piece, void *context);
    void *context;
};

/* stow_out moves pieces out. stow_in brings them back completely, into memory that no file backs. Both return how many
 * bytes moved, or -errno if something failed and nothing moved. -EBUSY means that another call of stow_out or stow_in
 * is running. After -ENOTSUP, -ENOSPC, -EIO, -ECANCELED, -EPERM or -ENOMEM, the refusals of the pieces may say more.
 * `options` may be NULL. Any thread may call these functions, but not in a hook. */
int64_t stow_out(struct stow_piece *pieces, uint32_t count, const struct stow_options *options);
int64_t stow_in(struct stow_piece *pieces, uint32_t count, const struct stow_options *options);

struct stow_progress {
    uint64_t moved, wanted; /* bytes of the move in progress, or else of the latest move */
    bool at_work;
};
struct stow_progress stow_progress(void);

/* How many bytes of an owner (0: of all owners) were moved out and not brought back completely. If the program has used
 * such bytes since, they are in memory again, but still count. */
uint64_t stow_bytes(uint32_t owner);

/* As stow_bytes, for a range of addresses and all owners. */
uint64_t stow_bytes_within(uint64_t start, uint64_t length);

/* Gives all stowed or moving memory of the owner `from` to the owner `to`. */
void stow_change_owner(uint32_t from, uint32_t to);

/* Locks memory whose pages must not move, because a device knows them (cudaHostRegister). Before that, all stowed
 * content of the range comes back. Returns 0, or -errno; after an error the caller must not register the memory.
 * Each lock needs an unlock with the same start and length. Any thread may call these functions, even in a hook. A
 * forked child begins with no locks. */
int stow_lock_range(uint64_t start, uint64_t length);
void stow_unlock_range(uint64_t start, uint64_t length);

/* --- for the hooks --- */

/* Above 0: memory is stowed, or a move is in progress. */
extern uint32_t stow_watch;
/* stow_passing: how many threads are between stow_pass_begin and stow_pass_end. A thread counts in
 * stow_passing[epoch & 1]; `epoch` is the epoch in which it called stow_pass_begin. A thread that begins to move memory
 * starts a new epoch, and waits until the count of the former epoch is 0. */
extern uint32_t stow_epoch, stow_passing[2];

enum { STOW_PASS_WATCHED = 2 };

/* Call stow_pass_begin before, and stow_pass_end after, a call that changes or gives back memory. stow_pass_watched
 * says whether anything was stowed or moving when stow_pass_begin was called. `pass` is the result of
 * stow_pass_begin. */
static inline uint32_t stow_pass_begin(void) {
    for (;;) {
        uint32_t epoch = __atomic_load_n(&stow_epoch, __ATOMIC_SEQ_CST);
        __atomic_fetch_add(&stow_passing[epoch & 1], 1, __ATOMIC_SEQ_CST);
        if (__builtin_expect(__atomic_load_n(&stow_epoch, __ATOMIC_SEQ_CST) == epoch, 1))
            return (epoch & 1) | (__atomic_load_n(&stow_watch, __ATOMIC_SEQ_CST) ? STOW_PASS_WATCHED : 0);
        __atomic_fetch_sub(&stow_passing[epoch & 1], 1, __ATOMIC_SEQ_CST);
    }
}
static inline bool stow_pass_watched(uint32_t pass) { return __builtin_expect(pass & STOW_PASS_WATCHED, 0); }
static inline void stow_pass_end(uint32_t pass) { __atomic_fetch_sub(&stow_passing[pass & 1], 1, __ATOMIC_SEQ_CST); }

/* Each stow_note_… function waits until nothing in the range is moving. After that, no move that began earlier touches
 * the range. */
void stow_note_change(uint64_t start, uint64_t length); /* the mapping is about to change */
/* Call it after another mapping has replaced the range. */
void stow_note_unmap(uint64_t start, uint64_t length);
/* Call it when a block goes back to its allocator. Stowed parts of the block become fresh memory. */
void stow_note_free(uint64_t start, uint64_t length);
/* Call it before the content is discarded (MADV_DONTNEED). Stowed parts become zeros now. Returns 0, or -ENOMEM if
 * some parts are still stowed. After -ENOMEM the kernel must not discard the range, because the file's bytes would
 * come back. */
int stow_note_discard(uint64_t start, uint64_t length);
/* Call it before the range is unmapped. *unmapped gets the stowed regions in the range. If the kernel refuses to unmap
 * the range, the caller passes *unmapped to stow_put_back. */
enum { STOW_UNMAPPED_MOST = 32 };
struct stow_unmapped {
    uint32_t count;
    struct stow_unmapped_range {
        uint64_t start, end;
        uint32_t owner;
    } ranges[STOW_UNMAPPED_MOST];
};
void stow_note_unmapping(uint64_t start, uint64_t length, struct stow_unmapped *unmapped);
void stow_put_back(const struct stow_unmapped *unmapped);
/* Brings the whole range back into memory that no file backs. `mine`: no other thread uses the range meanwhile. Returns
 * 0 or -errno, such as:
 * - -EPERM: the process is in a sandbox. In it, stowed memory comes back only by use, and never moves again.
 * - -EAGAIN: a thread is on its way into a sandbox, and may not get there.
 * The function does not wait for devices that read the range, because a hook must not wait for them. */
int stow_note_whole(uint64_t start, uint64_t length, bool mine);

/* Call stow_fork_begin before a fork, and stow_fork_end after it. Between the two calls no chunk is moving. */
struct stow_forking {
    uint32_t pass;
    bool held;           /* something is stowed or moving, so the table is locked */
    bool beside_threads; /* the process has threads that the child will lack; true also in a sandbox */
};
struct stow_forking stow_fork_begin(void);
void stow_fork_end(struct stow_forking self, bool in_child);
/* Whether this process was forked while other threads ran, or in a sandbox. If one of those threads held the loader's
 * lock, the lock is held for ever in this process, and a thread that asks the loader would wait for ever. Devices that
 * the parent used do not work in this process either. */
bool stow_forked_beside_threads(void);
/* Makes each fork() call stow_fork_begin and stow_fork_end. Call it before the program can register handlers.
 * Before a fork, the handler that was registered first runs last. So ours runs when the program's handlers hold
 * their locks already. */
void stow_watch_forks(void);

#pragma GCC visibility pop

#endif
