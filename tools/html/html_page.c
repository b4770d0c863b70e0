/* html_page.c — see html_page.h. html_parts.S has the parts around the data. */
#include "tools/html/html_page.h"
#include "tools/base/complain.h"
#include "tools/base/text.h"

#include "preload/shared/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern const char html_head[], html_head_end[], html_tail[], html_tail_end[];

int html_page_check(const char *command, const char *path) {
    if (path && !*path) return usage_error(command, "-o '': not a file name");
    if (!path && isatty(STDOUT_FILENO))
        return usage_error(command, "--html writes a page: send it to a file with -o FILE");
    return EXIT_FINE;
}

static int write_to(FILE *to, html_data *data, void *context) {
    struct html_out *out = malloc(sizeof *out);
    int result = out ? html_out_begin(out, to) : -1;
    if (result == 0) {
        html_out_text(out, html_head, (size_t)(html_head_end - html_head));
        result = data(out, context);
        html_out_text(out, html_tail, (size_t)(html_tail_end - html_tail));
        if (html_out_end(out) < 0) result = -1;
    }
    free(out);
    if (result < 0) complain("not enough memory");
    return result < 0 ? EXIT_UNREADABLE : EXIT_FINE;
}

/* ---- the file */

struct page_file {
    const char *path;
    char temporary[4200]; /* "": the target is written to directly */
    FILE *stream;
};

static int refuse(const char *path, const char *why) {
    complain("%s: %s", TEXT_SAFE(path), why);
    return EXIT_UNREADABLE;
}

static bool is_ledger(const char *path) {
    char magic[sizeof SNAP_MAGIC - 1] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is = fd >= 0 && read(fd, magic, sizeof magic) == sizeof magic && !memcmp(magic, SNAP_MAGIC, sizeof magic);
    if (fd >= 0) close(fd);
    return is;
}

/* Gives the file the permissions of a file that the shell makes. */
static void let_others_read(int fd) {
    mode_t mask = umask(0);
    umask(mask);
    fchmod(fd, 0666 & ~mask);
}

static int open_temporary(struct page_file *file) {
    int used = snprintf(file->temporary, sizeof file->temporary, "%s.XXXXXX", file->path);
    if (used < 0 || (size_t)used >= sizeof file->temporary) return refuse(file->path, "name is too long");
    int fd = mkostemp(file->temporary, O_CLOEXEC);
    if (fd < 0) return refuse(file->path, strerror(errno));
    let_others_read(fd);
    file->stream = fdopen(fd, "w");
    return file->stream ? EXIT_FINE : refuse(file->path, strerror(errno));
}

/* Opens the target. If it is not a file, such as a pipe, it is written to directly. */
static int open_file(struct page_file *file) {
    struct stat st;
    bool there = stat(file->path, &st) == 0;
    if (there && S_ISREG(st.st_mode) && is_ledger(file->path))
        return refuse(file->path, "is a memstow file: not replaced by a page");
    if (!there || S_ISREG(st.st_mode)) return open_temporary(file);
    file->stream = fopen(file->path, "we");
    return file->stream ? EXIT_FINE : refuse(file->path, strerror(errno));
}

/* The reason of an earlier failure: a flush fails again and sets errno. */
static int why_failed(FILE *stream) {
    errno = 0;
    clearerr(stream);
    fputc('\n', stream);
    fflush(stream);
    return errno ? errno : EIO;
}

static int close_file(struct page_file *file, int code) {
    int error = fflush(file->stream) != 0 || ferror(file->stream) ? why_failed(file->stream) : 0;
    errno = 0;
    if (fclose(file->stream) != 0 && !error) error = errno ? errno : EIO;
    if (code == EXIT_FINE && !error && *file->temporary && rename(file->temporary, file->path) < 0) error = errno;
    if (*file->temporary && (error || code != EXIT_FINE)) unlink(file->temporary);
    return error ? refuse(file->path, strerror(error)) : code;
}

int html_page_write(const char *path, html_data *data, void *context) {
    struct page_file file = {.path = path};
    if (!path) return write_to(stdout, data, context);
    int code = open_file(&file);
    if (code != EXIT_FINE) return code;
    return close_file(&file, write_to(file.stream, data, context));
}
