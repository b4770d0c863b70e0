/* state_put.c — state_put (state_store.h): makes a new value of the present iteration.
 * In: pieces of the program's memory. Out: a value whose bytes are written before anybody can find it. */
#include "preload/state/state_store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/state/state_loop.h"
#include "preload/state/state_owner.h"

static uint64_t bytes_in_memory(const struct state_loop *loop) {
    const struct state_value *const lists[] = {loop->put, loop->committed};
    uint64_t sum = loop->promised;
    lock_hold(&state_registry); /* because a move of values changes their place */
    for (int i = 0; i < 2; i++)
        for (const struct state_value *value = lists[i]; value; value = value->next)
            if (value->data.place == MEMSTOW_STATE_MEMORY) sum += value->data.length;
    lock_let_go(&state_registry);
    return sum;
}

struct wish {
    uint64_t generation;
    uint64_t promised;       /* bytes that the value will take in memory; 0: the value goes to a file */
    struct stow_file folder; /* the loop's folder, with its own descriptor; descriptor -1: the loop has no prefix */
    char directory[STATE_PATH_SIZE];
};

/* Copies the loop's folder and directory. While the bytes of a value are written, the loop is not locked: it may be
 * closed, and another loop may get its structure. So the bytes are written without the loop. */
static int copy_folder(const struct state_loop *loop, struct wish *wish) {
    wish->folder = (struct stow_file){.fd = -1};
    strcpy(wish->directory, loop->directory);
    if (!loop->files.name[0]) return 0;
    if (!stow_file_is_still(&loop->files.folder)) return -EIO;
    wish->folder = loop->files.folder;
    wish->folder.fd = (int)os_call(SYS_fcntl, wish->folder.fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return wish->folder.fd < 0 ? wish->folder.fd : 0;
}

static int make_wish(struct state_loop *loop, uint64_t length, struct wish *wish) {
    if (!loop->begun) return -EPERM;
    bool in_file =
        loop->in_file || loop->files.name[0] || (loop->ram_limit && bytes_in_memory(loop) + length > loop->ram_limit);
    wish->generation = loop->generation + 1;
    wish->promised = in_file ? 0 : length;
    int error = copy_folder(loop, wish);
    if (!error) loop->promised += wish->promised;
    return error;
}

static int fill_value(struct state_value *value, const struct state_source *source, const struct wish *wish) {
    const char *directory = wish->directory[0] ? wish->directory : NULL;
    if (wish->folder.fd >= 0) return state_bytes_in_folder(&value->data, source, wish->folder.fd);
    if (wish->promised) return state_bytes_in_memory(&value->data, source);
    return state_bytes_in_file(&value->data, source, directory);
}

/* Enters a value into the present iteration, and returns its owner or -errno. The owner is made only here, after the
 * bytes are written, so that a failed put leaves no owner without a value. The caller holds the loop's lock. Without
 * it, another thread that drops the former value with this id could retire the owner before the new value is in the
 * list. */
static int64_t enter_value(struct state_loop *loop, struct state_value *value, struct caller caller) {
    if (!loop->begun || loop->generation + 1 != value->generation) return -ECANCELED;
    int64_t owner = state_owner_open(loop, value->id);
    if (owner < 0) return owner;
    value->owner = (uint32_t)owner;
    state_value_count(value, caller);
    lock_hold(&state_registry);
    struct state_value *before = state_value_take(&loop->put, value->id);
    value->next = loop->put;
    loop->put = value;
    lock_let_go(&state_registry);
    if (before) state_loop_drop_later(loop, before);
    return owner;
}

static int64_t put_value(int64_t number, struct state_value *value, const struct state_source *source,
                         struct caller caller) {
    struct state_loop *loop;
    struct wish wish;
    int error = state_loop_begin_change(number, &loop);
    if (error) return error;
    error = make_wish(loop, source->header->length, &wish);
    lock_let_go(&loop->changes);
    if (error) return error;
    value->generation = wish.generation;
    error = fill_value(value, source, &wish);
    stow_file_close(&wish.folder);
    int gone = state_loop_begin_change(number, &loop);
    if (gone) return error ? error : gone;
    loop->promised -= wish.promised;
    return state_loop_end_change(loop, error ? error : enter_value(loop, value, caller));
}

int64_t state_put(int64_t number, const char *id, const struct state_source *source, struct caller caller) {
    uint64_t signals;
    struct state_value *value = state_value_new();
    if (!value) return -ENOMEM;
    strcpy(value->id, id);
    strcpy(value->type, source->header->type);
    value->parts = source->header->parts;
    for (uint32_t i = 0; i < value->parts; i++) value->bytes += source->header->part[i].length;
    if (!lock_out_signals(&signals)) {
        state_value_drop(value);
        return -EPERM;
    }
    int64_t owner = put_value(number, value, source, caller); /* another thread may have dropped the value by now */
    if (owner < 0)
        state_value_drop(value);
    else
        state_owner_note_stowed((uint32_t)owner);
    lock_let_signals(signals);
    return owner;
}
