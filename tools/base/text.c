/* text.c — see text.h. Strings are read as UTF-8. Invalid bytes and all control characters become '?'. */
#include "tools/base/text.h"

#include "preload/shared/utf8.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define ELLIPSIS "…"
enum { WRAP_COLUMNS = 78, WIDTH_LEAST = 80, WIDTH_MOST = 240 };

struct text text_size(uint64_t bytes) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    struct text text;
    if (bytes < 1024) {
        snprintf(text.s, sizeof text.s, "%" PRIu64 " B", bytes);
        return text;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    /* 1023.95 would print as 1024.0 */
    for (; value >= 1023.95 && unit + 1 < sizeof units / sizeof *units; unit++) value /= 1024;
    snprintf(text.s, sizeof text.s, "%.1f %s", value, units[unit]);
    return text;
}

struct text text_estimate(uint64_t bytes) {
    return bytes < 1 << 20 ? (struct text){"< 1 MiB"} : text_size(bytes);
}

struct text text_peak(uint64_t peak, uint64_t allocated) {
    return peak || !allocated ? text_size(peak) : text_estimate(0);
}

static uint64_t text_magnitude(int64_t value) { return value < 0 ? -(uint64_t)value : (uint64_t)value; }

static struct text with_sign(int64_t value, struct text absolute) {
    struct text text;
    snprintf(text.s, sizeof text.s, "%s%.30s", value > 0 ? "+" : value < 0 ? "-" : "", absolute.s);
    return text;
}

struct text text_size_change(int64_t bytes) {
    return with_sign(bytes, text_size(text_magnitude(bytes)));
}

struct text text_count_change(int64_t count) {
    return with_sign(count, text_count(text_magnitude(count)));
}

struct text text_count(uint64_t count) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
    struct text text;
    size_t used = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) text.s[used++] = ',';
        text.s[used++] = digits[i];
    }
    text.s[used] = 0;
    return text;
}

static struct text text_counted(uint64_t count, const char *noun) {
    struct text text, number = text_count(count);
    snprintf(text.s, sizeof text.s, "%.24s %s%s", number.s, noun, count == 1 ? "" : "s");
    return text;
}

struct text text_block_count(uint64_t count) {
    return text_counted(count, "block");
}

struct text text_byte_count(uint64_t count) {
    return text_counted(count, "byte");
}

struct text text_block_change(int64_t count) {
    return with_sign(count, text_block_count(text_magnitude(count)));
}

struct text text_duration(uint64_t ns) {
    struct text text;
    uint64_t seconds = ns / 1000000000;
    if (ns < 1000000000)
        snprintf(text.s, sizeof text.s, "%.3f s", (double)ns / 1e9);
    else if (seconds < 100)
        snprintf(text.s, sizeof text.s, "%.1f s", (double)ns / 1e9);
    else if (seconds < 6000)
        snprintf(text.s, sizeof text.s, "%u min %u s", (unsigned)(seconds / 60), (unsigned)(seconds % 60));
    else
        snprintf(text.s, sizeof text.s, "%" PRIu64 " h %u min", seconds / 3600, (unsigned)(seconds / 60 % 60));
    return text;
}

struct text text_when(uint64_t wall_ns) {
    time_t seconds = (time_t)(wall_ns / 1000000000);
    struct text text;
    struct tm tm;
    if (!localtime_r(&seconds, &tm) || !strftime(text.s, sizeof text.s, "%Y-%m-%d %H:%M:%S", &tm))
        snprintf(text.s, sizeof text.s, "at an unknown time");
    return text;
}

/* Length of the well-formed, printable UTF-8 character at s, or 0. */
static size_t character_length(const char *s) { return utf8_printable(s, strnlen(s, UTF8_MOST)); }

static const char *next_character(const char *s) {
    size_t length = character_length(s);
    return s + (length ? length : 1);
}

int text_columns(const char *s) {
    int count = 0;
    for (; *s; s = next_character(s)) count++;
    return count;
}

static const char *skip_columns(const char *s, int count) {
    for (; *s && count > 0; count--) s = next_character(s);
    return s;
}

/* Appends up to `count` characters of s, made safe. */
static void line_append(struct text_line *line, size_t *used, const char *s, int count) {
    for (; *s && count > 0; count--, s = next_character(s)) {
        size_t length = character_length(s);
        if (*used + (length ? length : 1) + 1 > sizeof line->s) break;
        if (length)
            memcpy(line->s + *used, s, length);
        else
            line->s[*used] = '?';
        *used += length ? length : 1;
    }
    line->s[*used] = 0;
}

const char *text_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

void text_folder(const char *path, char *to, size_t size) {
    const char *slash = strrchr(path, '/');
    if (slash)
        snprintf(to, size, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    else
        snprintf(to, size, ".");
}

/* The last names of a path, as many as fit into `width` columns, with the slash in front of them. NULL: not even the
 * last name fits. */
static const char *last_names(const char *path, int width) {
    for (const char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/'))
        if (text_columns(at) <= width) return at;
    return NULL;
}

static struct text_line text_cut(const char *string, int width, bool path) {
    struct text_line line = {""};
    size_t used = 0;
    int have = text_columns(string), columns = width - 1;
    if (have <= width || width < 3) {
        line_append(&line, &used, string, width);
        return line;
    }
    const char *names = path ? last_names(string, columns) : NULL;
    int head = names ? 0 : columns / 3, tail = columns - head; /* the end of a name is more useful than its beginning */
    line_append(&line, &used, string, head);
    line_append(&line, &used, ELLIPSIS, 1);
    line_append(&line, &used, names ? names : skip_columns(string, have - tail), tail);
    return line;
}

struct text_line text_fit(const char *string, int width) {
    return text_cut(string, width, string[0] == '/' && !strchr(string, ' '));
}

struct text_line text_fit_path(const char *path, int width) {
    return text_cut(path, width, *path);
}

int text_width(void) {
    static int width;
    struct winsize size;
    if (width) return width;
    width = WIDTH_LEAST;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > width)
        width = size.ws_col < WIDTH_MOST ? size.ws_col : WIDTH_MOST;
    return width;
}

bool text_is_utf8(void) {
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *locale = getenv(variables[i]);
        if (locale && *locale) return strcasestr(locale, "utf-8") || strcasestr(locale, "utf8");
    }
    return false;
}

struct text_line text_left(const char *string, int width) {
    struct text_line line = text_cut(string, width, string[0] == '/'); /* a path may have blanks */
    size_t used = strlen(line.s);
    for (int have = text_columns(line.s); have < width && used + 1 < sizeof line.s; have++) line.s[used++] = ' ';
    line.s[used] = 0;
    return line;
}

static bool has_styles(void) {
    static int styles = -1;
    if (styles >= 0) return styles;
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    styles = isatty(STDOUT_FILENO) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
    return styles;
}

const char *text_style(enum text_style style) {
    static const char *const codes[] = {
        [TEXT_PLAIN] = "\033[0m", [TEXT_BOLD] = "\033[1m", [TEXT_RED] = "\033[31m", [TEXT_GREEN] = "\033[32m"};
    return has_styles() ? codes[style] : "";
}

void text_heading(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("\n%s", text_style(TEXT_BOLD));
    vprintf(format, arguments);
    puts(text_style(TEXT_PLAIN));
    va_end(arguments);
}

void text_wrap(FILE *to, const char *string, int column, int indent) {
    bool begun = false;
    for (size_t length; *(string += strspn(string, " ")); string += length) {
        char word[1024];
        length = strcspn(string, " ");
        snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : (int)sizeof word - 1, string);
        struct text_line safe = text_fit(word, WRAP_COLUMNS - indent);
        int width = text_columns(safe.s);
        if (begun && column + 1 + width > WRAP_COLUMNS) {
            fprintf(to, "\n%*s", indent, "");
            column = indent;
            begun = false;
        }
        fprintf(to, begun ? " %s" : "%s", safe.s);
        column += begun + width;
        begun = true;
    }
    fputc('\n', to);
}

void text_base64(char *to, const void *bytes, size_t length) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *from = bytes;
    for (size_t i = 0; i < length; i += 3, to += 4) {
        uint32_t three = (uint32_t)from[i] << 16;
        if (i + 1 < length) three |= (uint32_t)from[i + 1] << 8;
        if (i + 2 < length) three |= from[i + 2];
        to[0] = letters[three >> 18];
        to[1] = letters[three >> 12 & 63];
        to[2] = i + 1 < length ? letters[three >> 6 & 63] : '=';
        to[3] = i + 2 < length ? letters[three & 63] : '=';
    }
}
