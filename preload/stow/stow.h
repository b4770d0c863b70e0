/* stow.h — moves host memory out to files and back, at the same address. In: pieces of memory with their owner, from
 * triggers and requests; the program's changes to its memory, from the hooks. Out: bytes that left or came back, and
 * for each piece why it did not. Memory is whole at every moment, whatever fails; docs/moving.md says how. Nothing here
 * touches memory that may be moving: its tables are its own. */
#ifndef MEMSTOW_STOW_H
#define MEMSTOW_STOW_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stow/move_end.h"

#pragma GCC visibility push(hidden)

/* Why a piece, or part of it, did not move. stow_refusal_text has a line for each. */
enum stow_refusal {
    STOW_DONE,          /* nothing was refused */
    STOW_EMPTY,         /* no whole page of it is in memory */
    STOW_GONE,          /* freed, unmapped or changed meanwhile */
    STOW_CANCELLED,     /* stow_options.end */
    STOW_NOT_PRIVATE,   /* shared with other processes */
    STOW_NO_ACCESS,     /* not readable and writable, or code */
    STOW_LOCKED,        /* mlock */
    STOW_LOCKS_FUTURE,  /* mlockall(MCL_FUTURE): what replaces it would be locked, too */
    STOW_PINNED,        /* a device or a system call in flight holds its pages */
    STOW_REGISTERED,    /* stow_lock_range */
    STOW_DEVICE_READS,  /* a device may use it where it is; the caller of the move says so */
    STOW_HELD_UNSEEN,   /* stow_options.held_unseen, and the kernel does not say of which pages */
    STOW_MEMORY_POLICY, /* mbind */
    STOW_KEY,           /* pkey_mprotect */
    STOW_SEALED,        /* mseal */
    STOW_FORK_ADVICE,   /* MADV_DONTFORK, MADV_WIPEONFORK */
    STOW_NO_DUMP,       /* MADV_DONTDUMP: it may be a secret, which does not belong on a disk */
    STOW_FAULTS_TAKEN,  /* the program's own userfaultfd */
    STOW_SPECIAL,       /* huge page file system, device memory */
    STOW_NAMELESS_FILE, /* of a file that was removed: it may lie in memory, and cannot be asked */
    STOW_STACK,         /* of a thread, or what the mover itself stands on */
    STOW_NOT_IDLE,      /* the kernel cannot move it atomically, and its owner is not idle */
    STOW_IN_USE,        /* declared idle, and written to */
    STOW_MAPPINGS,      /* near vm.max_map_count */
    STOW_ADDRESS_SPACE, /* RLIMIT_AS or the kernel leaves no room to move through */
    STOW_NO_DIRECTORY,  /* there is no directory, or it may not be written to */
    STOW_MEMORY_TARGET, /* the directory is on tmpfs, ramfs or the like: nothing would be given back */
    STOW_UNSAFE_TARGET, /* the directory is on FUSE or a network */
    STOW_FILE_LIMIT,    /* RLIMIT_FSIZE */
    STOW_DISK_FULL,
    STOW_DISK_ERROR,     /* the disk answered with an error */
    STOW_NO_DESCRIPTOR,  /* RLIMIT_NOFILE */
    STOW_SANDBOX,        /* the process entered seccomp */
    STOW_NO_KERNEL_HELP, /* a system call that this takes is missing or forbidden */
    STOW_REFUSALS
};

const char *stow_refusal_text(uint32_t refusal);

struct stow_piece {
    uint64_t start, length; /* any; whole pages inside it are looked at */
    uint32_t owner;
    uint32_t refusal; /* out: the first reason why something of it stayed */
    uint64_t moved;   /* out: bytes */
};

/* Ways of moving, the best first. Each takes those behind it when the kernel lacks it. */
enum stow_way { STOW_BY_MOVE, STOW_BY_REMAP, STOW_BY_COMPARING };

struct stow_options {
    bool idle;             /* nobody reads or writes the pieces until this returns */
    bool held_unseen;      /* a device may hold any of it without stow_lock_range: only the best way asks the pages */
    uint32_t way;          /* enum stow_way: no better one than this */
    const char *directory; /* NULL: MEMSTOW_STOW_DIR, or where caches go */
    struct move_end end;   /* may come at any time: it stops after the chunk that it is at */
    /* Called on the engine's thread when the move begins, when it is known how much there is to move (0: not yet), and
     * after each chunk. It must not allocate from the program. NULL: no calls. */
    void (*tell)(uint64_t moved, uint64_t wanted, void *context);
    /* Called once for each piece, on the engine's thread: is it still the owner's? From then on a thread that frees or
     * unmaps the piece waits. NULL: all are. It must not allocate from the program. */
    bool (*is_there)(const struct stow_piece *piece, void *context);
    void *context;
};

/* Moves pieces out; brings them back whole, into memory that no file backs. Returns the bytes that moved, or -errno
 * when there are none and something failed: -EBUSY, another call of the two is at work; -ENOTSUP, -ENOSPC, -EIO,
 * -ECANCELED, -EPERM, -ENOMEM: see the pieces' refusals. `options` may be NULL. Any thread; never in a hook. */
int64_t stow_out(struct stow_piece *pieces, uint32_t count, const struct stow_options *options);
int64_t stow_in(struct stow_piece *pieces, uint32_t count, const struct stow_options *options);

struct stow_progress {
    uint64_t moved, wanted; /* bytes; of the one at work, or of the last */
    bool at_work;
};
struct stow_progress stow_progress(void);

/* The bytes of an owner (0: of all) that were moved out and not brought back whole. *back_by_use, when not NULL, gets
 * how many of them are in memory again. It reads the page map: not for a hook. */
uint64_t stow_bytes(uint32_t owner, uint64_t *back_by_use);

/* The same of a range of addresses, of any owner. */
uint64_t stow_bytes_within(uint64_t start, uint64_t length);

/* What is `from`'s is `to`'s. */
void stow_change_owner(uint32_t from, uint32_t to);

/* Locks memory whose pages must stay where they are, because a device knows them (cudaHostRegister): brings it back
 * whole first. 0, or -errno: then it must not be registered. Each lock needs an unlock, with the same length. Any
 * thread, also in a hook; a forked child begins with none. */
int stow_lock_range(uint64_t start, uint64_t length);
void stow_unlock_range(uint64_t start, uint64_t length);

/* --- for the hooks --- */

/* Above 0: something is stowed, or about to be. */
extern uint32_t stow_watch;
/* Calls on their way, by the parity of the epoch in which they came. A thread that begins to move memory makes a new
 * epoch and waits for the calls of the last one. */
extern uint32_t stow_epoch, stow_passing[2];

enum { STOW_PASS_WATCHED = 2 };

/* Around a call that changes or gives back memory. The result says whether there is anything to look for. */
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

/* Each waits until nothing in the range is moving. After that nothing in it moves for a move that began before. */
void stow_note_change(uint64_t start, uint64_t length);  /* its mapping is about to change */
void stow_note_unmap(uint64_t start, uint64_t length);   /* it has been mapped over */
void stow_note_free(uint64_t start, uint64_t length);    /* a block, on its way back to its allocator: fresh memory */
void stow_note_discard(uint64_t start, uint64_t length); /* MADV_DONTNEED: zeros from now on */
/* It is about to be unmapped. If the kernel refuses that, the caller puts back what was known of it. */
enum { STOW_KEPT = 32 };
struct stow_kept {
    uint32_t count;
    struct stow_kept_range {
        uint64_t start, end;
        uint32_t owner;
    } ranges[STOW_KEPT];
};
void stow_note_unmapping(uint64_t start, uint64_t length, struct stow_kept *kept);
void stow_put_back(const struct stow_kept *kept);
/* Brings all of it back into memory that no file backs: 0, or -errno. `mine`: no other thread uses it meanwhile.
 * Devices that read the host's memory are not asked, because a hook cannot wait for them. */
int stow_note_whole(uint64_t start, uint64_t length, bool mine);

/* Around a fork: no chunk is on its way. */
struct stow_forking {
    uint32_t pass;
    bool held;           /* something is stowed: the table is held still */
    bool beside_threads; /* which the child does not have */
};
struct stow_forking stow_fork_begin(void);
void stow_fork_end(struct stow_forking self, bool in_child);
/* This process was forked beside threads, and one of them may have held the loader's lock. In this process that lock is
 * held for ever, and a thread that asks the loader what is loaded waits for ever. No device of the parent's works in
 * here. */
bool stow_forked_beside_threads(void);
/* Registers the calls around each fork() from now on. Call it before the program can register its own: glibc calls the
 * handler that was registered first last before a fork, when locks that the program takes for it are held already. */
void stow_watch_forks(void);

#pragma GCC visibility pop

#endif
