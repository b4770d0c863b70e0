/* jsontext.c — see jsontext.h. */
#include "preload/shared/jsontext.h"

#include <string.h>

#include "preload/shared/digit.h"
#include "preload/shared/utf8.h"

struct cursor {
    const char *at, *end;
};

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static void skip_blanks(struct cursor *in) {
    while (in->at < in->end && is_blank(*in->at)) in->at++;
}

static bool take_char(struct cursor *in, char c) {
    if (in->at == in->end || *in->at != c) return false;
    in->at++;
    return true;
}

static bool take_word(struct cursor *in, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(in->end - in->at) < length || memcmp(in->at, word, length) != 0) return false;
    in->at += length;
    return true;
}

/* --- checking strings --- */

/* The number in the four digits of \uXXXX; -1: there are no four hexadecimal digits. */
static int32_t hex_word(const char *at, const char *end) {
    int32_t word = 0;
    if (end - at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        int digit = digit_value(at[i]);
        if (digit < 0) return -1;
        word = word << 4 | digit;
    }
    return word;
}

/* Takes an escape, after its backslash. False: it is no valid escape. */
static bool take_escape(struct cursor *in) {
    if (in->at == in->end) return false;
    char c = *in->at++;
    if (c != 'u') return c && strchr("\"\\/bfnrt", c) != NULL;
    if (hex_word(in->at, in->end) < 0) return false;
    in->at += 4;
    return true;
}

static bool take_string(struct cursor *in) {
    if (!take_char(in, '"')) return false;
    while (in->at < in->end) {
        if (take_char(in, '"')) return true;
        if ((unsigned char)*in->at < 0x20) return false;
        if (take_char(in, '\\')) {
            if (!take_escape(in)) return false;
            continue;
        }
        size_t size = utf8_size(in->at, (size_t)(in->end - in->at));
        if (!size) return false;
        in->at += size;
    }
    return false;
}

/* --- checking values --- */

static bool take_digits(struct cursor *in) {
    const char *first = in->at;
    while (in->at < in->end && digit_is_decimal(*in->at)) in->at++;
    return in->at > first;
}

static bool take_number(struct cursor *in) {
    take_char(in, '-');
    if (!take_char(in, '0') && !take_digits(in)) return false;
    if (take_char(in, '.') && !take_digits(in)) return false;
    if (!take_char(in, 'e') && !take_char(in, 'E')) return true;
    if (!take_char(in, '+')) take_char(in, '-');
    return take_digits(in);
}

static bool take_value(struct cursor *in, int depth);

/* Takes the rest of an object or array, after its opening bracket: members if `end` is a brace, else elements. False:
 * the text is wrong at in->at. */
static bool take_list(struct cursor *in, char end, int depth) {
    skip_blanks(in);
    if (take_char(in, end)) return true;
    do {
        skip_blanks(in);
        if (end == '}') {
            if (!take_string(in)) return false;
            skip_blanks(in);
            if (!take_char(in, ':')) return false;
            skip_blanks(in);
        }
        if (!take_value(in, depth)) return false;
        skip_blanks(in);
    } while (take_char(in, ','));
    return take_char(in, end);
}

static bool take_value(struct cursor *in, int depth) {
    if (in->at == in->end) return false;
    switch (*in->at) {
    case '{':
    case '[':
        if (depth == JSONTEXT_DEPTH) return false;
        return take_list(in, *in->at++ == '{' ? '}' : ']', depth + 1);
    case '"':
        return take_string(in);
    case 't':
        return take_word(in, "true");
    case 'f':
        return take_word(in, "false");
    case 'n':
        return take_word(in, "null");
    default:
        return take_number(in);
    }
}

size_t jsontext_fault(const char *text, size_t length) {
    struct cursor in = {text, text + length};
    skip_blanks(&in);
    if (in.at < in.end && *in.at == '{' && take_value(&in, 0)) {
        skip_blanks(&in);
        if (in.at == in.end) return JSONTEXT_FINE;
    }
    return (size_t)(in.at - text);
}

bool jsontext_is_object(const char *text, size_t length) { return jsontext_fault(text, length) == JSONTEXT_FINE; }

/* --- reading text that was checked before --- */

bool jsontext_next(struct jsontext in, size_t *next, struct jsontext *key, struct jsontext *value) {
    struct cursor at = {in.at + *next, in.at + in.length};
    struct jsontext found_key = {NULL, 0};
    if (!*next && in.length) at.at++; /* the opening bracket */
    skip_blanks(&at);
    if (*next && !take_char(&at, ',')) return false;
    skip_blanks(&at);
    if (in.length && *in.at == '{') {
        found_key.at = at.at;
        if (!take_string(&at)) return false;
        found_key.length = (size_t)(at.at - found_key.at);
        skip_blanks(&at);
        if (!take_char(&at, ':')) return false;
        skip_blanks(&at);
    }
    value->at = at.at;
    if (!take_value(&at, 0)) return false;
    value->length = (size_t)(at.at - value->at);
    if (key) *key = found_key;
    *next = (size_t)(at.at - in.at);
    return true;
}

bool jsontext_member(struct jsontext object, const char *name, struct jsontext *value) {
    struct jsontext key, candidate;
    char text[64];
    bool found = false;
    if (!object.length || *object.at != '{') return false;
    for (size_t next = 0; jsontext_next(object, &next, &key, &candidate);)
        if (jsontext_string(key, text, sizeof text) && strcmp(text, name) == 0) {
            *value = candidate;
            found = true;
        }
    return found;
}

bool jsontext_number(struct jsontext value, uint64_t *number) {
    uint64_t n = 0;
    for (size_t i = 0; i < value.length; i++) {
        if (!digit_is_decimal(value.at[i])) return false;
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t)(value.at[i] - '0'), &n))
            return false;
    }
    *number = n;
    return value.length > 0;
}

static bool is_high(int32_t word) { return word >= 0xd800 && word < 0xdc00; }

static bool is_low(int32_t word) { return word >= 0xdc00 && word < 0xe000; }

/* Reads one character: the four digits after \u, and, if they are the first half of a surrogate pair, the next escape,
 * too. Half of a pair without its other half becomes U+FFFD. NUL becomes
 * U+FFFD, too, because NUL would end the text. */
static uint32_t read_escaped(struct cursor *in) {
    int32_t word = hex_word(in->at, in->end);
    in->at += 4;
    if (is_high(word) && in->end - in->at >= 6 && in->at[0] == '\\' && in->at[1] == 'u') {
        int32_t low = hex_word(in->at + 2, in->end);
        if (is_low(low)) {
            in->at += 6;
            return 0x10000 + ((uint32_t)(word - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
        }
    }
    return word <= 0 || is_high(word) || is_low(word) ? 0xfffd : (uint32_t)word;
}

static size_t read_escape(struct cursor *in, char to[4]) {
    static const char letters[] = "bfnrt", meant[] = "\b\f\n\r\t";
    char c = *in->at++;
    if (c == 'u') return utf8_put(to, read_escaped(in));
    const char *letter = strchr(letters, c);
    to[0] = letter ? meant[letter - letters] : c;
    return 1;
}

bool jsontext_string(struct jsontext value, char *to, size_t capacity) {
    size_t used = 0;
    if (value.length < 2 || *value.at != '"') return false;
    struct cursor in = {value.at + 1, value.at + value.length - 1};
    while (in.at < in.end) {
        char character[4];
        size_t size;
        if (take_char(&in, '\\')) {
            size = read_escape(&in, character);
        } else {
            size = utf8_size(in.at, (size_t)(in.end - in.at));
            memcpy(character, in.at, size);
            in.at += size;
        }
        if (used + size >= capacity) break;
        memcpy(to + used, character, size);
        used += size;
    }
    to[used] = 0;
    return true;
}
