/* os.c — see os.h. Every call goes directly to the kernel. libc's wrappers set errno and are cancellation points, and
 * some of them are hooks of ours. */
#include "preload/shared/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "preload/shared/digit.h"

extern char **environ;

/* calls_forbidden: this thread may make nearly no system calls. Its time stands still at `monotonic` and `wall`. */
static __thread bool calls_forbidden __attribute__((tls_model("initial-exec")));
static struct timespec monotonic, wall;

static inline __attribute__((always_inline)) long call_kernel(long number, long a, long b, long c, long d, long e,
                                                              long f) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static __attribute__((noinline, cold)) long call_if_allowed(long number, long a, long b, long c, long d, long e,
                                                            long f) {
    bool allowed = number == SYS_read || number == SYS_write || number == SYS_exit || number == SYS_exit_group;
    return allowed ? call_kernel(number, a, b, c, d, e, f) : -EPERM;
}

long os_call6(long number, long a, long b, long c, long d, long e, long f) {
    if (unlikely(calls_forbidden)) return call_if_allowed(number, a, b, c, d, e, f);
    return call_kernel(number, a, b, c, d, e, f);
}

/* Asks Valgrind a question. The instructions have no effect, except under Valgrind, which recognises them (valgrind.h).
 * Elsewhere the answer is 0. */
static uint64_t ask_valgrind(uint64_t question, uint64_t a, uint64_t b) {
    uint64_t question_and_arguments[6] = {question, a, b}, answer = 0;
    __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
                     : "+d"(answer)
                     : "a"(question_and_arguments)
                     : "cc", "memory");
    return answer;
}

bool os_is_under_valgrind(void) {
    enum { RUNNING_ON_VALGRIND = 0x1001 };
    return ask_valgrind(RUNNING_ON_VALGRIND, 0, 0) != 0;
}

/* Whether Valgrind's tool DHAT runs the program. If so, other tools must not be asked, because DHAT complains about
 * questions to them. DHAT is recognised by the library that it preloads. */
static bool is_under_dhat(void) {
    enum { UNKNOWN, YES, NO };
    static uint32_t known; /* if two threads set it at once, both set the same value */
    uint32_t it = os_load32(&known);
    if (it == UNKNOWN && environ) {
        it = os_is_under_valgrind() && strstr(os_variable("LD_PRELOAD"), "vgpreload_dhat") ? YES : NO;
        __atomic_store_n(&known, it, __ATOMIC_RELAXED);
    }
    return it == YES;
}

void os_hide_from_valgrind(const void *start, size_t length) {
    if (is_under_dhat()) return;
    /* The number of a question to a tool of Valgrind: two letters for the tool, and an index from the tool's header. */
    enum { MAKE_UNTRACKED = 'H' << 24 | 'G' << 16 | (256 + 39), START_SUPPRESSION = 'D' << 24 | 'R' << 16 | 2 };
    ask_valgrind(MAKE_UNTRACKED, (uintptr_t)start, length);
    ask_valgrind(START_SUPPRESSION, (uintptr_t)start, length);
}

/* Maps the new memory a second time, by libc's mmap, because ThreadSanitizer sees only calls of that function. If
 * ThreadSanitizer did not see the new memory, it would report a race with a thread that used earlier memory at this
 * address. */
static void tell_thread_sanitizer(void *at, size_t length, int protection, int flags) {
#ifdef __SANITIZE_THREAD__
    int error = errno;
    mmap(at, length, protection, flags | MAP_FIXED, -1, 0);
    errno = error;
#else
    (void)at, (void)length, (void)protection, (void)flags;
#endif
}

static void *os_map_at(uintptr_t wanted, size_t length, int protection) {
    int flags = MAP_NORESERVE | MAP_PRIVATE | MAP_ANONYMOUS;
    long at = os_call(SYS_mmap, wanted, length, protection, flags, -1);
    if (at < 0 && at > -OS_PAGE) return NULL;
    os_hide_from_valgrind((void *)at, length);
    tell_thread_sanitizer((void *)at, length, protection, flags);
    return (void *)at;
}

void *os_map(size_t length) { return os_map_at(0, length, PROT_READ | PROT_WRITE); }

/* The areas of addresses for os_map_apart: one for each of three classes of alignment (up to a page, up to 256 KiB,
 * more). So mappings of one class are adjacent, and the kernel joins them into a few large ones. The areas lie below
 * the libraries, where sanitizers still allow memory. area_ends: where the next mapping of a class begins; 0: none was
 * made yet. */
#define AREA ((uintptr_t)64 << 30)
static uintptr_t area_ends[3];

/* The address at which the kernel is asked to map; 0: any address. */
static uintptr_t address_apart(size_t length, size_t align) {
    uint32_t i = align <= OS_PAGE ? 0 : align <= 256 * 1024 ? 1 : 2;
    uintptr_t here = (uintptr_t)area_ends & ~(AREA - 1), seen = __atomic_load_n(&area_ends[i], __ATOMIC_RELAXED), start;
    if (here / AREA < 5) return 0;
    do start = os_round_up(seen ? seen : here - (i + 3) * AREA, align);
    while (!__atomic_compare_exchange_n(&area_ends[i], &seen, start + os_round_up(length, OS_PAGE), true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return start;
}

void *os_map_apart(size_t length, size_t align) {
    void *at = os_map_at(address_apart(length, align), length, PROT_READ | PROT_WRITE);
    if (!at || (uintptr_t)at % align == 0) return at;
    os_unmap(at, length);
    return NULL;
}

void *os_reserve_apart(size_t length) { return os_map_at(address_apart(length, OS_PAGE), length, PROT_NONE); }

long os_map_file(void *at, size_t length, int fd, uint64_t offset) {
    long got = os_call(SYS_mmap, at, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset);
    if (got != (long)at) return got;
    os_hide_from_valgrind(at, length);
    return 0;
}

void os_unmap(void *start, size_t length) { os_call(SYS_munmap, start, length); }

static bool close_at(uintptr_t at, size_t length) {
    int flags = MAP_NORESERVE | MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    long got = os_call(SYS_mmap, at, length, PROT_NONE, flags, -1);
    if (got == (long)at) return true;
    /* Before Linux 4.17 the kernel may choose another address. */
    if (got > 0 || got <= -OS_PAGE) os_unmap((void *)got, length);
    return false;
}

/* Maps up to 2 MiB with PROT_NONE on either side of the library. Otherwise the program's next mappings would lie beside
 * the library. */
void os_close_holes(void) {
    extern char __ehdr_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));
    uintptr_t below = (uintptr_t)__ehdr_start, behind = os_round_up((uintptr_t)_end, OS_PAGE);
    for (size_t length = 1 << 20; length >= OS_PAGE; length /= 2) {
        if (close_at(below - length, length)) below -= length;
        if (close_at(behind, length)) behind += length;
    }
}

/* Descriptors that for a moment occupy the numbers of standard streams, because the program closed those streams. */
struct streams {
    int held[3], count;
};

/* Takes the numbers of closed standard streams. Otherwise a file of ours could get such a number, and what another
 * thread writes to its closed standard error would go into that file. An O_PATH descriptor refuses reads and writes, as
 * a closed one does. */
static void hold_streams(struct streams *self) {
    self->count = 0;
    for (int fd = 0; fd < 3; fd++)
        if (os_call(SYS_fcntl, fd, F_GETFD) == -EBADF) {
            int held = (int)os_call(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC);
            if (held >= 0) self->held[self->count++] = held;
        }
}

/* Closes the held descriptors, and returns `fd`. But if `fd` has the number of a standard stream, returns a copy of
 * `fd` with a higher number, and closes `fd`. Even after hold_streams, `fd` may have such a number, if another thread
 * had a descriptor with this number while hold_streams looked, and closed that descriptor before `fd` was opened. */
static int let_go_of_streams(const struct streams *self, int fd) {
    int opened = fd;
    for (int i = 0; i < self->count; i++) os_close(self->held[i]);
    if (fd < 0 || fd > 2) return fd;
    fd = (int)os_call(SYS_fcntl, opened, F_DUPFD_CLOEXEC, 3);
    os_close(opened);
    return fd;
}

int os_open_in(int folder, const char *path, int flags, int mode) {
    struct streams streams;
    bool writable = flags & (O_WRONLY | O_RDWR);
    long fd;
    if (writable) hold_streams(&streams);
    do fd = os_call(SYS_openat, folder, path, flags | O_CLOEXEC, mode);
    while (fd == -EINTR);
    return writable ? let_go_of_streams(&streams, (int)fd) : (int)fd;
}

int os_open(const char *path, int flags, int mode) { return os_open_in(AT_FDCWD, path, flags, mode); }

int os_open_memory(const char *name, unsigned flags) {
    struct streams streams;
    hold_streams(&streams);
    return let_go_of_streams(&streams, (int)os_call(SYS_memfd_create, name, flags));
}

void os_close(int fd) { os_call(SYS_close, fd); }

long os_read(int fd, void *to, size_t length) {
    size_t done = 0;
    while (done < length) {
        long got = os_call(SYS_read, fd, to + done, (long)(length - done));
        if (got == -EINTR) continue;
        if (got < 0) return got;
        if (got == 0) break;
        done += (size_t)got;
    }
    return (long)done;
}

long os_pread(int fd, void *to, size_t length, uint64_t offset) {
    long got;
    do got = os_call(SYS_pread64, fd, to, length, offset);
    while (got == -EINTR);
    return got;
}

long os_write(int fd, const void *from, size_t length) {
    size_t done = 0;
    while (done < length) {
        long put = os_call(SYS_write, fd, from + done, (long)(length - done));
        if (put == -EINTR) continue;
        if (put <= 0) return put ? put : -EIO;
        done += (size_t)put;
    }
    return 0;
}

int os_stat_fd(int fd, struct stat *out) { return (int)os_call(SYS_fstat, fd, out); }

uint64_t os_file_limit(void) {
    struct rlimit limit;
    if (os_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &limit) < 0) return 0;
    return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

/* --- copies by the kernel --- */

/* Copies in pieces, because a write takes only as many bytes as the pipe has space for, or as can be read from `from`.
 * False: a write or a read failed, for example with -EFAULT. */
static bool write_and_read(const int *ends, char *to, const char *from, size_t length) {
    for (size_t done = 0; done < length;) {
        long put = os_call(SYS_write, ends[1], from + done, length - done);
        if (put <= 0 || os_call(SYS_read, ends[0], to + done, put) != put) return false;
        done += (size_t)put;
    }
    return true;
}

static bool copy_through_pipe(char *to, const char *from, size_t length) {
    struct streams streams;
    int ends[2];
    hold_streams(&streams);
    bool open = os_call(SYS_pipe2, ends, O_CLOEXEC | O_NONBLOCK) == 0;
    bool copied = open && ends[0] > 2 && ends[1] > 2 && write_and_read(ends, to, from, length);
    if (open) os_close(ends[0]), os_close(ends[1]);
    let_go_of_streams(&streams, -1);
    return copied;
}

/* Whether a copy succeeded. `result` is what process_vm_readv or process_vm_writev returned. Some containers (Docker
 * 20.10) and other system call filters forbid these calls. If so, copies through a pipe. */
static bool is_copied(long result, char *to, const char *from, size_t length) {
    bool forbidden = result == -EPERM || result == -ENOSYS;
    return forbidden ? copy_through_pipe(to, from, length) : result == (long)length;
}

bool os_peek(void *to, const void *from, size_t length) {
    struct iovec here = {to, length}, there = {(void *)from, length};
    return is_copied(os_call(SYS_process_vm_readv, os_pid(), &here, 1, &there, 1), to, from, length);
}

bool os_poke(void *to, const void *from, size_t length) {
    struct iovec here = {(void *)from, length}, there = {to, length};
    return is_copied(os_call(SYS_process_vm_writev, os_pid(), &here, 1, &there, 1), to, from, length);
}

bool os_can_peek(void) {
    char from = 1, to = 0;
    return os_peek(&to, &from, 1);
}

struct entry64 { /* an entry of getdents64 */
    uint64_t inode;
    int64_t next;
    unsigned short length;
    unsigned char type;
    char name[];
};

void os_each_name(const char *folder, bool (*visit)(void *context, const char *name), void *context) {
    char buffer[4096] __attribute__((aligned(8)));
    int fd = os_open(folder, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) return;
    bool more = true;
    for (long got; more && (got = os_call(SYS_getdents64, fd, buffer, sizeof buffer)) > 0;)
        for (long at = 0; more && at < got;) {
            const struct entry64 *entry = (const struct entry64 *)(buffer + at);
            at += entry->length;
            if (entry->name[0] != '.') more = visit(context, entry->name);
        }
    os_close(fd);
}

int (*os_clock)(clockid_t clock, struct timespec *now);
bool os_ticks_forbidden;

static __attribute__((noinline, cold)) int read_without_libc(clockid_t clock, struct timespec *now) {
    if (!calls_forbidden) return (int)os_call(SYS_clock_gettime, clock, now);
    *now = clock == CLOCK_REALTIME ? wall : monotonic;
    return 0;
}

/* os_clock is the vDSO's clock. It makes no system call, and cannot fail for the clocks that are used here. */
static inline __attribute__((always_inline)) int read_clock(clockid_t clock, struct timespec *now) {
    int (*read)(clockid_t, struct timespec *) = __atomic_load_n(&os_clock, __ATOMIC_ACQUIRE);
    return likely(read && !calls_forbidden) ? read(clock, now) : read_without_libc(clock, now);
}

int os_read_clock(clockid_t clock, struct timespec *now) { return read_clock(clock, now); }

/* All threads share `monotonic` and `wall`. If two threads call this function at once, both store nearly the same
 * times, so sharing does no harm. */
void os_forbid_calls(void) {
    os_read_clock(CLOCK_MONOTONIC, &monotonic);
    os_read_clock(CLOCK_REALTIME, &wall);
    calls_forbidden = true;
}

void os_allow_calls(void) { calls_forbidden = false; }

void os_forbid_ticks(void) {
    __atomic_store_n(&os_ticks_forbidden, true, __ATOMIC_RELAXED);
    __atomic_store_n(&os_clock, NULL, __ATOMIC_RELEASE);
}

static uint64_t clock_ns(clockid_t clock) {
    struct timespec now = {0};
    read_clock(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t os_now(void) { return clock_ns(CLOCK_MONOTONIC); }

uint64_t os_wall_now(void) { return clock_ns(CLOCK_REALTIME); }

uint32_t os_pid(void) { return (uint32_t)os_call(SYS_getpid); }

uint32_t os_tid(void) { return (uint32_t)os_call(SYS_gettid); }

bool os_single_threaded(void) {
    struct stat tasks;
    /* Each thread has a subfolder here, and a folder has two links more than it has subfolders. */
    return os_call(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3;
}

void os_copy(char *to, size_t capacity, const char *from) {
    size_t length = strlen(from);
    length = length < capacity ? length : capacity - 1;
    memcpy(to, from, length);
    to[length] = 0;
}

static inline char *put_number(char *to, uint64_t n, unsigned base) {
    char digits[20];
    int count = 0;
    do digits[count++] = "0123456789abcdef"[n % base];
    while ((n /= base));
    while (count) *to++ = digits[--count];
    *to = 0;
    return to;
}

char *os_decimal(char *to, uint64_t n) { return put_number(to, n, 10); }

char *os_hexadecimal(char *to, uint64_t n) { return put_number(to, n, 16); }

uint64_t os_take_decimal(const char **at) {
    uint64_t n = 0;
    for (; digit_is_decimal(**at); (*at)++) n = n * 10 + (uint64_t)(**at - '0');
    return n;
}

uint64_t os_take_hexadecimal(const char **at) {
    uint64_t n = 0;
    for (int digit; (digit = digit_value(**at)) >= 0; (*at)++) n = n << 4 | (uint64_t)digit;
    return n;
}

const char *os_variable(const char *key) {
    size_t length = strlen(key);
    for (char **at = environ; at && *at; at++)
        if (!strncmp(*at, key, length) && (*at)[length] == '=') return *at + length + 1;
    return "";
}

static void stat_path(char out[40], uint32_t pid) {
    strcpy(out, "/proc/");
    strcpy(os_decimal(out + strlen(out), pid), "/stat");
}

uint64_t os_start_ticks(uint32_t pid) {
    char path[40] = "/proc/self/stat", text[1024];
    if (pid) stat_path(path, pid);
    int fd = os_open(path, O_RDONLY, 0);
    if (fd < 0) return 0;
    long n = os_read(fd, text, sizeof text - 1);
    os_close(fd);
    if (n <= 0) return 0;
    text[n] = 0;
    const char *at = strrchr(text, ')'); /* the name may contain spaces and parentheses */
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    at = at ? at + 1 : "";
    return os_take_decimal(&at);
}

bool os_has_ended(int pidfd) {
    struct pollfd look = {.fd = pidfd, .events = POLLIN};
    return os_call(SYS_poll, &look, 1, 0) > 0;
}

/* Opens the process first, and checks its start time after that. So the descriptor cannot mean a later process with the
 * same pid. */
int os_hold_process(uint32_t pid, uint64_t start_ticks) {
    int fd = (int)os_call(SYS_pidfd_open, pid, 0);
    if (fd < 0) return fd;
    uint64_t now = os_start_ticks(pid);
    if (now == start_ticks) return fd;
    bool ended = os_has_ended(fd);
    os_close(fd);
    return ended || now ? -ESRCH : -EIO;
}

bool os_boot_id(uint8_t out[16]) {
    char text[40] = {0};
    int fd = os_open("/proc/sys/kernel/random/boot_id", O_RDONLY, 0);
    if (fd < 0) return false;
    os_read(fd, text, sizeof text - 1);
    os_close(fd);
    int n = 0;
    for (const char *p = text; *p && n < 32; p++) {
        int digit = digit_value(*p);
        if (digit < 0) continue;
        out[n / 2] = (uint8_t)(n % 2 ? out[n / 2] << 4 | digit : digit);
        n++;
    }
    return n == 32;
}
