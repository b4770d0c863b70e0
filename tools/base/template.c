/* template.c — see template.h. */
#include "tools/base/template.h"
#include "tools/base/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEMPLATE_DEFAULT "memstow.%n.%p.mst"

static bool path_append(char *to, size_t size, size_t *used, const char *text, size_t length) {
    if (*used + length + 1 > size) return false;
    memcpy(to + *used, text, length);
    *used += length;
    to[*used] = 0;
    return true;
}

/* Appends text that the user did not write, so a '%' in it is literal. */
static bool append_literal(char *to, size_t size, size_t *used, const char *text) {
    for (; *text; text++)
        if (!path_append(to, size, used, *text == '%' ? "%%" : text, *text == '%' ? 2 : 1)) return false;
    return true;
}

static bool valid_conversions(const char *text) {
    for (const char *c = strchr(text, '%'); c; c = strchr(c + 2, '%'))
        if (!c[1] || !strchr("npx%", c[1])) return false;
    return true;
}

int template_make(struct template *template, const char *file, char *error, size_t error_size) {
    char cwd[PATH_MAX];
    size_t used = 0, size = sizeof template->text;
    const char *text = file ? file : TEMPLATE_DEFAULT;
    template->text[0] = 0;
    template->named = file && !strchr(file, '%');
    if (!*text || text[strlen(text) - 1] == '/') {
        snprintf(error, error_size, "-o %s: not a file name", *text ? TEXT_SAFE(text) : "''");
        return -1;
    }
    if (strcmp(text, "-") == 0) {
        snprintf(error, error_size, "-o -: a ledger must be a file, so it cannot go to standard output");
        return -1;
    }
    if (!valid_conversions(text)) {
        snprintf(error, error_size, "-o %s: only %%n, %%p, %%x and %%%% are known", TEXT_SAFE(text));
        return -1;
    }
    if (*text != '/' && !getcwd(cwd, sizeof cwd)) {
        snprintf(error, error_size, "the current directory is gone: %s", strerror(errno));
        return -1;
    }
    if ((*text != '/' &&
         (!append_literal(template->text, size, &used, cwd) || !path_append(template->text, size, &used, "/", 1))) ||
        !path_append(template->text, size, &used, text, strlen(text))) {
        snprintf(error, error_size, "-o %s: the name is too long", TEXT_SAFE(text));
        return -1;
    }
    return 0;
}

static bool template_expand_to(const char *from, const char *end, const char *name, long pid, char *path, size_t size) {
    size_t used = 0;
    char digits[24];
    path[0] = 0;
    for (; from < end; from++) {
        const char *piece = from;
        size_t length = 1;
        if (*from == '%' && from + 1 < end) {
            from++;
            if (*from == 'p' && !pid) return false;
            snprintf(digits, sizeof digits, "%ld", *from == 'p' ? pid : 0);
            piece = *from == 'n' ? name : *from == '%' ? "%" : digits;
            length = strlen(piece);
        }
        if (!path_append(path, size, &used, piece, length)) return false;
    }
    return true;
}

bool template_expand(const struct template *template, const char *name, long pid, char *path, size_t size) {
    return template_expand_to(template->text, template->text + strlen(template->text), name, pid, path, size);
}

bool template_directory(const struct template *template, const char *name, long pid, char *path, size_t size) {
    const char *slash = strrchr(template->text, '/');
    return template_expand_to(template->text, slash == template->text ? slash + 1 : slash, name, pid, path, size);
}
