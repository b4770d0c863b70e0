// Strict JSON: which texts are objects, and what their members are.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/shared/jsontext.h"

/* Whether the text is an object. It is read from memory that ends with the text, so a sanitizer notices each byte that
 * is read beyond the end. */
static bool is_object(const char *text, size_t length) {
    char *copy = malloc(length ? length : 1);
    memcpy(copy, text, length);
    bool result = jsontext_is_object(copy, length);
    free(copy);
    return result;
}

static const char *const good[] = {
    "{}",
    " \t\r\n{ } \n",
    "{\"\":0}",
    "{\"a\":-0,\"b\":0.5e-10,\"c\":1E+2,\"d\":[],\"e\":{},\"f\":[ 1 , 2 ],\"g\":true,\"h\":false,\"i\":null}",
    "{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00\\uD800\"}",
    "{\"\xc3\xa9\":\"\xf0\x9f\x98\x80\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\x7f\"}",
    "{\"a\":1,\"a\":2}",
    "{\"a\":123456789012345678901234567890.5}",
};

static const char *const bad[] = {
    "",
    " ",
    "{",
    "}",
    "[]",
    "\"a\"",
    "1",
    "null",
    "{}x",
    "{}{}",
    "{,}",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\":1,}",
    "{\"a\":1 \"b\":2}",
    "{a:1}",
    "{'a':1}",
    "{\"a\":01}",
    "{\"a\":+1}",
    "{\"a\":.5}",
    "{\"a\":1.}",
    "{\"a\":1e}",
    "{\"a\":1e+}",
    "{\"a\":-}",
    "{\"a\":0x1}",
    "{\"a\":NaN}",
    "{\"a\":Infinity}",
    "{\"a\":tru}",
    "{\"a\":nulll}",
    "{\"a\":[1,]}",
    "{\"a\":[,1]}",
    "{\"a\":[1}",
    "{\"a\":[1]",
    "{\"a\":\"}",
    "{\"a\":\"\\\"}",
    "{\"a\":\"\\x41\"}",
    "{\"a\":\"\\u12\"}",
    "{\"a\":\"\\u12g4\"}",
    "{\"a\":\"\t\"}",
    "{\"a\":\"\n\"}",
    "{\"a\":\"\x1f\"}",
    "{\"a\":\"\x80\"}",
    "{\"a\":\"\xc3\"}",
    "{\"a\":\"\xc0\x80\"}",
    "{\"a\":\"\xe0\x9f\x80\"}",
    "{\"a\":\"\xed\xa0\x80\"}",
    "{\"a\":\"\xf0\x8f\x80\x80\"}",
    "{\"a\":\"\xf4\x90\x80\x80\"}",
    "{\"a\":\"\xf5\x80\x80\x80\"}",
    "{\"a\":1}//",
    "\xef\xbb\xbf{}",
};

Test(jsontext, what_is_an_object) {
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        cr_expect(is_object(good[i], strlen(good[i])), "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect_not(is_object(bad[i], strlen(bad[i])), "%s", bad[i]);
    cr_expect_not(is_object("{\"a\":\"\0\"}", 9));
    cr_expect_not(is_object("{}\0", 3));
}

/* A text that is cut anywhere is no object. */
Test(jsontext, cut_short) {
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        size_t length = strlen(good[i]);
        while (length && good[i][length - 1] != '}') length--;
        for (size_t cut = 0; cut < length; cut++) cr_expect_not(is_object(good[i], cut), "%.*s", (int)cut, good[i]);
    }
}

Test(jsontext, depth_has_an_end) {
    char text[4 * JSONTEXT_DEPTH + 16];
    for (int depth = 1; depth < 2 * JSONTEXT_DEPTH; depth++) {
        char *at = text + sprintf(text, "{\"a\":");
        memset(at, '[', (size_t)depth);
        memset(at + depth, ']', (size_t)depth);
        strcpy(at + 2 * depth, "}");
        cr_expect_eq(is_object(text, strlen(text)), depth < JSONTEXT_DEPTH, "%d", depth);
    }
}

static struct jsontext in(const char *text) { return (struct jsontext){text, strlen(text)}; }

Test(jsontext, members_and_elements) {
    struct jsontext object = in(" { \"a\" : 1 , \"b\":[ 2, {\"c\":3} ,\"x\" ],\"a\":4}" + 1), value, key;
    uint64_t number;
    size_t next = 0;
    int count = 0;
    while (jsontext_next(object, &next, &key, &value)) count++;
    cr_expect_eq(count, 3);
    cr_assert(jsontext_member(object, "a", &value) && jsontext_number(value, &number));
    cr_expect_eq(number, 4, "the last of two");
    cr_expect_not(jsontext_member(object, "c", &value));
    cr_assert(jsontext_member(object, "b", &value));
    struct jsontext list = value;
    next = 0;
    cr_assert(jsontext_next(list, &next, NULL, &value) && jsontext_number(value, &number) && number == 2);
    cr_assert(jsontext_next(list, &next, NULL, &value));
    cr_assert(jsontext_member(value, "c", &value) && jsontext_number(value, &number) && number == 3);
    cr_assert(jsontext_next(list, &next, NULL, &value) && value.length == 3);
    cr_expect_not(jsontext_next(list, &next, NULL, &value));
    cr_expect_not(jsontext_member(list, "b", &value), "a list has no members");
    next = 0;
    cr_expect_not(jsontext_next(in("{}"), &next, NULL, &value));
    next = 0;
    cr_expect_not(jsontext_next(in("[ ]"), &next, NULL, &value));
}

Test(jsontext, numbers) {
    uint64_t number = 7;
    cr_expect(jsontext_number(in("18446744073709551615"), &number) && number == UINT64_MAX);
    cr_expect(jsontext_number(in("0"), &number) && number == 0);
    static const char *const none[] = {"",      "-1",  "1.0", "1e2", "18446744073709551616", "99999999999999999999",
                                       "\"1\"", "null"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        cr_expect_not(jsontext_number(in(none[i]), &number), "%s", none[i]);
    cr_expect_eq(number, 0, "and it is left as it was");
}

static void expect_text(const char *json, size_t room, const char *text) {
    char to[64];
    memset(to, 'x', sizeof to);
    cr_assert(jsontext_string(in(json), to, room), "%s", json);
    cr_expect_str_eq(to, text);
}

Test(jsontext, strings) {
    expect_text("\"\"", 64, "");
    expect_text("\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\"", 64, "a\"\\/\b\f\n\r\tz");
    expect_text("\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"", 64, "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    expect_text("\"\\ud83dx\\ude00\\ud83d\\ud83d\\ude00\\u0000\"", 64,
                "\xef\xbf\xbdx\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80\xef\xbf\xbd");
    expect_text("\"abc\"", 4, "abc");
    expect_text("\"abcd\"", 4, "abc");
    expect_text("\"ab\xe2\x82\xac\"", 5, "ab");
    expect_text("\"abc\"", 1, "");
    cr_expect_not(jsontext_string(in("1"), (char[8]){0}, 8));
}
