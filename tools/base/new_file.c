/* new_file.c — see new_file.h. */
#include "tools/base/new_file.h"

#include "preload/shared/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void let_others_read(int fd) {
    mode_t mask = umask(0);
    umask(mask);
    fchmod(fd, 0666 & ~mask);
}

int new_file_begin(struct new_file *file, const char *path, bool for_all) {
    file->path = path;
    int used = snprintf(file->temporary, sizeof file->temporary, "%s.XXXXXX", path);
    if (used < 0 || (size_t)used >= sizeof file->temporary) return ENAMETOOLONG;
    int fd = mkostemp(file->temporary, O_CLOEXEC);
    if (fd < 0) return errno;
    if (for_all) let_others_read(fd);
    file->stream = fdopen(fd, "w");
    if (file->stream) return 0;
    int error = errno;
    close(fd);
    unlink(file->temporary);
    return error;
}

/* Returns the errno with which the stream failed earlier. Other calls may have changed errno since. Therefore the
 * stream is written and flushed once more, which fails for the same reason and sets errno again. */
static int why_failed(FILE *stream) {
    errno = 0;
    clearerr(stream);
    fputc('\n', stream);
    fflush(stream);
    return errno ? errno : EIO;
}

int new_file_end(struct new_file *file, bool keep) {
    int error = fflush(file->stream) != 0 || ferror(file->stream) ? why_failed(file->stream) : 0;
    errno = 0;
    if (fclose(file->stream) != 0 && !error) error = errno ? errno : EIO;
    if (!*file->temporary) return error;
    if (keep && !error && rename(file->temporary, file->path) < 0) error = errno;
    if (!keep || error) unlink(file->temporary);
    return error;
}

bool new_file_is_memstow(const char *path) {
    char magic[sizeof SNAP_MAGIC - 1] = "";
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode)) return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is = fd >= 0 && read(fd, magic, sizeof magic) == sizeof magic && !memcmp(magic, SNAP_MAGIC, sizeof magic);
    if (fd >= 0) close(fd);
    return is;
}

const char *new_file_why(int error) { return error == ENAMETOOLONG ? "the name is too long" : strerror(error); }
