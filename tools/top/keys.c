/* keys.c — see keys.h. */
#include "tools/top/keys.h"

#include <string.h>

#include "preload/shared/utf8.h"

void keys_settle(struct face *face) {
    if (face->cursor >= face->count) face->cursor = face->count ? face->count - 1 : 0;
    if (face->cursor < face->first) face->first = face->cursor;
    if (face->page && face->cursor >= face->first + face->page) face->first = face->cursor - face->page + 1;
    size_t last = face->count > face->page ? face->count - face->page : 0;
    if (face->first > last) face->first = last;
}

static enum wish cursor_to(struct face *face, size_t rank) {
    face->cursor = rank;
    keys_settle(face);
    return WISH_SORT;
}

static size_t keys_less(size_t rank, size_t by) { return rank > by ? rank - by : 0; }

static enum wish stack_to(struct face *face, size_t line) {
    size_t last = face->stack_count > face->stack_page ? face->stack_count - face->stack_page : 0;
    face->stack_first = line < last ? line : last;
    return WISH_NOTHING;
}

/* Keys that move through the lines of a stack. */
static enum wish keys_scroll(struct face *face, int key) {
    size_t page = face->stack_page > 1 ? face->stack_page - 1 : 1, first = face->stack_first;
    switch (key) {
    case KEY_ARROW_UP:
    case 'k':
        return stack_to(face, keys_less(first, 1));
    case KEY_ARROW_DOWN:
    case 'j':
        return stack_to(face, first + 1);
    case KEY_PAGE_UP:
        return stack_to(face, keys_less(first, page));
    case KEY_PAGE_DOWN:
        return stack_to(face, first + page);
    case KEY_FIRST:
    case 'g':
        return stack_to(face, 0);
    case KEY_LAST:
    case 'G':
        return stack_to(face, SIZE_MAX);
    default:
        return WISH_NOTHING;
    }
}

/* Keys that move the cursor; WISH_NOTHING for others. */
static enum wish keys_move(struct face *face, int key) {
    if (face->level == LEVEL_STACK) return keys_scroll(face, key);
    size_t page = face->page > 1 ? face->page - 1 : 1;
    switch (key) {
    case KEY_ARROW_UP:
    case 'k':
        return cursor_to(face, keys_less(face->cursor, 1));
    case KEY_ARROW_DOWN:
    case 'j':
        return cursor_to(face, face->cursor + 1);
    case KEY_PAGE_UP:
        return cursor_to(face, keys_less(face->cursor, page));
    case KEY_PAGE_DOWN:
        return cursor_to(face, face->cursor + page);
    case KEY_FIRST:
    case 'g':
        return cursor_to(face, 0);
    case KEY_LAST:
    case 'G':
        return cursor_to(face, face->count ? face->count - 1 : 0);
    default:
        return WISH_NOTHING;
    }
}

static void to_top(struct face *face) { face->cursor = face->first = 0; }

static enum wish view_to(struct face *face, enum view view) {
    face->view = view;
    face->focused = false;
    to_top(face);
    return WISH_VIEW;
}

static enum wish sort_to(struct face *face, enum rows_sort sort) {
    face->sort = sort;
    to_top(face);
    return WISH_SORT;
}

static enum wish keys_ask(struct face *face, enum doing doing) {
    face->asking = ASKING_SURE;
    face->doing = doing;
    return WISH_ASK;
}

static enum wish keys_back(struct face *face) {
    if (face->level == LEVEL_STACK) {
        face->level = LEVEL_ROWS;
        return WISH_RISE;
    }
    if (*face->search) {
        *face->search = 0;
        to_top(face);
        return WISH_SEARCH;
    }
    if (face->focused) {
        face->focused = false;
        return WISH_RISE;
    }
    if (face->level == LEVEL_ROWS && !face->one) return WISH_CLOSE;
    return WISH_NOTHING;
}

static enum wish keys_enter(struct face *face) {
    if (!face->count) return WISH_NOTHING;
    if (face->level == LEVEL_PROCESSES) return WISH_OPEN;
    return face->level == LEVEL_ROWS ? WISH_DRILL : WISH_NOTHING;
}

/* Keys that mean the same at every level. */
static enum wish keys_common(struct face *face, int key) {
    switch (key) {
    case 'q':
        return WISH_QUIT;
    case ' ':
        face->frozen = !face->frozen;
        return face->frozen ? WISH_NOTHING : WISH_NEXT;
    case '?':
    case 'h':
        face->help = true;
        return WISH_NOTHING;
    case '/':
        if (face->level == LEVEL_STACK) return WISH_NOTHING;
        face->asking = ASKING_SEARCH;
        strcpy(face->typed, face->search);
        return WISH_NOTHING;
    case KEY_ESCAPE:
    case KEY_ERASE:
    case KEY_ARROW_LEFT:
        return keys_back(face);
    case KEY_ENTER_LINE:
    case '\n':
    case KEY_ARROW_RIGHT:
        return keys_enter(face);
    default:
        return keys_move(face, key);
    }
}

/* Keys for the rows of one process. */
static enum wish keys_rows(struct face *face, int key) {
    switch (key) {
    case 'm':
        return view_to(face, BY_MODEL);
    case 'n':
        return view_to(face, BY_NODE);
    case 'u':
        return view_to(face, BY_RUN);
    case 'c':
        return view_to(face, BY_SITE);
    case 'l':
        return view_to(face, BY_MODULE);
    case 't':
        return view_to(face, BY_THREAD);
    case KEY_TABULATOR:
        return view_to(face, (enum view)((face->view + 1) % VIEWS));
    case 's':
        return sort_to(face, (enum rows_sort)((face->sort + 1) % ROWS_SORTS));
    case 'S':
        return keys_ask(face, DOING_STOW);
    case 'R':
        return keys_ask(face, DOING_RESTORE);
    case 'T':
        return keys_ask(face, DOING_TRIGGER);
    case 'w':
        return WISH_SNAPSHOT;
    default:
        return keys_common(face, key);
    }
}

/* Removes the last character of the text, which may have several bytes. */
static void typed_shorten(struct face *face) {
    size_t length = strlen(face->typed);
    if (length) face->typed[utf8_cut(face->typed, length - 1)] = 0;
}

static void typed_add(struct face *face, int character) {
    char bytes[UTF8_MOST];
    if (character < ' ' || character == 0x7f || character >= 0x110000) return;
    size_t length = strlen(face->typed), more = utf8_put(bytes, (uint32_t)character);
    if (length + more > SEARCH_MOST) return;
    memcpy(face->typed + length, bytes, more);
    face->typed[length + more] = 0;
}

static enum wish keys_search(struct face *face, int key) {
    if (key == KEY_ESCAPE) {
        face->asking = ASKING_NOTHING;
    } else if (key == KEY_ENTER_LINE || key == '\n') {
        face->asking = ASKING_NOTHING;
        strcpy(face->search, face->typed);
        to_top(face);
        return WISH_SEARCH;
    } else if (key == KEY_ERASE) {
        typed_shorten(face);
    } else {
        typed_add(face, key);
    }
    return WISH_NOTHING;
}

/* Only y means yes. Any other key cancels the action. */
static enum wish keys_sure(struct face *face, int key) {
    if (key == KEY_RESIZED) return WISH_NOTHING;
    face->asking = ASKING_NOTHING;
    if (key == 'y' || key == 'Y') return WISH_DO;
    face->doing = DOING_NOTHING;
    return WISH_NOTHING;
}

enum wish keys_press(struct face *face, int key) {
    if (key == KEY_NONE || key == KEY_RESIZED) return WISH_NOTHING;
    if (face->asking == ASKING_SEARCH) return keys_search(face, key);
    if (face->asking == ASKING_SURE) return keys_sure(face, key);
    if (face->help) {
        face->help = false;
        return key == 'q' ? WISH_QUIT : WISH_NOTHING;
    }
    return face->level == LEVEL_ROWS ? keys_rows(face, key) : keys_common(face, key);
}
