/* loop.c — see loop.h. */
#include "tools/top/loop.h"
#include "tools/base/complain.h"
#include "tools/base/duration.h"
#include "tools/top/layout.h"
#include "tools/top/paint.h"
#include "tools/top/screen.h"

#include <stdio.h>

enum { LOOK_MS = 1000, HEAR_MS = 100 };

/* How long to wait for a key: until the next look, but only briefly while a command (errand.h) runs beside top. */
static int wait_ms(const struct watch *watch, uint64_t next) {
    uint64_t now = duration_now();
    int left = watch->face.frozen ? LOOK_MS : next > now ? (int)((next - now + 999999) / 1000000) : 0;
    return watch->errand.pid && left > HEAR_MS ? HEAR_MS : left;
}

static void loop_follow(struct watch *watch) {
    uint64_t next = duration_now() + (uint64_t)LOOK_MS * 1000000;
    paint(watch);
    while (!screen_is_over()) {
        int key = screen_key(wait_ms(watch, next));
        enum wish wish = keys_press(&watch->face, key);
        watch->face.page = paint_page(&watch->face, screen_lines());
        if (!watch_wish(watch, wish)) return;
        watch->face.page = paint_page(&watch->face, screen_lines());
        if (key == KEY_RESIZED) watch_sort(watch);
        bool heard = watch_hear(watch), due = !watch->face.frozen && duration_now() >= next;
        if (due || wish == WISH_NEXT) watch_look(watch);
        if (due || wish == WISH_NEXT) next = duration_now() + (uint64_t)LOOK_MS * 1000000;
        if (due || heard || key != KEY_NONE) paint(watch);
    }
}

static int too_small(void) {
    int lines = screen_lines(), columns = screen_columns();
    if (lines >= LAYOUT_LINES_LEAST && columns >= LAYOUT_COLUMNS_LEAST) return EXIT_FINE;
    screen_end();
    complain("top: the terminal has %d columns and %d lines, and at least %d and %d are needed", columns, lines,
             LAYOUT_COLUMNS_LEAST, LAYOUT_LINES_LEAST);
    return EXIT_USAGE;
}

int loop_run(pid_t pid) {
    static struct watch watch;
    char error[400];
    if (screen_begin(error, sizeof error) < 0) {
        complain("top: %s", error);
        return EXIT_USAGE;
    }
    int code = too_small();
    if (code != EXIT_FINE) return code;
    bool begun = watch_begin(&watch, pid, error, sizeof error) == 0;
    if (begun) {
        watch.face.page = paint_page(&watch.face, screen_lines());
        watch_sort(&watch);
        loop_follow(&watch);
    }
    watch_end(&watch);
    screen_end();
    if (!begun) complain("%s", error);
    return begun ? EXIT_FINE : EXIT_UNREADABLE;
}
