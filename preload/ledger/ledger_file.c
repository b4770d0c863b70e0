/* ledger_file.c — see ledger_file.h. */
#include "preload/ledger/ledger_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include "preload/shared/os.h"
#include "preload/shared/snapshot.h"

static struct {
    bool elsewhere; /* another copy of this library keeps a ledger of this process */
    dev_t device;
    ino_t inode;
    char path[4096];
} file;

bool ledger_file_name(const char *path) {
    if (strlen(path) >= sizeof file.path) return false;
    strcpy(file.path, path);
    return true;
}

const char *ledger_file_path(void) { return file.path; }

bool ledger_file_is_elsewhere(void) { return file.elsewhere; }

void ledger_file_remove(void) { os_call(SYS_unlink, file.path); }

void ledger_file_forget(void) { memset(&file, 0, sizeof file); }

/* Whether a write to preallocated space on this file system always succeeds. On other file systems the kernel may
 * refuse a later write through the mapping (SIGBUS). On an overlay the upper file system decides; the usual upper file
 * systems are in this list. */
static bool preallocation_holds(int fd) {
    struct statfs fs;
    if (os_call(SYS_fstatfs, fd, &fs) < 0) return false;
    switch ((unsigned long)fs.f_type) {
    case EXT4_SUPER_MAGIC: /* also ext2, ext3 */
    case TMPFS_MAGIC:
    case XFS_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
        return true;
    default:
        return false;
    }
}

bool ledger_file_size_allowed(uint64_t size) { return size <= os_file_limit(); }

bool ledger_file_settle(int fd) {
    struct stat made;
    if (!preallocation_holds(fd) || os_stat_fd(fd, &made) < 0) return false;
    file.device = made.st_dev;
    file.inode = made.st_ino;
    return true;
}

int ledger_file_reopen(void) {
    struct stat now;
    int fd = os_open(file.path, O_RDWR | O_NOFOLLOW, 0);
    if (fd >= 0 && (os_stat_fd(fd, &now) < 0 || now.st_dev != file.device || now.st_ino != file.inode)) {
        os_close(fd);
        fd = -ENOENT;
    }
    return fd;
}

/* The kind of file that is at the path already. */
enum found {
    FOUND_FOREIGN, /* no file of memstow's, or another user's */
    FOUND_OLD,     /* a snapshot, or a ledger that no process writes any more */
    FOUND_SAME,    /* a ledger of this process, from before an exec */
    FOUND_HERE,    /* a ledger of this process, by another copy of this library */
    FOUND_IN_USE   /* a ledger that another process writes */
};

/* Whether the file was written since the machine booted. The id and start time in an older file say nothing, because
 * after a reboot another process may have the same id and start time. */
static bool of_this_boot(const struct snap_header *old) {
    uint8_t boot_id[sizeof old->boot_id] = {0}; /* stays 0 without /proc, as the header's id does */
    os_boot_id(boot_id);
    return memcmp(old->boot_id, boot_id, sizeof boot_id) == 0;
}

static bool still_written(const struct snap_header *old) {
    return old->kind == SNAP_LEDGER && old->state == SNAP_RUNNING && old->start_ticks && of_this_boot(old) &&
           os_start_ticks(old->pid) == old->start_ticks;
}

/* Whether this process still has the ledger mapped. After an exec the ledger is no longer mapped. */
static bool is_mapped_here(const struct snap_header *old) {
    const struct snap_header *there = (const struct snap_header *)old->ledger_map.start;
    uint64_t began;
    return old->state == SNAP_RUNNING && old->ledger_map.length >= sizeof *old &&
           os_peek(&began, &there->start_wall_ns, sizeof began) && began == old->start_wall_ns;
}

static enum found look_at_file(int fd, uint32_t *exec_generation) {
    struct stat is;
    static struct snap_header old; /* not on the stack: see residency.h */
    if (os_stat_fd(fd, &is) < 0 || !S_ISREG(is.st_mode) || is.st_uid != (uid_t)os_call(SYS_geteuid))
        return FOUND_FOREIGN;
    if (os_pread(fd, &old, sizeof old, 0) != sizeof old || memcmp(old.magic, SNAP_MAGIC, sizeof old.magic) != 0)
        return FOUND_FOREIGN;
    *exec_generation = old.exec_generation;
    if (old.kind == SNAP_LEDGER && old.pid == os_pid() && old.start_ticks == os_start_ticks(0) && of_this_boot(&old))
        return is_mapped_here(&old) ? FOUND_HERE : FOUND_SAME;
    return still_written(&old) ? FOUND_IN_USE : FOUND_OLD;
}

/* Call it when another process has a ledger at the path. Appends a dot and this process's id to the path. False: the
 * new path would be too long. */
static bool step_aside(void) {
    size_t length = strlen(file.path);
    if (length + 24 > sizeof file.path) return false;
    file.path[length] = '.';
    os_decimal(file.path + length + 1, os_pid());
    return true;
}

/* Keeps the ledger from before an exec under the name PATH.x<generation>. */
static bool keep_earlier_image(uint32_t generation) {
    static char aside[sizeof file.path + 24];
    strcpy(aside, file.path);
    strcat(aside, ".x");
    os_decimal(aside + strlen(aside), generation);
    return os_call(SYS_renameat2, AT_FDCWD, file.path, AT_FDCWD, aside, 0) == 0;
}

/* Opens a file without a name in the directory of the path. Returns its descriptor or -errno. It fails, for example, if
 * the file system does not support O_TMPFILE. */
static int open_nameless(void) {
    static char directory[sizeof file.path];
    const char *slash = strrchr(file.path, '/');
    os_copy(directory, sizeof directory, slash == file.path ? "/" : slash ? file.path : ".");
    if (slash > file.path) directory[slash - file.path] = 0;
    return os_open(directory, O_RDWR | O_TMPFILE, 0600);
}

static long give_name(int fd) {
    char link[40] = "/proc/self/fd/";
    os_decimal(link + strlen(link), (uint32_t)fd);
    return os_call(SYS_linkat, AT_FDCWD, link, AT_FDCWD, file.path, AT_SYMLINK_FOLLOW);
}

static long write_header(int fd, const void *head) {
    if (!ledger_file_size_allowed(SNAP_HEADER_SIZE)) return -EFBIG;
    long n = os_call(SYS_pwrite64, fd, head, SNAP_HEADER_SIZE, 0);
    return n == SNAP_HEADER_SIZE ? 0 : n < 0 ? n : -ENOSPC;
}

/* Makes a new file with a header. The header is written before the file gets its name, so a process that is killed in
 * between leaves no broken file. Where files cannot be nameless, the header is written right after the file is made. */
static int open_new(const void *head) {
    int fd = open_nameless();
    long error = fd < 0 ? fd : write_header(fd, head);
    if (!error) error = give_name(fd);
    if (fd >= 0) os_close(fd);
    if (!error) /* opened by its name, so that /proc/PID/maps shows the name */
        return os_open(file.path, O_RDWR | O_NOFOLLOW, 0);
    if (error == -EEXIST) return -EEXIST;
    fd = os_open(file.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    error = fd < 0 ? 0 : write_header(fd, head);
    if (error) {
        os_call(SYS_unlink, file.path);
        os_close(fd);
        return (int)error;
    }
    return fd;
}

int ledger_file_create(const void *head, uint32_t *exec_generation) {
    bool aside = false;
    for (int attempt = 0; attempt < 4; attempt++) {
        int fd = open_new(head);
        if (fd != -EEXIST) return fd;
        fd = os_open(file.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
        if (fd < 0) return fd;
        uint32_t generation = 0;
        enum found found = look_at_file(fd, &generation);
        os_close(fd);
        if (found == FOUND_FOREIGN || (found == FOUND_IN_USE && (aside || !step_aside()))) return -EEXIST;
        file.elsewhere = found == FOUND_HERE;
        if (file.elsewhere) return -EEXIST;
        aside |= found == FOUND_IN_USE;
        if (found == FOUND_SAME) {
            if (*exec_generation <= generation) *exec_generation = generation + 1;
            keep_earlier_image(generation);
        } else if (found == FOUND_OLD) {
            os_call(SYS_unlink, file.path);
        }
    }
    return -EEXIST;
}

bool ledger_file_made_by_us(const char *path) {
    uint32_t generation;
    int fd = os_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0) return false;
    enum found found = look_at_file(fd, &generation);
    os_close(fd);
    return found == FOUND_SAME;
}
