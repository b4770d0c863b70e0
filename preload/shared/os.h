/* os.h — the only way to the kernel and the processor: raw system calls, the clock, and additions that a signal cannot
 * interrupt halfway.
 * In: plain arguments. Out: results or -errno. None of these functions may touch errno, allocate, or be a cancellation
 * point, because hooks call them in the middle of the program's malloc. */
#ifndef MEMSTOW_OS_H
#define MEMSTOW_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#pragma GCC visibility push(hidden)

#if !defined(__x86_64__) || !defined(__linux__)
#error "memstow supports x86-64 Linux"
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

enum { OS_PAGE = 4096, OS_HUGE_PAGE = 2 << 20 };

/* A system call. The result is the kernel's: -errno on failure. */
long os_call6(long number, long a, long b, long c, long d, long e, long f);
/* Call os_forbid_calls on a thread that is about to enter the strictest sandbox (SECCOMP_MODE_STRICT). In this sandbox
 * nearly every system call kills the thread, and libc's clock raises SIGSEGV. So from now on, on this thread:
 *   - os_call makes only calls that the sandbox allows, and SYS_exit_group. For all other calls it returns -EPERM.
 *   - os_read_clock, os_now and os_wall_now return the time at which os_forbid_calls was last called, on any thread.
 * If the thread did not get into the sandbox, call os_allow_calls, which ends both. */
void os_forbid_calls(void);
void os_allow_calls(void);
/* A system call with up to six arguments, integers or pointers. */
#define os_call(...) OS_CALL_PADDED(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define OS_CALL_PADDED(number, a, b, c, d, e, f, ...)                                                                  \
    os_call6(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* Whether Valgrind runs the program. */
bool os_is_under_valgrind(void);
/* Hides memory from Valgrind's Helgrind and DRD, which do not understand atomic words without a lock. Memory that
 * the functions below map is hidden already. Without Valgrind nothing happens. */
void os_hide_from_valgrind(const void *start, size_t length);

void *os_map(size_t length); /* private zeroed memory, or NULL */
/* Private zeroed memory that begins at a multiple of `align`, a power of two. If possible, the memory lies far from the
 * program's mappings, so that a write past the end of a program's mapping does not hit it. NULL: there is no memory, or
 * the kernel chose an address that is no multiple of `align`. */
void *os_map_apart(size_t length, size_t align);
void *os_reserve_apart(size_t length); /* address space without access, or NULL */
void os_close_holes(void);             /* call it once: maps free addresses beside the library, with PROT_NONE */
/* Maps a file at exactly `at`, as a shared mapping for reading and writing. Returns 0 or -errno. */
long os_map_file(void *at, size_t length, int fd, uint64_t offset);
void os_unmap(void *start, size_t length);
/* Each returns a descriptor or -errno. os_open_in: `path` is relative to a folder. os_open_memory: memfd_create. A
 * descriptor that can be written to never has the number of a standard stream (0 to 2), also if the program has closed
 * that stream. */
int os_open(const char *path, int flags, int mode);
int os_open_in(int folder, const char *path, int flags, int mode);
int os_open_memory(const char *name, unsigned flags);
void os_close(int fd);
/* Reads `length` bytes, or up to the end of the file; restarts after a signal. Returns how many bytes were read, or
 * -errno. */
long os_read(int fd, void *to, size_t length);
/* Reads `length` bytes or fewer at an offset, by one system call. It repeats the call only after a signal. Returns how
 * many bytes were read, or -errno. */
long os_pread(int fd, void *to, size_t length, uint64_t offset);
/* Writes everything or returns -errno; restarts after a signal. */
long os_write(int fd, const void *from, size_t length);
/* os_peek reads memory that may be unmapped, os_poke writes to such memory. False: the copy failed, perhaps after some
 * of the bytes. If a system call filter forbids the kernel's own copies, the bytes go through a pipe, which needs two
 * descriptors for a moment. */
bool os_peek(void *to, const void *from, size_t length);
bool os_poke(void *to, const void *from, size_t length);
/* Whether os_peek can copy even the library's own memory. False: it cannot, and a failed os_peek says nothing about the
 * memory that it should read. */
bool os_can_peek(void);
int os_stat_fd(int fd, struct stat *out); /* 0 or -errno */
/* RLIMIT_FSIZE in bytes: a write beyond it raises SIGXFSZ, which kills. UINT64_MAX: no limit. 0: it is not known. */
uint64_t os_file_limit(void);
/* Calls visit for each name in a folder until visit returns false. Hidden names are left out. A folder that cannot be
 * read has no names. */
void os_each_name(const char *folder, bool (*visit)(void *context, const char *name), void *context);

/* libc's clock_gettime. NULL before it is known, and while it may not be used: then the functions below make a system
 * call. */
extern int (*os_clock)(clockid_t clock, struct timespec *now);
int os_read_clock(clockid_t clock, struct timespec *now); /* as clock_gettime; 0 or -errno */
uint64_t os_now(void);                                    /* CLOCK_MONOTONIC, ns */
uint64_t os_wall_now(void);                               /* CLOCK_REALTIME, ns */
/* Ticks of the processor, some billions a second. They may jump when a thread changes its processor, so use them only
 * to ask whether some time has passed. After os_forbid_ticks: nanoseconds. */
extern bool os_ticks_forbidden;
static inline uint64_t os_ticks(void) {
    return unlikely(__atomic_load_n(&os_ticks_forbidden, __ATOMIC_RELAXED)) ? os_now() : __builtin_ia32_rdtsc();
}
/* Call it before a thread forbids itself to read the processor's counter (PR_SET_TSC). libc's clock reads the counter,
 * too. So after this call all threads ask the kernel for the time. */
void os_forbid_ticks(void);
uint32_t os_pid(void);
uint32_t os_tid(void);
/* The value of pthread_self(). */
static inline uintptr_t os_thread(void) {
    uintptr_t self;
    __asm__("movq %%fs:0, %0" : "=r"(self));
    return self;
}
bool os_single_threaded(void); /* whether the process has one thread; false also if /proc does not tell */
/* When a process started, in ticks since the boot (field 22 of /proc/<pid>/stat); 0: it cannot be read. pid 0 is the
 * caller. */
uint64_t os_start_ticks(uint32_t pid);
/* A pidfd of the process with this pid and start time, also of a zombie. It never means another process, even when the
 * pid is used again. -ESRCH: the process is gone; other -errno: the process could not be opened or checked. */
int os_hold_process(uint32_t pid, uint64_t start_ticks);
bool os_has_ended(int pidfd); /* whether the process has ended; a zombie has */
/* The kernel's boot id as 16 bytes; false when it cannot be read. */
bool os_boot_id(uint8_t out[16]);

/* Adds in one instruction, so a signal handler that counts on the same thread loses nothing. Other threads may read the
 * word, but must not write it. */
static inline void os_add(uint64_t *word, uint64_t n) {
#if defined(__SANITIZE_THREAD__)
    __atomic_fetch_add(word, n, __ATOMIC_RELAXED);
#else
    __asm__ volatile("addq %1, %0" : "+m"(*word) : "er"(n) : "cc");
#endif
}

/* Clears the highest bit of a word, and returns what it was: one instruction, where a compiler makes two. */
static inline bool os_take_highest_bit(uint64_t *word) {
    bool was;
    __asm__("btrq $63, %0" : "+r"(*word), "=@ccc"(was));
    return was;
}

/* Sets a word to `value`, unless the word is higher already. Any thread may call. */
static inline void os_raise(uint64_t *word, uint64_t value) {
    uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (seen < value && !__atomic_compare_exchange_n(word, &seen, value, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

/* --- text, without libc's formatted output, which may allocate --- */

/* Copies a text, cut to `capacity` bytes with its NUL. */
void os_copy(char *to, size_t capacity, const char *from);
/* Writes a decimal number: at most 21 bytes, with its NUL. Returns the address of the NUL. */
char *os_decimal(char *to, uint64_t n);
/* Writes a hexadecimal number, without 0x: at most 17 bytes, with its NUL. Returns the address of the NUL. */
char *os_hexadecimal(char *to, uint64_t n);
/* Reads a decimal number, and moves *at past its digits. Returns 0 if there are no digits. Overflow is not checked. */
uint64_t os_take_decimal(const char **at);
/* As os_take_decimal, for a hexadecimal number without 0x. */
uint64_t os_take_hexadecimal(const char **at);

/* The present value of an environment variable; "": it is not set. */
const char *os_variable(const char *key);

static inline uint64_t os_load(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }

static inline uint32_t os_load32(const uint32_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }

/* n, or 0 if n is below 0: for a sum that may be below 0 for a moment, and for a result that may be -errno. */
static inline uint64_t os_not_negative(int64_t n) { return n > 0 ? (uint64_t)n : 0; }

static inline void os_store(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELAXED); }

static inline size_t os_round_up(size_t n, size_t unit) { return (n + unit - 1) & ~(unit - 1); }

#pragma GCC visibility pop

#endif
