/* html_page.c — see html_page.h. html_parts.S has the parts around the data. */
#include "tools/html/html_page.h"
#include "tools/base/complain.h"
#include "tools/base/new_file.h"
#include "tools/base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

extern const char html_head[], html_head_end[], html_tail[], html_tail_end[];

int html_page_check(const char *command, const char *path) {
    if (path && !*path) return complain_usage(command, "-o '': not a file name");
    if (!path && isatty(STDOUT_FILENO))
        return complain_usage(command, "--html writes a page: send it to a file with -o FILE");
    return EXIT_FINE;
}

size_t html_page_parts(void) { return (size_t)((html_head_end - html_head) + (html_tail_end - html_tail)); }

int html_page_pack(char **text, size_t *size, html_data *data, void *context) {
    *text = NULL;
    struct html_out *out = malloc(sizeof *out);
    FILE *to = open_memstream(text, size);
    int result = out && to ? html_out_begin(out, to) : -1;
    if (result == 0) {
        result = data(out, context);
        if (html_out_end(out) < 0) result = -1;
    }
    if (to && fclose(to) != 0) result = -1;
    free(out);
    return result;
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

/* ---- the page's file */

static int html_page_refuse(const char *path, const char *why) {
    complain("%s: %s", TEXT_SAFE(path), why);
    return EXIT_UNREADABLE;
}

/* Opens the target. A target that is not a regular file, such as a pipe, is written to directly. Returns 0, or
 * errno. */
static int open_file(struct new_file *file, const char *path) {
    struct stat st;
    if (stat(path, &st) < 0 || S_ISREG(st.st_mode)) return new_file_begin(file, path, true);
    *file = (struct new_file){.stream = fopen(path, "we"), .path = path};
    return file->stream ? 0 : errno;
}

int html_page_write(const char *path, html_data *data, void *context) {
    struct new_file file;
    if (!path) return write_to(stdout, data, context);
    if (new_file_is_memstow(path)) return html_page_refuse(path, "is a memstow file: not replaced by a page");
    int error = open_file(&file, path), code = EXIT_FINE;
    if (!error) {
        code = write_to(file.stream, data, context);
        error = new_file_end(&file, code == EXIT_FINE);
    }
    return error ? html_page_refuse(path, new_file_why(error)) : code;
}
