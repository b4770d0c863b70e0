/* top_keys.c — keys in `memstow top`: how each changes the state of the screen, and which action it asks for. */
#include <criterion/criterion.h>
#include <string.h>

#include "tools/top/keys.h"

static struct face rows_face(size_t count, size_t page) {
    return (struct face){.level = LEVEL_ROWS, .count = count, .page = page, .view = BY_SITE};
}

static void type(struct face *face, const char *text) {
    for (; *text; text++) keys_press(face, (unsigned char)*text);
}

Test(top_keys, the_cursor_stays_among_the_rows_and_in_sight) {
    struct face face = rows_face(100, 10);
    keys_press(&face, KEY_ARROW_UP);
    cr_expect_eq(face.cursor, 0);
    for (int i = 0; i < 12; i++) keys_press(&face, KEY_ARROW_DOWN);
    cr_expect(face.cursor == 12 && face.first == 3);
    keys_press(&face, KEY_LAST);
    cr_expect(face.cursor == 99 && face.first == 90);
    keys_press(&face, KEY_ARROW_DOWN);
    cr_expect_eq(face.cursor, 99);
    keys_press(&face, KEY_PAGE_UP);
    cr_expect_eq(face.cursor, 90);
    keys_press(&face, 'g');
    cr_expect(face.cursor == 0 && face.first == 0);
    keys_press(&face, 'G');
    face.count = 5; /* rows go */
    keys_settle(&face);
    cr_expect(face.cursor == 4 && face.first == 0);
    face.count = 0;
    keys_settle(&face);
    cr_expect_eq(face.cursor, 0);
    cr_expect_eq(keys_press(&face, KEY_ENTER_LINE), WISH_NOTHING, "there is nothing to enter");
}

Test(top_keys, views_and_orders) {
    static const struct {
        int key;
        enum view view;
    } views[] = {{'m', BY_MODEL}, {'n', BY_NODE}, {'u', BY_RUN}, {'c', BY_SITE}, {'l', BY_MODULE}, {'t', BY_THREAD}};
    struct face face = rows_face(9, 9);
    for (size_t i = 0; i < 6; i++) {
        face.cursor = 3;
        cr_expect_eq(keys_press(&face, views[i].key), WISH_VIEW);
        cr_expect(face.view == views[i].view && face.cursor == 0);
    }
    cr_expect_eq(keys_press(&face, KEY_TABULATOR), WISH_VIEW);
    cr_expect_eq(face.view, BY_MODEL);
    for (int i = 0; i < ROWS_SORTS; i++) {
        cr_expect_eq(face.sort, (enum rows_sort)i);
        cr_expect_eq(keys_press(&face, 's'), WISH_SORT);
    }
    cr_expect_eq(face.sort, ROWS_BY_SIZE);
}

Test(top_keys, only_y_is_yes) {
    struct face face = rows_face(9, 9);
    static const int noes[] = {'n', 'q', KEY_ESCAPE, KEY_ENTER_LINE, ' ', KEY_ARROW_DOWN};
    for (size_t i = 0; i < sizeof noes / sizeof *noes; i++) {
        cr_expect_eq(keys_press(&face, 'S'), WISH_ASK);
        cr_expect(face.asking == ASKING_SURE && face.doing == DOING_STOW);
        cr_expect_eq(keys_press(&face, KEY_NONE), WISH_NOTHING);
        cr_expect_eq(keys_press(&face, KEY_RESIZED), WISH_NOTHING);
        cr_expect_eq(face.asking, ASKING_SURE);
        cr_expect_eq(keys_press(&face, noes[i]), WISH_NOTHING);
        cr_expect(face.asking == ASKING_NOTHING && face.doing == DOING_NOTHING);
    }
    keys_press(&face, 'R');
    cr_expect_eq(keys_press(&face, 'y'), WISH_DO);
    cr_expect_eq(face.doing, DOING_RESTORE);
    keys_press(&face, 'T');
    cr_expect_eq(face.doing, DOING_TRIGGER);
    face = rows_face(9, 9);
    face.level = LEVEL_PROCESSES;
    cr_expect_eq(keys_press(&face, 'S'), WISH_NOTHING, "there is no owner in the list of processes");
}

Test(top_keys, a_search_is_typed) {
    struct face face = rows_face(9, 9);
    keys_press(&face, '/');
    type(&face, "qs /");
    keys_press(&face, 0xE9);
    keys_press(&face, 0x1F600);
    keys_press(&face, 7); /* a control character */
    cr_expect_str_eq(face.typed, "qs /\u00e9\U0001F600");
    keys_press(&face, KEY_ERASE);
    keys_press(&face, KEY_ERASE);
    cr_expect_str_eq(face.typed, "qs /");
    cr_expect_eq(keys_press(&face, KEY_ENTER_LINE), WISH_SEARCH);
    cr_expect_str_eq(face.search, "qs /");
    keys_press(&face, '/');
    type(&face, "xyz");
    keys_press(&face, KEY_ESCAPE); /* the earlier text stays */
    cr_expect_str_eq(face.search, "qs /");
    cr_expect_eq(keys_press(&face, KEY_ESCAPE), WISH_SEARCH);
    cr_expect_str_empty(face.search);
    keys_press(&face, '/');
    for (int i = 0; i < 3 * SEARCH_MOST; i++) keys_press(&face, 0x20AC);
    cr_expect_eq(strlen(face.typed), SEARCH_MOST);
}

Test(top_keys, back_goes_one_step) {
    struct face face = rows_face(9, 9);
    face.level = LEVEL_STACK;
    face.focused = true;
    cr_expect_eq(keys_press(&face, KEY_ESCAPE), WISH_RISE);
    cr_expect(face.level == LEVEL_ROWS && face.focused);
    cr_expect_eq(keys_press(&face, KEY_ARROW_LEFT), WISH_RISE);
    cr_expect_not(face.focused);
    cr_expect_eq(keys_press(&face, KEY_ESCAPE), WISH_CLOSE);
    face.one = true;
    cr_expect_eq(keys_press(&face, KEY_ESCAPE), WISH_NOTHING, "there is no list to go back to");
}

Test(top_keys, freeze_and_help) {
    struct face face = rows_face(9, 9);
    cr_expect_eq(keys_press(&face, ' '), WISH_NOTHING);
    cr_expect(face.frozen);
    cr_expect_eq(keys_press(&face, ' '), WISH_NEXT);
    cr_expect_not(face.frozen);
    keys_press(&face, '?');
    cr_expect(face.help);
    cr_expect_eq(keys_press(&face, 'S'), WISH_NOTHING, "it closes the help, and nothing else");
    cr_expect(!face.help && face.asking == ASKING_NOTHING);
    cr_expect_eq(keys_press(&face, 'q'), WISH_QUIT);
}

Test(top_keys, a_stack_scrolls) {
    struct face face = rows_face(9, 9);
    face.level = LEVEL_STACK;
    face.stack_count = 50;
    face.stack_page = 20;
    keys_press(&face, 'G');
    cr_expect_eq(face.stack_first, 30);
    keys_press(&face, KEY_ARROW_DOWN);
    cr_expect_eq(face.stack_first, 30);
    keys_press(&face, KEY_PAGE_UP);
    cr_expect_eq(face.stack_first, 11);
    cr_expect_eq(face.cursor, 0);
    face.stack_count = 5;
    keys_press(&face, 'j');
    cr_expect_eq(face.stack_first, 0);
}
