/* watch.c — see watch.h. */
#include "tools/top/watch.h"
#include "tools/top/layout.h"
#include "tools/views/roster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void watch_say(struct watch *watch, const char *text) {
    snprintf(watch->message, sizeof watch->message, "%.390s", text);
}

const struct rows *watch_rows(const struct watch *watch) {
    return watch->face.level == LEVEL_PROCESSES ? &watch->processes.rows : &watch->grouping.rows;
}

static struct rows *rows_of(struct watch *watch) {
    return watch->face.level == LEVEL_PROCESSES ? &watch->processes.rows : &watch->grouping.rows;
}

/* --- opening and closing a process --- */

/* The first view: by model if there are owners, and by site otherwise. */
static enum view first_view(const struct sampling *sampling) {
    return sampling->totals.host + sampling->totals.mapped && image_has_tags(&sampling->image) ? BY_MODEL : BY_SITE;
}

static int watch_open(struct watch *watch, pid_t pid, char *error, size_t size) {
    if (sampling_begin(&watch->sampling, pid, error, size) < 0) return -1;
    watch->watching = true;
    watch->face.level = LEVEL_ROWS;
    watch->face.view = first_view(&watch->sampling);
    watch->face.cursor = watch->face.first = 0;
    watch->face.focused = false;
    *watch->face.search = 0;
    watch->curve = (struct curve){0};
    curve_add(&watch->curve, watch->sampling.totals.host + watch->sampling.totals.mapped);
    watch->gained = 0;
    names_begin(&watch->names, &watch->sampling);
    search_begin(&watch->search, "");
    grouping_begin(&watch->grouping, watch->face.view);
    if (grouping_take(&watch->grouping, &watch->sampling) == 0) return 0;
    snprintf(error, size, "not enough memory");
    return -1;
}

static void watch_close(struct watch *watch) {
    if (!watch->watching) return;
    names_end(&watch->names);
    search_end(&watch->search);
    grouping_end(&watch->grouping);
    sampling_end(&watch->sampling);
    watch->watching = false;
}

int watch_begin(struct watch *watch, pid_t pid, char *error, size_t size) {
    memset(watch, 0, sizeof *watch);
    watch->face.one = pid != 0;
    if (pid) return watch_open(watch, pid, error, size);
    if (processes_look(&watch->processes, error, size) == 0) return 0;
    return -1;
}

void watch_end(struct watch *watch) {
    watch_close(watch);
    errand_leave(&watch->errand);
    processes_end(&watch->processes);
}

/* --- looks --- */

static size_t stack_read(const struct watch *watch, uint32_t *frames) {
    return sampling_stack(&watch->sampling, grouping_stack(watch->stack_key), frames, NAMES_FRAMES_MOST);
}

/* Goes back from the stack to the rows if the process has folded the stack: its place in the ledger may belong to
 * another stack now. */
static void stack_check(struct watch *watch) {
    uint32_t frames[NAMES_FRAMES_MOST];
    if (watch->face.level != LEVEL_STACK || watch->sampling.state != SAMPLING_RUNS) return;
    size_t count = stack_read(watch, frames);
    if (count == watch->stack_count && memcmp(frames, watch->stack, count * sizeof *frames) == 0) return;
    watch->face.level = LEVEL_ROWS;
    watch_say(watch, "the program has folded this stack");
}

/* After an exec, forgets what belongs to the former program: the curve, the focus, a stack, the search. */
static void exec_take(struct watch *watch) {
    watch->curve = (struct curve){0};
    watch->gained = 0;
    watch->grouping.focus.on = watch->face.focused = false;
    if (watch->face.level == LEVEL_STACK) watch->face.level = LEVEL_ROWS;
    search_begin(&watch->search, watch->face.search);
    watch_say(watch, "the process became another program (exec), which is watched from now on");
}

static int rows_take_look(struct watch *watch) {
    if (grouping_take(&watch->grouping, &watch->sampling) == 0 &&
        search_apply(&watch->search, &watch->names, &watch->grouping) == 0)
        return 0;
    sampling_distrust(&watch->sampling);
    watch_say(watch, "not enough memory: the rows are not complete");
    return -1;
}

static void look_at_process(struct watch *watch) {
    char error[300];
    const struct sampling_totals *totals = &watch->sampling.totals;
    int64_t before = (int64_t)(totals->host + totals->mapped);
    uint32_t execs = watch->sampling.execs;
    if (watch->sampling.state != SAMPLING_RUNS) return;
    if (sampling_look(&watch->sampling, error, sizeof error) < 0) return watch_say(watch, error);
    bool other = execs != watch->sampling.execs;
    if (other) exec_take(watch);
    if (watch->sampling.stale || rows_take_look(watch) < 0) return;
    if (!other) watch->gained = (int64_t)(totals->host + totals->mapped) - before;
    curve_add(&watch->curve, totals->host + totals->mapped);
    stack_check(watch);
}

void watch_look(struct watch *watch) {
    char error[300];
    if (watch->watching)
        look_at_process(watch);
    else if (processes_look(&watch->processes, error, sizeof error) < 0)
        watch_say(watch, error);
    else
        processes_search(&watch->processes, watch->face.search);
    watch_sort(watch);
}

/* A row that the user has chosen stays under the cursor, even if other rows overtake it. A cursor at the top stays at
 * the top. */
void watch_sort(struct watch *watch) {
    struct face *face = &watch->face;
    struct rows *rows = rows_of(watch);
    if (face->level == LEVEL_STACK) return;
    bool follow = face->cursor && face->cursor == watch->picked;
    size_t most = face->first + face->page > face->cursor ? face->first + face->page : face->cursor + 1;
    if (rows_sort(rows, face->sort, most) < 0) return watch_say(watch, "not enough memory");
    if (follow) {
        size_t rank = rows_rank_of(rows, watch->picked_key);
        if (rank != ROWS_NONE) face->cursor = rank;
    }
    face->count = rows->visible;
    keys_settle(face);
    if (face->first + face->page > rows->ordered && rows->ordered < rows->visible)
        rows_sort(rows, face->sort, face->first + face->page);
    uint32_t row = rows_ranked(rows, face->cursor);
    watch->picked = face->cursor;
    watch->picked_key = row == ROWS_NONE ? 0 : rows->keys[row];
}

/* --- carrying out wishes --- */

static bool row_under_cursor(const struct watch *watch, uint64_t *key) {
    uint32_t row = rows_ranked(watch_rows(watch), watch->face.cursor);
    if (row != ROWS_NONE) *key = watch_rows(watch)->keys[row];
    return row != ROWS_NONE;
}

static void watch_turn(struct watch *watch) {
    if (grouping_turn(&watch->grouping, &watch->sampling, watch->face.view) < 0 ||
        search_apply(&watch->search, &watch->names, &watch->grouping) < 0) {
        sampling_distrust(&watch->sampling);
        watch_say(watch, "not enough memory");
    }
    watch->picked = SIZE_MAX;
}

static void wish_open(struct watch *watch) {
    char error[300];
    uint64_t pid;
    if (!row_under_cursor(watch, &pid)) return;
    if (watch_open(watch, (pid_t)pid, error, sizeof error) == 0) return;
    watch_close(watch);
    watch->face.level = LEVEL_PROCESSES;
    watch_say(watch, error);
}

static void wish_close(struct watch *watch) {
    watch_close(watch);
    watch->face.level = LEVEL_PROCESSES;
    watch->face.cursor = watch->face.first = 0;
    watch->face.frozen = false;
    watch_look(watch);
}

static void wish_search(struct watch *watch) {
    if (!watch->watching) return processes_search(&watch->processes, watch->face.search);
    search_begin(&watch->search, watch->face.search);
    watch_turn(watch);
}

static void wish_drill(struct watch *watch) {
    uint64_t key;
    if (!row_under_cursor(watch, &key)) return;
    if (watch->face.view == BY_THREAD) return watch_say(watch, "the call sites of a thread are not recorded");
    if (watch->face.view == BY_SITE) {
        watch->stack_key = key;
        watch->stack_count = stack_read(watch, watch->stack);
        watch->face.level = LEVEL_STACK;
        watch->face.stack_first = 0;
        return;
    }
    watch->grouping.focus = (struct focus){true, watch->face.view, key};
    watch->face.view = BY_SITE;
    watch->face.focused = true;
    watch->face.cursor = watch->face.first = 0;
    *watch->face.search = 0;
    search_begin(&watch->search, "");
    watch_turn(watch);
}

static void wish_rise(struct watch *watch) {
    /* If the user comes back from a stack, the rows stay as they are. */
    if (!watch->grouping.focus.on || watch->face.focused) return;
    watch->face.view = watch->grouping.focus.view;
    watch->grouping.focus.on = false;
    watch->face.cursor = watch->face.first = 0;
    watch_turn(watch);
}

/* The owner to stow or restore: the owner of the focus, or else of the row at the cursor. 0: none. */
static uint32_t owner_meant(const struct watch *watch) {
    uint64_t key;
    const struct focus *focus = &watch->grouping.focus;
    if (focus->on && focus->view == BY_MODEL) return grouping_owner(focus->key);
    return watch->face.view == BY_MODEL && row_under_cursor(watch, &key) ? grouping_owner(key) : 0;
}

static void wish_ask(struct watch *watch) {
    static const char *const verbs[] = {[DOING_STOW] = "Stow", [DOING_RESTORE] = "Restore"};
    struct face *face = &watch->face;
    if (watch->errand.pid || watch->sampling.state != SAMPLING_RUNS) {
        face->asking = ASKING_NOTHING;
        return watch_say(watch, watch->errand.pid ? "another request is under way" : "the process has ended");
    }
    if (face->doing == DOING_TRIGGER) {
        snprintf(watch->question, sizeof watch->question, "Apply the policies of process %d now? (y/n)",
                 (int)watch->sampling.pid);
        return;
    }
    watch->owner = owner_meant(watch);
    if (!watch->owner) {
        face->asking = ASKING_NOTHING;
        return watch_say(watch, "choose a model first (key m)");
    }
    snprintf(watch->question, sizeof watch->question, "%s owner %u, %.300s? (y/n)", verbs[face->doing], watch->owner,
             names_row(&watch->names, BY_MODEL, watch->owner, 200).s);
}

static void watch_send(struct watch *watch, const char *command, const char *third, const char *what) {
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)watch->sampling.pid);
    const char *words[] = {command, pid, third, NULL};
    if (watch->errand.pid) return watch_say(watch, "another request is under way");
    watch_say(watch, errand_start(&watch->errand, words) ? what : strerror(errno));
}

static void wish_do(struct watch *watch) {
    char owner[16];
    snprintf(owner, sizeof owner, "%u", watch->owner);
    enum doing doing = watch->face.doing;
    watch->face.doing = DOING_NOTHING;
    if (doing == DOING_STOW) watch_send(watch, "stow", owner, "stowing …");
    if (doing == DOING_RESTORE) watch_send(watch, "restore", owner, "restoring …");
    if (doing == DOING_TRIGGER) watch_send(watch, "trigger", "--reason=by memstow top", "applying the policies …");
}

bool watch_wish(struct watch *watch, enum wish wish) {
    if (wish != WISH_NOTHING && wish != WISH_SORT) *watch->message = 0;
    switch (wish) {
    case WISH_QUIT:
        return false;
    case WISH_OPEN:
        wish_open(watch);
        break;
    case WISH_CLOSE:
        wish_close(watch);
        break;
    case WISH_DRILL:
        wish_drill(watch);
        break;
    case WISH_RISE:
        wish_rise(watch);
        break;
    case WISH_VIEW:
        watch->grouping.focus.on = false;
        watch_turn(watch);
        break;
    case WISH_SEARCH:
        wish_search(watch);
        break;
    case WISH_SNAPSHOT:
        watch_send(watch, "snapshot", NULL, "writing a snapshot …");
        break;
    case WISH_ASK:
        wish_ask(watch);
        break;
    case WISH_DO:
        wish_do(watch);
        break;
    default:
        break;
    }
    if (wish == WISH_NOTHING) return true;
    /* A key has moved the cursor, so watch_sort must not put the cursor back on its former row. */
    if (wish == WISH_SORT) watch->picked = SIZE_MAX;
    watch_sort(watch);
    return true;
}

bool watch_hear(struct watch *watch) {
    if (!errand_poll(&watch->errand)) return false;
    watch_say(watch, *watch->errand.said ? watch->errand.said : "done");
    return true;
}
