/* keys.h — what a key does: from one state of the screen to the next.
 * In: the state, and a key. Out: the changed state, and a wish that the loop is to carry out. Pure: it knows nothing of
 * terminals and ledgers. */
#ifndef MEMSTOW_TOP_KEYS_H
#define MEMSTOW_TOP_KEYS_H

#include "tools/top/rows.h"
#include "tools/views/groups.h"

#include <stdbool.h>
#include <stddef.h>

/* Keys. A key that is no character has a number above those of all characters. */
enum key {
    KEY_NONE = -1,
    KEY_ENTER_LINE = '\r',
    KEY_ESCAPE = 27,
    KEY_TABULATOR = '\t',
    KEY_ARROW_UP = 0x110000,
    KEY_ARROW_DOWN,
    KEY_ARROW_LEFT,
    KEY_ARROW_RIGHT,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_FIRST,
    KEY_LAST,
    KEY_ERASE, /* backspace */
    KEY_RESIZED,
};

/* The content of the screen. */
enum level { LEVEL_PROCESSES, LEVEL_ROWS, LEVEL_STACK };
/* The purpose of the next keys. */
enum asking { ASKING_NOTHING, ASKING_SEARCH, ASKING_SURE };
/* The next task of the loop. */
enum wish {
    WISH_NOTHING,
    WISH_QUIT,
    WISH_OPEN,   /* watch the process in the row at the cursor */
    WISH_CLOSE,  /* back to the list of processes */
    WISH_DRILL,  /* show the sites or the stack of the row at the cursor */
    WISH_RISE,   /* back to the rows from which WISH_DRILL came */
    WISH_VIEW,   /* the view has changed */
    WISH_SORT,   /* the order has changed, or more rows are needed */
    WISH_SEARCH, /* the text that is searched for has changed */
    WISH_SNAPSHOT,
    WISH_ASK,  /* ask the user whether `doing` is to be done */
    WISH_DO,   /* the user has said yes: do `doing` */
    WISH_NEXT, /* look now: the picture is no longer frozen */
};
enum doing { DOING_NOTHING, DOING_STOW, DOING_RESTORE, DOING_TRIGGER };

enum { SEARCH_MOST = 120 };

struct face {
    enum level level;
    bool one; /* only one process is watched: there is no list to go back to */
    enum asking asking;
    enum doing doing;
    enum view view;
    enum rows_sort sort;
    size_t cursor, first; /* ranks: of the cursor, and of the row at the top of the screen */
    size_t count, page;   /* how many rows there are, and how many fit on the screen */
    bool frozen, help;
    /* lines of the stack: the number of the first on the screen, how many there are, and how many fit */
    size_t stack_first, stack_count, stack_page;
    bool focused; /* the rows are only those of one owner or module */
    char search[SEARCH_MOST + 1], typed[SEARCH_MOST + 1];
};

enum wish keys_press(struct face *face, int key);
/* Keeps the cursor among the rows, and in sight. Call it when the rows or the size of the screen have changed. */
void keys_settle(struct face *face);

#endif
