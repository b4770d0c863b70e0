/* state_loop.c — see state_loop.h. The structures of closed loops stay in the list, and are used for new loops. */
#include "preload/state/state_loop.h"

#include <errno.h>
#include <string.h>

#include "preload/base/arena.h"
#include "preload/base/forked.h"
#include "preload/owners/owners.h"

static struct state_loop *loops; /* used and unused ones */
static int64_t last_number;

struct state_loop *state_loop_known(int64_t number) {
    for (struct state_loop *loop = loops; loop; loop = loop->next)
        if (number && loop->number == number) return loop;
    return NULL;
}

/* Waits until no other thread changes the loop. Such a thread may be writing to the disk, so this may take long. */
int state_loop_begin_change(int64_t number, struct state_loop **out) {
    lock_hold(&state_registry);
    struct state_loop *loop = *out = state_loop_known(number);
    lock_let_go(&state_registry);
    if (!loop) return -ENOENT;
    lock_hold(&loop->changes);
    if (__atomic_load_n(&loop->number, __ATOMIC_ACQUIRE) == number) return 0;
    lock_let_go(&loop->changes);
    return -ENOENT;
}

void state_loop_drop_later(struct state_loop *loop, struct state_value *value) {
    value->next = loop->dropped;
    loop->dropped = value;
}

int64_t state_loop_end_change(struct state_loop *loop, int64_t result) {
    uint64_t signals;
    struct state_value *dropped = loop->dropped;
    loop->dropped = NULL;
    bool blocked = lock_pass_on(&loop->changes, &signals);
    while (dropped) {
        struct state_value *value = dropped;
        dropped = value->next;
        state_value_drop(value);
    }
    if (blocked) lock_let_signals(signals);
    return result;
}

/* Returns a structure for a new loop, or NULL if there is no memory. The caller holds the registry's lock. */
static struct state_loop *unused_loop(void) {
    for (struct state_loop *loop = loops; loop; loop = loop->next)
        if (!loop->number) return loop;
    struct state_loop *loop = arena_take(sizeof *loop);
    if (loop) loop->next = loops, loops = loop;
    return loop;
}

static bool is_taken(const char *name) {
    for (const struct state_loop *loop = loops; loop; loop = loop->next)
        if (loop->number && !strcmp(loop->name, name)) return true;
    return false;
}

/* Whether another loop has this loop's folder. Two loops of one process cannot both lock a folder, because the process
 * would lose the lock as soon as it closes the descriptor of either loop. */
bool state_loop_has_folder(const struct state_loop *self) {
    for (const struct state_loop *loop = loops; loop; loop = loop->next)
        if (loop != self && loop->number && state_files_are_same(&loop->files, &self->files)) return true;
    return false;
}

bool state_loop_is_replaced(struct state_loop *loop, const struct state_value *value) {
    return *state_value_find(&loop->put, value->id) != NULL;
}

int state_loop_reserve(const char *name, const struct memstow_state_options *options, struct state_loop **out) {
    lock_hold(&state_registry);
    struct state_loop *loop = is_taken(name) ? NULL : unused_loop();
    int error = loop ? 0 : is_taken(name) ? -EEXIST : -ENOMEM;
    if (!error) {
        loop->in_file = options->in_file;
        loop->ram_limit = options->ram_limit;
        loop->generation = loop->promised = 0;
        loop->begun = false;
        strcpy(loop->name, name);
        strcpy(loop->directory, options->directory ? options->directory : "");
        __atomic_store_n(&loop->number, ++last_number, __ATOMIC_RELEASE);
        *out = loop;
    }
    lock_let_go(&state_registry);
    /* The loop is locked only now, after the registry is unlocked: of two locks, the one that was taken last must be
     * released first. */
    if (!error) lock_hold(&loop->changes);
    return error;
}

/* Takes all values out of a loop and retires their owners. The caller holds the loop's lock. */
static void empty_loop(struct state_loop *loop) {
    lock_hold(&state_registry);
    struct state_value *lists[] = {loop->put, loop->committed};
    loop->put = loop->committed = NULL;
    loop->begun = false;
    lock_let_go(&state_registry);
    for (int i = 0; i < 2; i++)
        while (lists[i]) {
            struct state_value *value = lists[i];
            lists[i] = value->next;
            owners_retire(value->owner);
            state_loop_drop_later(loop, value);
        }
}

void state_loop_free(struct state_loop *loop, bool keep) {
    empty_loop(loop);
    state_files_close(&loop->files, !keep);
    __atomic_store_n(&loop->number, 0, __ATOMIC_RELEASE);
    state_loop_end_change(loop, 0);
}

struct state_value *state_loop_each(state_loop_look *look, void *context) {
    for (struct state_loop *loop = loops; loop; loop = loop->next) {
        struct state_value *const lists[] = {loop->put, loop->committed};
        for (int i = 0; i < 2; i++)
            for (struct state_value *value = lists[i]; value; value = value->next)
                if (!look(value, context)) return value;
    }
    return NULL;
}

static bool forget_value(struct state_value *value, void *context) {
    (void)context;
    state_bytes_drop(&value->data);
    return true;
}

static void state_loop_abandon(void) {
    state_loop_each(forget_value, NULL);
    for (struct state_loop *loop = loops; loop; loop = loop->next) {
        loop->changes = (struct lock){0};
        loop->number = 0;
        loop->put = loop->committed = loop->dropped = NULL;
        state_files_forget(&loop->files);
    }
}
FORKED(state_loop_abandon);
