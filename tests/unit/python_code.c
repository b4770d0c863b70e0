// How CPython's objects are read: the line of an instruction, text as UTF-8, and offsets. The tables were made by
// Python 3.11, 3.12 and 3.13 themselves.
#include <criterion/criterion.h>
#include <string.h>

#include "preload/stacks/python_code.h"

struct recorded {
    const char *what;
    uint32_t first_line;
    const uint8_t *table;
    size_t length;
    const uint32_t *runs; /* (code units, line) and so on */
    size_t run_words;
};
#include "python_tables.h"

static void check_lines(const struct recorded *code) {
    uint32_t unit = 0;
    for (size_t i = 0; i < code->run_words; i += 2)
        for (uint32_t n = code->runs[i]; n > 0; n--, unit++)
            cr_assert_eq(python_code_line(code->table, code->length, code->first_line, unit), code->runs[i + 1],
                         "%s: unit %u", code->what, unit);
    cr_assert_gt(unit, 0);
    cr_assert_eq(python_code_line(code->table, code->length, code->first_line, unit), 0, "behind the last instruction");
}

#define CHECK_ALL(table)                                                                                               \
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) check_lines(&table[i])

Test(lines, of_3_11) { CHECK_ALL(recorded_311); }
Test(lines, of_3_12) { CHECK_ALL(recorded_312); }
Test(lines, of_3_13) { CHECK_ALL(recorded_313); }

/* python_code_line does not read beyond the end of any table: the presets with sanitizers check that. */
Test(lines, any_bytes_do) {
    uint32_t random = 1;
    for (int round = 0; round < 100000; round++) {
        uint8_t table[24];
        size_t length = round % sizeof table;
        for (size_t i = 0; i < length; i++) table[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
        uint8_t *exact = malloc(length + 1);
        memcpy(exact, table, length);
        for (uint32_t unit = 0; unit < 40; unit += 3) python_code_line(exact, length, (uint32_t)round, unit);
        free(exact);
    }
    cr_assert_eq(python_code_line(NULL, 0, 7, 0), 0);
}

static void check_text(const void *characters, size_t count, unsigned width, const char *expected) {
    char text[100];
    cr_assert_eq(python_code_utf8(characters, count, width, text, sizeof text), strlen(expected));
    cr_assert_str_eq(text, expected);
}

Test(text, comes_out_as_utf8) {
    check_text("spread", 6, 1, "spread");
    check_text("", 0, 1, "");
    check_text("\xFCn\xEF", 3, 1, "ünï");
    check_text(u"файл 日本", 7, 2, "файл 日本");
    check_text(U"𝒳é日a", 4, 4, "𝒳é日a");
    check_text("a\0b", 3, 1, "a?b");
}

Test(text, bytes_that_were_no_utf8_come_out_as_they_were) {
    const uint16_t smuggled[] = {'n', 0xDCFF, 0xDC80, 'x'}, surrogate[] = {0xD800, 0xDC00};
    check_text(smuggled, 4, 2, "n\xFF\x80x");
    check_text(surrogate, 2, 2, "\xEF\xBF\xBD\xEF\xBF\xBD");
}

Test(text, is_cut_between_characters) {
    char text[8];
    cr_assert_eq(python_code_utf8(u"日本語", 3, 2, text, sizeof text), 6);
    cr_assert_str_eq(text, "日本");
    cr_assert_eq(python_code_utf8("12345678", 8, 1, text, sizeof text), 7);
    cr_assert_eq(python_code_utf8("x", 1, 1, text, 1), 0);
}

/* A str object of any version, by its layout. */
static void check_object(const struct python_layout *layout, unsigned width, bool ascii, const void *characters,
                         size_t count, const char *expected) {
    char object[256] = {0}, text[64];
    uint64_t length = count;
    uint32_t state = (width | 8u | (ascii ? 16u : 0)) << layout->text_kind_shift;
    memcpy(object + layout->text_length, &length, sizeof length);
    memcpy(object + layout->text_state, &state, sizeof state);
    memcpy(object + (ascii ? layout->text_ascii : layout->text_other), characters, count * width);
    python_code_text(layout, (uintptr_t)object, text, sizeof text);
    cr_assert_str_eq(text, expected);
    memset(object + layout->text_state, 0, sizeof state);
    cr_assert_eq(python_code_text(layout, (uintptr_t)object, text, sizeof text), 0, "not compact");
    cr_assert_str_eq(text, "");
}

Test(text, of_objects) {
    struct python_layout layout;
    char text[4] = "x";
    for (uint32_t version = 0x030b00f0; version <= 0x030d00f0; version += 0x10000) {
        cr_assert(python_layout(version, offsets_313, &layout), "%x", version);
        check_object(&layout, 1, true, "name", 4, "name");
        check_object(&layout, 1, false, "n\xE4me", 4, "näme");
        check_object(&layout, 2, false, u"日本", 2, "日本");
        check_object(&layout, 4, false, U"𝒳", 1, "𝒳");
        cr_assert_eq(python_code_text(&layout, 0, text, sizeof text), 0);
        cr_assert_str_eq(text, "");
    }
}

Test(layout, of_3_13_is_read_from_the_interpreter) {
    struct python_layout layout;
    cr_assert(python_layout(0x030d00f0, offsets_313, &layout));
    /* offsetof() of the headers of 3.13.0 */
    cr_assert_eq(layout.thread_head, 72);
    cr_assert_eq(layout.frame_code, 0);
    cr_assert_eq(layout.frame_previous, 8);
    cr_assert_eq(layout.frame_instruction, 56);
    cr_assert_eq(layout.frame_owner, 70);
    cr_assert_eq(layout.code_file, 112);
    cr_assert_eq(layout.code_name, 128);
    cr_assert_eq(layout.code_first_line, 68);
    cr_assert_eq(layout.code_lines, 136);
    cr_assert_eq(layout.code_first_traceable, 184);
    cr_assert_eq(layout.code_start, 200);
    cr_assert_eq(layout.type_dealloc, 48);
    cr_assert_eq(layout.bytes_start, 32);
    cr_assert_eq(layout.text_state, 32);
    cr_assert_eq(layout.text_ascii, 40);
    cr_assert_eq(layout.text_other, 56);
    cr_assert_eq(layout.runtime_finalizing, 608);
}

/* The offsets of 3.14 are taken from its header, because no 3.14 was installed. 3.14 has more words than 3.13: two
 * groups in front of the group of code objects are longer, and so is one group behind it. */
static void make_314(uint64_t words[81], bool free_threaded) {
    memset(words, 0, 81 * sizeof *words);
    memcpy(words, offsets_313, 4 * sizeof *words);
    words[1] = 0x030e00f0;
    words[2] = free_threaded;
    words[4] = 608;
    uint64_t object = free_threaded ? 32 : 16;
    const uint64_t thread[] = {800, 0, 8, 16, 72, 152, 160, 200, 40}, frame[] = {88, 8, 0, 56, 80, 74, 64, 72};
    const uint64_t code[] = {216, 112, 120, 128, 136, 68, 52, 96, 104, 208, 0}, text[] = {64, 32, 16, 40};
    memcpy(words + 22, thread, sizeof thread);
    memcpy(words + 31, frame, sizeof frame);
    memcpy(words + 39, code, sizeof code);
    memcpy(words + 50, (uint64_t[]){object, object - 8}, 16);
    memcpy(words + 74, (uint64_t[]){object + 25, object, object + 16}, 24);
    memcpy(words + 77, text, sizeof text);
}

Test(layout, of_3_14_has_more_words) {
    uint64_t words[81];
    struct python_layout layout;
    make_314(words, false);
    cr_assert(python_layout(0x030e00f0, words, &layout));
    cr_assert_eq(layout.thread_head, 72);
    cr_assert_eq(layout.frame_owner, 74);
    cr_assert_eq(layout.code_start, 208);
    cr_assert_eq(layout.code_first_traceable, 192);
    cr_assert_eq(layout.text_kind_shift, 2);
    make_314(words, true);
    cr_assert(python_layout(0x030e00f0, words, &layout));
    cr_assert_eq(layout.code_first_traceable, 184);
    cr_assert_eq(layout.object_type, 24);
    cr_assert_eq(layout.type_dealloc, 64);
    cr_assert_eq(layout.text_kind_shift, 8);
}

Test(layout, what_does_not_look_like_offsets_is_refused) {
    uint64_t words[81];
    struct python_layout layout;
    cr_assert_not(python_layout(0x030a00f0, NULL, &layout), "3.10");
    cr_assert_not(python_layout(0x030d00f0, NULL, &layout));
    cr_assert_not(python_layout(0x030d01f0, offsets_313, &layout), "another version than it says");
    make_314(words, false);
    words[0]++;
    cr_assert_not(python_layout(0x030e00f0, words, &layout), "no cookie");
    make_314(words, false);
    words[22 + 4] = 5000;
    cr_assert_not(python_layout(0x030e00f0, words, &layout), "behind the end of the struct");
    memcpy(words, offsets_313, sizeof offsets_313);
    words[1] = 0x030e00f0;
    cr_assert_not(python_layout(0x030e00f0, words, &layout), "3.13's order of words");
}
