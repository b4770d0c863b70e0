/* glob.c — patterns for names. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/glob.h"

static const struct {
    const char *pattern, *text;
    bool matches;
} cases[] = {
    {"", "", true},
    {"", "a", false},
    {"*", "", true},
    {"*", "anything", true},
    {"?", "", false},
    {"?", "a", true},
    {"?", "\xc3\xa9", true},
    {"?", "ab", false},
    {"??", "\xc3\xa9z", true},
    {"?", "\x80\x80", false},
    {"??", "\x80\x80", true},
    {"???", "\xc3\xa9\x80z", true},
    {"json_*", "json_cache", true},
    {"json_*", "xjson_cache", false},
    {"*_cache", "json_cache", true},
    {"*_cache", "json_cache_fill", false},
    {"*a*b*c", "xxaxxbxxbxxc", true},
    {"*a*b*c", "xxaxxcxxb", false},
    {"operator new[](unsigned long)", "operator new[](unsigned long)", true},
    {"operator new[](unsigned long)", "operator newu", false},
    {"std::vector<int>::*", "std::vector<int>::push_back(int&&)", true},
    {"a\\*b", "a*b", true},
    {"a\\*b", "axb", false},
    {"a\\?", "a?", true},
    {"a\\", "a\\", true},
    {"A", "a", false},
    {"***", "x", true},
    {"*x", "\xff\x80x", true},
};

Test(glob, matches_the_whole_text) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_eq(glob_matches(cases[i].pattern, cases[i].text), cases[i].matches, "%s %s", cases[i].pattern,
                     cases[i].text);
}

/* Other implementations need exponential time for these. */
Test(glob, many_stars_take_little_time, .timeout = 20) {
    char *text = malloc(4001), pattern[201];
    memset(text, 'a', 4000);
    text[4000] = 0;
    for (int i = 0; i < 200; i += 2) memcpy(pattern + i, "*a", 2);
    pattern[200] = 0;
    cr_expect(glob_matches(pattern, text));
    memcpy(pattern + 198, "*b", 2);
    cr_expect_not(glob_matches(pattern, text));
    free(text);
}
