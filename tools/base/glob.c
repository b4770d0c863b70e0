/* glob.c — see glob.h. */
#include "tools/base/glob.h"
#include "preload/shared/utf8.h"

#include <string.h>

/* The length of the UTF-8 character at the beginning; 1 for a byte that begins none. */
static size_t glob_character(const char *text) {
    size_t size = utf8_size(text, strnlen(text, UTF8_MOST));
    return size ? size : 1;
}

static bool glob_same(const char **pattern, const char **text) {
    if (**pattern == '?') {
        (*pattern)++;
        *text += glob_character(*text);
        return true;
    }
    const char *p = *pattern;
    if (*p == '\\' && p[1]) p++;
    if (!*p || *p != **text) return false;
    *pattern = p + 1;
    (*text)++;
    return true;
}

/* When the text does not match, only the last star so far takes more text. Earlier stars need not take more, because
 * the last star can match that text as well. */
bool glob_matches(const char *pattern, const char *text) {
    const char *star = NULL, *taken = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = ++pattern;
            taken = text;
        } else if (!glob_same(&pattern, &text)) {
            if (!star) return false;
            pattern = star;
            text = taken += glob_character(taken);
        }
    }
    while (*pattern == '*') pattern++;
    return !*pattern;
}
