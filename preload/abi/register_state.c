/* register_state.c — the entry points of memstow.h for values that live on from run to run.
 * In: the program's calls, with any argument. Out: the same calls to state_store.c, with checked arguments. No hook may
 * call these entry points. A call that fails makes no loop and no value. */
#include "include/memstow.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "preload/abi/entry.h"
#include "preload/ledger/ledger.h"
#include "preload/shared/os.h"
#include "preload/life/process.h"
#include "preload/abi/register.h"
#include "preload/state/state_store.h"
#include "preload/base/seal.h"

enum { LEAST = offsetof(struct memstow_state_value, view) };

static int64_t not_there(void) {
    return entry_fails(-ENODEV, process_tracked() ? "the process is in a sandbox" : "the process keeps no ledger");
}

static bool register_state_is_there(void) { return process_tracked() && !seal_is_set(); }

struct reason {
    int64_t code;
    const char *why;
};

/* Returns `result`. If it is in the table `reasons`, notes its reason from there; otherwise `other` notes the
 * reason. */
static int64_t register_state_noted(int64_t result, const struct reason *reasons, size_t count,
                                    int64_t (*other)(int64_t result)) {
    for (size_t i = 0; i < count; i++)
        if (reasons[i].code == result) return entry_fails(result, reasons[i].why);
    return other(result);
}

static int64_t result_of(int64_t result) {
    static const struct reason known[] = {
        {-ENOENT, "no such loop, or no value of that id"},
        {-EPERM, "no iteration has begun"},
        {-ECANCELED, "the iteration ended meanwhile"},
        {-ENOSPC, "the disk is full"},
        {-EFBIG, "the value is larger than RLIMIT_FSIZE allows (the limit holds for values in memory, too)"},
        {-EIO, "the disk answered with an error, or the program has closed a descriptor of the store"},
        {-E2BIG, "the loop has too many values for a prefix: they fill a manifest of 256 MiB"},
        {-EMFILE, "the process has too many descriptors: each value takes one"},
        {-ENOTSUP,
         "the directory cannot be used: it does not exist, is not writable, is in memory, on FUSE or on a network"},
        {-EFAULT, "the value cannot be read"},
    };
    return register_state_noted(result, known, sizeof known / sizeof *known, entry_result);
}

static int64_t register_state_begun(int64_t result) {
    return result == -EBUSY ? entry_fails(result, "the last iteration has not ended") : result_of(result);
}

static int64_t register_state_opened(int64_t result) {
    static const struct reason known[] = {
        {-EEXIST, "a loop of that name is open"},
        {-EBUSY, "another loop has the prefix, here or in another process"},
        {-EPERM, "files below the prefix belong to another user, or other users can write to them"},
        {-EINVAL, "the prefix leads out of the directory, or is not a name"},
        {-ELOOP, "the prefix contains a link, or a file below it is a link"},
        {-ENOTDIR, "the prefix or the directory is not a folder"},
        {-ENOENT, "there is no such directory"},
        {-EUCLEAN, "a file below the prefix is damaged"},
        {-EACCES, "files below the directory may not be made, or may not be read"},
        {-ENOTSUP, "the directory is in memory, on FUSE or on a network"},
    };
    return register_state_noted(result, known, sizeof known / sizeof *known, result_of);
}

/* Returns the result of a call. If the call may have opened the process's first owner, starts what owners need. */
static int64_t with_owners(int64_t result) { return result > 0 ? register_opened(result) : result; }

/* --- texts that the program passes --- */

/* Copies a text. Returns 0, or an error with its reason: `unreadable`, or `unfit` if the text is empty or does not
 * fit. */
static int64_t register_state_text(char *to, size_t capacity, const char *from, const char *unreadable,
                                   const char *unfit) {
    if (!entry_text(to, capacity, from)) return entry_fails(-EFAULT, unreadable);
    return to[0] && strlen(to) < capacity - 1 ? 0 : entry_fails(-EINVAL, unfit);
}

static int64_t id_text(char to[MEMSTOW_STATE_ID + 2], const char *id) {
    return register_state_text(to, MEMSTOW_STATE_ID + 2, id, "the id cannot be read", "an id has 1 to 200 bytes");
}

/* --- loops: opened and closed, their iterations --- */

struct paths {
    char prefix[STATE_PATH_SIZE], directory[STATE_PATH_SIZE];
};

static int64_t read_paths(struct paths *paths, struct memstow_state_options *options) {
    int64_t error = 0;
    if (options->prefix)
        error = register_state_text(paths->prefix, STATE_PATH_SIZE, options->prefix, "the prefix cannot be read",
                                    "a prefix is not empty, and not longer than a path");
    if (!error && options->directory)
        error =
            register_state_text(paths->directory, STATE_PATH_SIZE, options->directory, "the directory cannot be read",
                                "a directory is not empty, and not longer than a path");
    if (!error && options->prefix && !options->directory)
        error = entry_fails(-EINVAL, "a prefix needs a directory to be in");
    if (options->prefix) options->prefix = paths->prefix;
    if (options->directory) options->directory = paths->directory;
    return error;
}

static int64_t read_options(struct memstow_state_options *options, const struct memstow_state_options *given) {
    if (!given) return 0;
    int64_t size = entry_size(given, sizeof *options, sizeof *options);
    if (size < 0) return size;
    if (!entry_in(options, given, (size_t)size)) return entry_fails(-EFAULT, "the options cannot be read");
    return options->in_file > 1 ? entry_fails(-EINVAL, "in_file is 0 or 1") : 0;
}

EXPORTED int64_t memstow_state_open(const char *loop, const struct memstow_state_options *options) {
    char name[STATE_LOOP_SIZE];
    struct paths paths;
    struct memstow_state_options wish = {0};
    if (!register_state_is_there()) return not_there();
    int64_t error = register_state_text(name, sizeof name, loop, "the loop's name cannot be read",
                                        "a loop's name has 1 to 126 bytes");
    if (!error) error = read_options(&wish, options);
    if (!error) error = read_paths(&paths, &wish);
    return error ? error : with_owners(register_state_opened(state_open(name, &wish, CALLER)));
}

EXPORTED int32_t memstow_state_close(int64_t state, uint32_t keep) {
    if (!register_state_is_there()) return (int32_t)not_there();
    if (keep > 1) return (int32_t)entry_fails(-EINVAL, "keep is 0 or 1");
    return (int32_t)result_of(state_close(state, keep));
}

EXPORTED int64_t memstow_state_begin(int64_t state) {
    return register_state_is_there() ? register_state_begun(state_begin(state)) : not_there();
}

EXPORTED int64_t memstow_state_commit(int64_t state) {
    return register_state_is_there() ? result_of(state_commit(state)) : not_there();
}

EXPORTED int32_t memstow_state_abandon(int64_t state) {
    return (int32_t)(register_state_is_there() ? result_of(state_abandon_iteration(state)) : not_there());
}

EXPORTED int64_t memstow_state_generation(int64_t state) {
    return register_state_is_there() ? result_of(state_generation(state)) : not_there();
}

/* --- values: put, got, listed, released --- */

struct tables {
    struct state_header *header;      /* the type of the value, and how long each part of it is */
    struct memstow_state_part *parts; /* a copy of the program's table, which says where each part lies */
    uint64_t length;                  /* bytes of the mapping that holds both tables */
};

static uint64_t header_bytes(uint32_t count) {
    return os_round_up(sizeof(struct state_header) + count * sizeof(struct memstow_state_part), OS_PAGE);
}

static void drop_tables(struct tables *self) { os_unmap(self->header, self->length); }

/* Copies the program's table of parts, because the program may change it meanwhile, and makes the value's header from
 * the copy. Returns 0, or an error whose reason is noted. */
static int64_t make_tables(struct tables *self, const char *type, const struct memstow_state_part *parts,
                           uint32_t count) {
    uint64_t bytes = count * sizeof *parts;
    *self = (struct tables){.length = header_bytes(count) + os_round_up(bytes, OS_PAGE)};
    self->header = os_map(self->length);
    if (!self->header) return entry_result(-ENOMEM);
    self->parts = (struct memstow_state_part *)((char *)self->header + header_bytes(count));
    self->header->parts = count;
    strcpy(self->header->type, type);
    if (!count || entry_in(self->parts, parts, bytes)) {
        for (uint32_t i = 0; i < count; i++) self->header->part[i].length = self->parts[i].length;
        if (state_header_lay_out(self->header)) return 0;
        drop_tables(self);
        return entry_fails(-EINVAL, "the parts are too long");
    }
    drop_tables(self);
    return entry_fails(-EFAULT, "the parts cannot be read");
}

EXPORTED int64_t memstow_state_put(int64_t state, const char *id, const char *type,
                                   const struct memstow_state_part *parts, uint32_t count) {
    char name[MEMSTOW_STATE_ID + 2], kind[MEMSTOW_STATE_TYPE + 1];
    struct tables tables;
    if (!register_state_is_there()) return not_there();
    int64_t error = id_text(name, id);
    if (error) return error;
    if (!entry_text(kind, sizeof kind, type)) return entry_fails(-EFAULT, "the type cannot be read");
    if (strlen(kind) >= MEMSTOW_STATE_TYPE) return entry_fails(-EINVAL, "a type has less than 64 bytes");
    if (count > MEMSTOW_STATE_PARTS) return entry_fails(-EINVAL, "a value has at most 1,048,576 parts");
    error = make_tables(&tables, kind, parts, count);
    if (error) return error;
    struct state_source source = {tables.header, tables.parts};
    int64_t result = state_put(state, name, &source, CALLER);
    drop_tables(&tables);
    return with_owners(result_of(result));
}

static int32_t register_state_get(int64_t state, const char *id, struct memstow_state_value *out,
                                  int get(int64_t number, const char *id, struct memstow_state_value *out)) {
    char name[MEMSTOW_STATE_ID + 2];
    struct memstow_state_value value;
    if (!register_state_is_there()) return (int32_t)not_there();
    int64_t size = entry_size(out, sizeof value, sizeof value), error = size < 0 ? size : id_text(name, id);
    if (!error) error = result_of(get(state, name, &value));
    if (error) return (int32_t)error;
    value.size = (uint32_t)size;
    if (entry_out(out, &value, (size_t)size)) return 0;
    os_unmap(value.view, value.view_length);
    return (int32_t)entry_fails(-EFAULT, "the value cannot be written there");
}

EXPORTED int32_t memstow_state_get(int64_t state, const char *id, struct memstow_state_value *out) {
    return register_state_get(state, id, out, state_get);
}

EXPORTED int32_t memstow_state_get_committed(int64_t state, const char *id, struct memstow_state_value *out) {
    return register_state_get(state, id, out, state_get_committed);
}

struct copying {
    char *to;
    uint32_t capacity, size, done;
    bool failed;
};

static bool copy_out(const struct memstow_state_value *value, void *context) {
    struct copying *self = context;
    struct memstow_state_value copy = *value;
    uint32_t part = self->size < sizeof copy ? self->size : sizeof copy;
    if (self->done >= self->capacity) return true;
    copy.size = part;
    self->failed = !entry_out(self->to + (uint64_t)self->done++ * self->size, &copy, part);
    return !self->failed;
}

EXPORTED int64_t memstow_state_list(int64_t state, struct memstow_state_value *out, uint32_t capacity, uint32_t size) {
    struct copying copying = {.to = (char *)out, .capacity = capacity, .size = size};
    if (!register_state_is_there()) return not_there();
    if (capacity && size < LEAST) return entry_fails(-EINVAL, "the structures are too small");
    int64_t count = state_list(state, copy_out, &copying);
    return copying.failed ? entry_fails(-EFAULT, "the values cannot be written there") : result_of(count);
}

EXPORTED int32_t memstow_state_release(int64_t state, const char *id) {
    char name[MEMSTOW_STATE_ID + 2];
    if (!register_state_is_there()) return (int32_t)not_there();
    int64_t error = id_text(name, id);
    return (int32_t)(error ? error : result_of(state_release(state, name)));
}
