/* stow_file.c — see stow_file.h. */
#include "preload/stow/stow_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include "preload/shared/os.h"
#include "preload/shared/snapshot.h"
#include "preload/stow/stow.h"

enum { PATH_SIZE = 4096, AT_ONCE = 16 << 20, PROBE = 16 * OS_PAGE };

/* --- judging the file system --- */

#define XFS_MAGIC 0x58465342
#define ZFS_MAGIC 0x2fc12fc1
#define BCACHEFS_MAGIC 0xca451a4e

/* Accepts file systems that are known to keep files outside of memory, and that need no server. An overlay is accepted,
 * too. The file system under an overlay is unknown, so leaves_memory tests it later. */
static uint32_t judge_type(uint64_t type) {
    switch (type) {
    case EXT4_SUPER_MAGIC: /* also ext2, ext3 */
    case XFS_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case ZFS_MAGIC:
    case BCACHEFS_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
        return STOW_DONE;
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
    case HUGETLBFS_MAGIC:
        return STOW_MEMORY_TARGET;
    default:
        return STOW_UNSAFE_TARGET;
    }
}

uint32_t stow_file_judge(int fd) {
    struct statfs fs;
    return os_call(SYS_fstatfs, fd, &fs) < 0 ? STOW_NO_DIRECTORY : judge_type((uint64_t)fs.f_type);
}

static bool is_overlay(int fd) {
    struct statfs fs;
    return os_call(SYS_fstatfs, fd, &fs) < 0 || fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

/* --- opening a file without a name --- */

static uint32_t refusal_of(long error) {
    switch (error) {
    case -ENOSPC:
    case -EDQUOT:
        return STOW_DISK_FULL;
    case -EFBIG:
        return STOW_FILE_LIMIT;
    case -EMFILE:
    case -ENFILE:
        return STOW_NO_DESCRIPTOR;
    case -ENOMEM:
        return STOW_ADDRESS_SPACE;
    default:
        return STOW_DISK_ERROR;
    }
}

static bool remove_left(void *context, const char *name) {
    const char *const *directory = context;
    char path[PATH_SIZE + NAME_MAX + 2];
    if (strncmp(name, SNAP_STOW_FILE, strlen(SNAP_STOW_FILE)) != 0) return true;
    strcpy(path, *directory);
    strcat(path, "/");
    strcat(path, name);
    os_call(SYS_unlink, path);
    return true;
}

/* Opens a file where O_TMPFILE does not work. The file has a name for a moment. If the process is killed before it
 * removes the name, the file stays. So this function first removes all such names from the directory. One of them may
 * belong to a process that is about to remove it. This does no harm, because that process has its file open. */
static int open_named(const char *directory, int flags) {
    char path[PATH_SIZE + 64];
    static uint32_t serial;
    os_each_name(directory, remove_left, &directory);
    strcpy(path, directory);
    strcat(path, "/");
    strcat(path, SNAP_STOW_FILE);
    char *end = os_decimal(path + strlen(path), os_pid());
    *end++ = '.';
    os_decimal(end, __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED));
    int fd = os_open(path, flags | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd >= 0) os_call(SYS_unlink, path);
    return fd;
}

static int open_nameless(const char *directory, int flags) {
    int fd = os_open(directory, flags | O_TMPFILE, 0600);
    return fd == -EOPNOTSUPP || fd == -EISDIR || fd == -ENOENT ? open_named(directory, flags) : fd;
}

static int open_in(struct stow_file *self, const char *directory) {
    self->direct = true;
    int fd = open_nameless(directory, O_RDWR | O_DIRECT);
    if (fd != -EINVAL) return fd;
    self->direct = false;
    return open_nameless(directory, O_RDWR);
}

/* --- reserving space --- */

/* Takes back the SIGXFSZ that a write beyond the file size limit has raised. The signal is blocked on this thread, and
 * without this it could kill the process later. The limit was checked before, but the program may have lowered it
 * since. */
static void take_back_signal(void) {
    const uint64_t set = (uint64_t)1 << (SIGXFSZ - 1);
    const struct timespec now = {0};
    os_call(SYS_rt_sigtimedwait, &set, NULL, &now, sizeof set);
}

static uint32_t stow_file_failed(long error) {
    if (error == -EFBIG) take_back_signal();
    return refusal_of(error);
}

/* Reserves all space before any memory moves, if the file system can. So if the disk is too full, the move is
 * refused before it has begun. */
static uint32_t stow_file_reserve(int fd, uint64_t size) {
    if (size > os_file_limit()) return STOW_FILE_LIMIT;
    long result = os_call(SYS_fallocate, fd, 0, 0, size);
    if (result == -EOPNOTSUPP) result = os_call(SYS_ftruncate, fd, size);
    return result < 0 ? stow_file_failed(result) : STOW_DONE;
}

/* --- writing to the file --- */

/* Returns false if the program has closed our descriptor (for example with closefrom()). Another file may have the
 * descriptor's number now. */
bool stow_file_is_still(const struct stow_file *self) {
    struct stat now;
    return os_stat_fd(self->fd, &now) == 0 && now.st_dev == self->device && now.st_ino == self->inode;
}

static long write_some(struct stow_file *self, const char *from, uint64_t length, uint64_t offset) {
    long put;
    do put = os_call(SYS_pwrite64, self->fd, from, length < AT_ONCE ? length : AT_ONCE, offset);
    while (put == -EINTR);
    if (put != -EINVAL || !self->direct) return put;
    self->direct = false; /* some file systems accept O_DIRECT at open and refuse it at the write */
    os_call(SYS_fcntl, self->fd, F_SETFL, 0);
    return -EAGAIN;
}

uint32_t stow_file_write_at(struct stow_file *self, const void *from, uint64_t length, uint64_t at) {
    for (uint64_t done = 0; done < length;) {
        if (!stow_file_is_still(self)) return STOW_NO_DESCRIPTOR;
        long put = write_some(self, (const char *)from + done, length - done, at + done);
        if (put == -EAGAIN) continue;
        if (put == 0) return STOW_DISK_ERROR;
        if (put < 0) return stow_file_failed(put);
        done += (uint64_t)put;
        if (put % OS_PAGE) self->direct = false, os_call(SYS_fcntl, self->fd, F_SETFL, 0);
    }
    return STOW_DONE;
}

/* A failed flush is not repeated: the kernel no longer knows which pages were not written. */
static uint32_t stow_file_flush_to(struct stow_file *self, uint64_t length) {
    if (!stow_file_is_still(self)) return STOW_NO_DESCRIPTOR;
    long result = os_call(SYS_fdatasync, self->fd);
    if (result < 0) return stow_file_failed(result);
    os_call(SYS_fadvise64, self->fd, self->used, length, POSIX_FADV_DONTNEED);
    return STOW_DONE;
}

uint32_t stow_file_write(struct stow_file *self, const void *from, uint64_t length) {
    uint32_t refusal = stow_file_write_at(self, from, length, self->used);
    return refusal ? refusal : stow_file_flush_to(self, length);
}

uint32_t stow_file_append(struct stow_file *self, const void *pages, uint64_t length) {
    uint32_t refusal = stow_file_write_at(self, pages, length, self->used);
    if (!refusal) self->used += length;
    return refusal;
}

uint32_t stow_file_flush(struct stow_file *self, uint64_t from) {
    struct stow_file part = *self;
    part.used = from;
    return stow_file_flush_to(&part, self->used - from);
}

void *stow_file_map(const struct stow_file *self, uint64_t length) {
    if (!stow_file_is_still(self)) return NULL;
    long at =
        os_call(SYS_mmap, NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, self->fd, self->used);
    return at < 0 && at > -OS_PAGE ? NULL : (void *)at;
}

/* --- opening a stow file --- */

static bool is_in_memory(const struct stow_file *self) {
    unsigned char there[PROBE / OS_PAGE];
    void *pages = stow_file_map(self, PROBE);
    bool absent = pages && os_call(SYS_mincore, pages, PROBE, there) == 0 && !memchr(there, 1, sizeof there);
    if (pages) os_unmap(pages, PROBE);
    return !absent;
}

/* Whether pages of the file are out of memory after they were written, flushed and dropped. They stay in memory if the
 * file system is an overlay whose upper file system is tmpfs. */
static bool leaves_memory(struct stow_file *self) {
    void *zeros = os_map(PROBE);
    bool leaves = zeros && stow_file_write(self, zeros, PROBE) == STOW_DONE && !is_in_memory(self);
    if (zeros) os_unmap(zeros, PROBE);
    return leaves;
}

static uint32_t stow_file_prepare(struct stow_file *self, uint64_t size) {
    struct stat status;
    uint32_t refusal = stow_file_judge(self->fd);
    if (refusal) return refusal;
    if (os_stat_fd(self->fd, &status) < 0) return STOW_DISK_ERROR;
    self->device = status.st_dev, self->inode = status.st_ino;
    refusal = stow_file_reserve(self->fd, size > PROBE ? size : PROBE);
    if (!refusal && is_overlay(self->fd) && !leaves_memory(self)) refusal = STOW_MEMORY_TARGET;
    return refusal;
}

uint32_t stow_file_take(struct stow_file *self, int fd, bool direct, uint64_t size) {
    *self = (struct stow_file){.fd = fd, .direct = direct};
    if (fd == -EMFILE || fd == -ENFILE || fd == -ENOSPC) return refusal_of(fd);
    if (fd < 0) return STOW_NO_DIRECTORY;
    uint32_t refusal = stow_file_prepare(self, size);
    if (refusal) os_close(fd);
    return refusal;
}

static uint32_t open_file(struct stow_file *self, const char *directory, uint64_t size) {
    int fd = open_in(self, directory);
    return stow_file_take(self, fd, self->direct, size);
}

void stow_file_close(struct stow_file *self) {
    if (stow_file_is_still(self)) os_close(self->fd);
}

/* --- finding the directory --- */

static char asked_for[PATH_SIZE], caches[PATH_SIZE], home[PATH_SIZE];

static void stow_file_remember(char to[PATH_SIZE], const char *variable) {
    const char *value = os_variable(variable);
    if (strlen(value) < PATH_SIZE) strcpy(to, value);
}

/* Reads the variables at the start of the program, because the program may overwrite its environment later. */
__attribute__((constructor)) static void remember_directories(void) {
    stow_file_remember(asked_for, "MEMSTOW_STOW_DIR");
    stow_file_remember(caches, "XDG_CACHE_HOME");
    stow_file_remember(home, "HOME");
}

/* Writes to `path` the name of our directory below a directory of the user's, and makes our directory if it does not
 * exist. False: `parent` is not an absolute path, or the name is too long. */
static bool stow_file_below(char path[PATH_SIZE], const char *parent, const char *middle) {
    if (parent[0] != '/' || strlen(parent) + strlen(middle) + sizeof "/memstow" > PATH_SIZE) return false;
    strcpy(path, parent);
    strcat(path, middle);
    if (middle[0]) os_call(SYS_mkdir, path, 0700);
    strcat(path, "/memstow");
    os_call(SYS_mkdir, path, 0700);
    return true;
}

uint32_t stow_file_open(struct stow_file *self, const char *directory, uint64_t size) {
    char path[PATH_SIZE];
    const char *asked = directory ? directory : asked_for;
    uint32_t refusal = STOW_NO_DIRECTORY;
    if (asked[0]) return strlen(asked) < PATH_SIZE ? open_file(self, asked, size) : STOW_NO_DIRECTORY;
    if (stow_file_below(path, caches, "") || stow_file_below(path, home, "/.cache"))
        refusal = open_file(self, path, size);
    if (refusal == STOW_NO_DIRECTORY || refusal == STOW_MEMORY_TARGET || refusal == STOW_UNSAFE_TARGET)
        refusal = open_file(self, "/var/tmp", size);
    return refusal;
}
