/* outfile.c — see outfile.h. */
#include "tools/subject/outfile.h"
#include "tools/proc/process.h"
#include "tools/reader/reader.h"
#include "tools/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int outfile_refuse(char *error, size_t size, const char *path, const char *why) {
    snprintf(error, size, "%s: %s", TEXT_SAFE(path), why);
    return -1;
}

static int check_directory(const char *path, char *error, size_t size) {
    char directory[4096];
    struct stat st;
    text_folder(path, directory, sizeof directory);
    if (stat(directory, &st) < 0)
        return outfile_refuse(error, size, directory, errno == ENOENT ? "no such directory" : strerror(errno));
    if (!S_ISDIR(st.st_mode)) return outfile_refuse(error, size, directory, "not a directory");
    if (access(directory, W_OK | X_OK) < 0)
        return outfile_refuse(error, size, directory,
                              errno == EROFS ? "read-only file system" : "directory is not writable");
    return 0;
}

static int check_content(const char *path, char *error, size_t size) {
    struct source source;
    struct snap_header header;
    char why[160];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return outfile_refuse(error, size, path, strerror(errno));
    int result = source_file(&source, fd);
    if (result < 0) return outfile_refuse(error, size, path, strerror(-result));
    /* A damaged or newer memstow file is still a memstow file: the magic decides. */
    int readable = reader_header(&header, &source, why, sizeof why) == 0;
    source_close(&source);
    if (memcmp(header.magic, SNAP_MAGIC, sizeof header.magic) != 0)
        return outfile_refuse(error, size, path, "exists and is not a memstow file: not replaced");
    if (readable && header.kind == SNAP_LEDGER && header.state == SNAP_RUNNING && process_wrote(&header)) {
        snprintf(why, sizeof why, "is the ledger of process %u, which still runs: not replaced", header.pid);
        return outfile_refuse(error, size, path, why);
    }
    return 0;
}

int outfile_check(const char *path, char *error, size_t error_size) {
    struct stat st;
    const char *slash = strrchr(path, '/');
    if (!*path || (slash && !slash[1]))
        return outfile_refuse(error, error_size, *path ? path : "''", "not a file name");
    if (strcmp(path, "-") == 0) return outfile_refuse(error, error_size, path, "it cannot go to standard output");
    if (check_directory(path, error, error_size) < 0) return -1;
    if (lstat(path, &st) < 0) return errno == ENOENT ? 0 : outfile_refuse(error, error_size, path, strerror(errno));
    if (S_ISLNK(st.st_mode)) return outfile_refuse(error, error_size, path, "is a symbolic link: not replaced");
    if (!S_ISREG(st.st_mode)) return outfile_refuse(error, error_size, path, "is not a regular file: not replaced");
    if (st.st_uid != geteuid()) return outfile_refuse(error, error_size, path, "belongs to another user: not replaced");
    return check_content(path, error, error_size);
}

int outfile_begin(struct new_file *file, const char *path, char *error, size_t error_size) {
    if (outfile_check(path, error, error_size) < 0) return -1;
    int code = new_file_begin(file, path, false);
    return code ? outfile_refuse(error, error_size, path, new_file_why(code)) : 0;
}

int outfile_end(struct new_file *file, bool keep, char *error, size_t error_size) {
    int code = new_file_end(file, keep);
    return code ? outfile_refuse(error, error_size, file->path, new_file_why(code)) : 0;
}
