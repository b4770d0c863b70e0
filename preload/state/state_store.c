/* state_store.c — see state_store.h. There are two kinds of lock. The registry is locked while lists are looked at. A
 * loop is locked while it is changed, even on a disk. A loop is locked before the registry. */
#include "preload/state/state_store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "preload/base/arena.h"
#include "preload/ledger/ledger.h"
#include "preload/base/lock.h"
#include "preload/blocks/mappings.h"
#include "preload/shared/os.h"
#include "preload/owners/owned.h"
#include "preload/owners/owners.h"
#include "preload/count/site.h"
#include "preload/state/state_files.h"
#include "preload/base/forked.h"

struct value {
    struct value *next; /* in the loop's list, or in the list of unused values */
    uint32_t holders;   /* the list has one, and so has a thread that moves the value */
    uint32_t owner;
    bool moving, linked; /* linked: the file has a name */
    uint64_t generation, bytes;
    char id[MEMSTOW_STATE_ID + 8], type[MEMSTOW_STATE_TYPE];
    uint32_t parts;
    struct state_bytes data;
};

struct loop {
    struct loop *next;
    struct lock changes;
    int64_t number; /* 0: unused */
    bool begun, in_file;
    uint64_t generation, ram_limit;
    struct value *committed, *put; /* put: in the present iteration */
    struct state_files files;
    char name[STATE_LOOP_SIZE], directory[STATE_PATH_SIZE], prefix[STATE_PATH_SIZE];
};

static struct lock registry;
static struct loop *loops; /* used and unused ones */
static struct value *unused;
static int64_t last_number;

/* Takes a lock for work that must be finished. */
static void hold(struct lock *lock) {
    while (!lock_wait(lock))
        ;
}

static void hold_registry(void) { hold(&registry); }

/* --- values --- */

static struct value *new_value(void) {
    enum { SLAB = 16 };
    struct value *value = NULL;
    if (!lock_wait(&registry)) return NULL;
    struct value *slab = unused ? NULL : arena_take(SLAB * sizeof *slab);
    for (int i = 0; slab && i < SLAB; i++) slab[i].next = unused, unused = &slab[i];
    if (unused) {
        value = unused;
        unused = value->next;
        *value = (struct value){.holders = 1};
    }
    lock_let_go(&registry);
    return value;
}

static void count_value(const struct value *value, struct caller caller) {
    uint32_t site = site_of_call(caller), tagged = site;
    site_of_model(site, value->owner, &tagged);
    mappings_add((uintptr_t)value->data.base, value->data.length, SNAP_MAP_ANONYMOUS, false, tagged);
}

static uint64_t stowed_bytes(const struct value *value) {
    return value->data.place == MEMSTOW_STATE_MEMORY ? 0 : value->data.length;
}

static void uncount_value(struct value *value) {
    if (!value->data.base) return;
    uint32_t ticket = mappings_take((uintptr_t)value->data.base, value->data.length);
    state_bytes_drop(&value->data);
    mappings_drop(ticket);
}

/* Freeing memory takes long, so it is done without a lock. */
static void drop_value(struct value *value) {
    hold_registry();
    bool last = !--value->holders;
    lock_let_go(&registry);
    if (!last) return;
    uncount_value(value);
    hold_registry();
    value->next = unused;
    unused = value;
    lock_let_go(&registry);
}

static void describe(const struct value *value, struct memstow_state_value *out) {
    *out = (struct memstow_state_value){.owner = value->owner,
                                        .place = value->data.place,
                                        .parts = value->parts,
                                        .generation = value->generation,
                                        .bytes = value->bytes,
                                        .held_bytes = value->data.length};
    strcpy(out->id, value->id);
    strcpy(out->type, value->type);
}

/* --- lists --- */

static struct value **find_in(struct value **list, const char *id) {
    while (*list && strcmp((*list)->id, id) != 0) list = &(*list)->next;
    return list;
}

static struct value *take_from(struct value **list, const char *id) {
    struct value **at = find_in(list, id), *value = *at;
    if (value) *at = value->next;
    return value;
}

static uint64_t bytes_in_memory(const struct value *list) {
    uint64_t sum = 0;
    for (; list; list = list->next)
        if (list->data.place == MEMSTOW_STATE_MEMORY) sum += list->data.length;
    return sum;
}

/* --- owners --- */

static uint64_t hash_of(const char *text) {
    uint64_t hash = 0xCBF29CE484222325u;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001B3u;
    return hash;
}

static int64_t owner_of(const struct loop *loop, const char *id) {
    char name[sizeof "state:/" + STATE_LOOP_SIZE + MEMSTOW_STATE_ID];
    strcpy(name, "state:");
    strcat(name, loop->name);
    strcat(name, "/");
    strcat(name, id);
    int64_t owner = owners_open(MEMSTOW_STATE, name, "store", (const uint64_t[2]){(uint64_t)loop->number, hash_of(id)});
    if (owner > 0) owners_idle((uint32_t)owner, true); /* nobody ever writes to it */
    return owner;
}

static uint64_t stowed_of(uint32_t owner);

static void note_stowed(uint32_t owner) { owner_note_stowed(owner, stowed_of(owner), 0); }

/* --- loops --- */

/* The caller holds the registry. */
static struct loop *known(int64_t number) {
    for (struct loop *loop = loops; loop; loop = loop->next)
        if (number && loop->number == number) return loop;
    return NULL;
}

/* 0: the caller has the loop's lock. -errno: it does not. */
static int begin_change(int64_t number, struct loop **out) {
    if (!lock_wait(&registry)) return -EBUSY;
    struct loop *loop = *out = known(number);
    lock_let_go(&registry);
    if (!loop) return -ENOENT;
    if (!lock_wait(&loop->changes)) return -EBUSY;
    if (__atomic_load_n(&loop->number, __ATOMIC_ACQUIRE) == number) return 0;
    lock_let_go(&loop->changes);
    return -ENOENT;
}

static int64_t end_change(struct loop *loop, int64_t result) {
    lock_let_go(&loop->changes);
    return result;
}

/* The caller holds the registry. */
static struct loop *unused_loop(void) {
    for (struct loop *loop = loops; loop; loop = loop->next)
        if (!loop->number) return loop;
    struct loop *loop = arena_take(sizeof *loop);
    if (loop) loop->next = loops, loops = loop;
    return loop;
}

static bool is_taken(const char *name) {
    for (const struct loop *loop = loops; loop; loop = loop->next)
        if (loop->number && !strcmp(loop->name, name)) return true;
    return false;
}

/* The caller holds the registry, so that two loops with one folder find each other. Two descriptors are not possible:
 * closing the second would release the lock. */
static bool has_folder(const struct loop *self) {
    for (const struct loop *loop = loops; loop; loop = loop->next)
        if (loop != self && loop->number && state_files_are_same(&loop->files, &self->files)) return true;
    return false;
}

static int reserve_loop(const char *name, const struct memstow_state_options *options, struct loop **out) {
    if (!lock_wait(&registry)) return -EBUSY;
    struct loop *loop = is_taken(name) ? NULL : unused_loop();
    int error = loop ? 0 : is_taken(name) ? -EEXIST : -ENOMEM;
    if (!error) {
        loop->in_file = options->in_file;
        loop->ram_limit = options->ram_limit;
        loop->generation = 0;
        loop->begun = false;
        strcpy(loop->name, name);
        strcpy(loop->directory, options->directory ? options->directory : "");
        __atomic_store_n(&loop->number, ++last_number, __ATOMIC_RELEASE);
        *out = loop;
    }
    lock_let_go(&registry);
    if (!error) hold(&loop->changes); /* only now: signals are unblocked in the order of the locks */
    return error;
}

/* Drops all values of a loop and retires their owners. The caller holds the loop's lock. */
static void empty_loop(struct loop *loop) {
    hold_registry();
    struct value *lists[] = {loop->put, loop->committed};
    loop->put = loop->committed = NULL;
    loop->begun = false;
    lock_let_go(&registry);
    for (int i = 0; i < 2; i++)
        while (lists[i]) {
            struct value *value = lists[i];
            lists[i] = value->next;
            uint32_t owner = value->owner;
            drop_value(value);
            owners_retire(owner);
        }
}

static void free_loop(struct loop *loop, bool keep) {
    empty_loop(loop);
    state_files_close(&loop->files, !keep);
    __atomic_store_n(&loop->number, 0, __ATOMIC_RELEASE);
    lock_let_go(&loop->changes);
}

/* --- what an earlier process left --- */

static int read_value(struct loop *loop, const struct state_entry *entry, struct caller caller) {
    struct value *value = new_value();
    if (!value) return -ENOMEM;
    strcpy(value->id, entry->id);
    value->generation = entry->generation;
    value->linked = true;
    int fd = state_files_value(&loop->files, entry);
    int error = fd < 0 ? fd : state_bytes_from_file(&value->data, fd, entry->length, entry->checksum);
    int64_t owner = error ? error : owner_of(loop, value->id); /* last, so that no owner is left without a value */
    if (owner < 0) {
        drop_value(value);
        return (int)owner;
    }
    const struct state_header *header = (const struct state_header *)value->data.base;
    value->owner = (uint32_t)owner;
    value->parts = header->parts;
    for (uint32_t i = 0; i < header->parts; i++) value->bytes += header->part[i].length;
    strcpy(value->type, header->type);
    count_value(value, caller);
    hold_registry();
    value->next = loop->committed;
    loop->committed = value;
    lock_let_go(&registry);
    note_stowed(value->owner);
    return 0;
}

static int read_values(struct loop *loop, struct caller caller) {
    struct state_manifest *manifest;
    uint64_t length;
    int error = state_files_read(&loop->files, &manifest, &length);
    if (error || !manifest) return error;
    for (uint32_t i = 0; i < manifest->count && !error; i++) error = read_value(loop, &manifest->entries[i], caller);
    loop->generation = manifest->generation;
    os_unmap(manifest, length);
    return error;
}

static int open_files(struct loop *loop, const char *prefix, struct caller caller) {
    strcpy(loop->prefix, prefix);
    int error = state_files_open(&loop->files, loop->directory, loop->prefix);
    if (error) return error;
    hold_registry();
    bool taken = has_folder(loop);
    lock_let_go(&registry);
    if (!error) error = taken ? -EBUSY : state_files_lock(&loop->files);
    return error ? error : read_values(loop, caller);
}

/* --- iterations --- */

int64_t state_begin(int64_t number) {
    struct loop *loop;
    int error = begin_change(number, &loop);
    if (error) return error;
    if (loop->begun) return end_change(loop, -EBUSY);
    loop->begun = true;
    return end_change(loop, (int64_t)loop->generation + 1);
}

int64_t state_generation(int64_t number) {
    struct loop *loop;
    int error = begin_change(number, &loop);
    return error ? error : end_change(loop, (int64_t)loop->generation);
}

/* The caller holds the loop's lock. */
static void abandon_iteration(struct loop *loop) {
    hold_registry();
    struct value *dropped = loop->put;
    loop->put = NULL;
    loop->begun = false;
    lock_let_go(&registry);
    while (dropped) {
        struct value *value = dropped;
        uint32_t owner = value->owner;
        bool stays = *find_in(&loop->committed, value->id);
        dropped = value->next;
        drop_value(value);
        note_stowed(owner);
        if (!stays) owners_retire(owner);
    }
}

int state_abandon_iteration(int64_t number) {
    struct loop *loop;
    int error = begin_change(number, &loop);
    if (error) return error;
    abandon_iteration(loop);
    return (int)end_change(loop, 0);
}

/* --- put --- */

struct wish {
    uint64_t generation;
    bool in_file;
    struct stow_file folder; /* a descriptor of its own; -1: there is no prefix */
    char directory[STATE_PATH_SIZE];
};

/* While bytes are written, the loop may be closed, and another loop may take its entry. So nothing of the loop is used
 * then. */
static int copy_folder(const struct loop *loop, struct wish *wish) {
    wish->folder = (struct stow_file){.fd = -1};
    strcpy(wish->directory, loop->directory);
    if (!loop->files.name[0]) return 0;
    if (!stow_file_is_still(&loop->files.folder)) return -EIO;
    wish->folder = loop->files.folder;
    wish->folder.fd = (int)os_call(SYS_fcntl, wish->folder.fd, F_DUPFD_CLOEXEC, 0);
    return wish->folder.fd < 0 ? wish->folder.fd : 0;
}

static int make_wish(struct loop *loop, uint64_t length, struct wish *wish) {
    if (!loop->begun) return -EPERM;
    uint64_t held = bytes_in_memory(loop->committed) + bytes_in_memory(loop->put);
    wish->generation = loop->generation + 1;
    wish->in_file = loop->in_file || (loop->ram_limit && held + length > loop->ram_limit);
    return copy_folder(loop, wish);
}

static int fill(struct value *value, const struct state_source *source, const struct wish *wish) {
    const char *directory = wish->directory[0] ? wish->directory : NULL;
    if (wish->folder.fd >= 0) return state_bytes_in_folder(&value->data, source, wish->folder.fd);
    if (wish->in_file) return state_bytes_in_file(&value->data, source, directory);
    return state_bytes_in_memory(&value->data, source);
}

/* The caller holds the loop's lock. The owner comes last, under the lock: no owner is left without a value, and no
 * owner is retired while another thread's value has it. */
static int64_t enter(struct loop *loop, struct value *value, struct caller caller) {
    if (!loop->begun || loop->generation + 1 != value->generation) return -ECANCELED;
    int64_t owner = owner_of(loop, value->id);
    if (owner < 0) return owner;
    value->owner = (uint32_t)owner;
    count_value(value, caller);
    hold_registry();
    struct value *before = take_from(&loop->put, value->id);
    value->next = loop->put;
    loop->put = value;
    lock_let_go(&registry);
    if (before) drop_value(before);
    return owner;
}

static int64_t put(int64_t number, struct value *value, const struct state_source *source, struct caller caller) {
    struct loop *loop;
    struct wish wish;
    int error = begin_change(number, &loop);
    if (error) return error;
    error = make_wish(loop, source->header->length, &wish);
    lock_let_go(&loop->changes);
    if (error) return error;
    value->generation = wish.generation;
    error = fill(value, source, &wish);
    stow_file_close(&wish.folder);
    if (!error) error = begin_change(number, &loop);
    return error ? error : end_change(loop, enter(loop, value, caller));
}

int64_t state_put(int64_t number, const char *id, const struct state_source *source, struct caller caller) {
    uint64_t signals;
    struct value *value = new_value();
    if (!value) return -ENOMEM;
    strcpy(value->id, id);
    strcpy(value->type, source->header->type);
    value->parts = source->header->parts;
    for (uint32_t i = 0; i < value->parts; i++) value->bytes += source->header->part[i].length;
    if (!lock_out_signals(&signals)) {
        drop_value(value);
        return -EPERM;
    }
    int64_t owner = put(number, value, source, caller); /* the value may be gone by now */
    if (owner < 0)
        drop_value(value);
    else
        note_stowed((uint32_t)owner);
    lock_let_signals(signals);
    return owner;
}

/* --- commit --- */

static void entry_of(const struct value *value, struct state_entry *entry) {
    *entry = (struct state_entry){
        .generation = value->generation, .length = value->data.length, .checksum = value->data.checksum};
    strcpy(entry->id, value->id);
}

static int link_values(struct loop *loop) {
    int error = 0;
    for (struct value *value = loop->put; value && !error; value = value->next) {
        struct state_entry entry;
        entry_of(value, &entry);
        error = state_files_link(&loop->files, &value->data.file, &entry);
        value->linked = !error;
    }
    return error;
}

static void unlink_values(const struct loop *loop, const struct value *list) {
    for (; list; list = list->next) {
        struct state_entry entry;
        entry_of(list, &entry);
        if (list->linked) state_files_remove(&loop->files, &entry);
    }
}

static bool is_replaced(struct loop *loop, const struct value *value) {
    return *find_in(&loop->put, value->id) != NULL;
}

/* Writes the manifest of the loop after a commit. `gone` (may be NULL) is left out. */
static int write_manifest(struct loop *loop, uint64_t generation, const char *gone) {
    uint64_t count = 0;
    for (const struct value *value = loop->committed; value; value = value->next) count++;
    for (const struct value *value = loop->put; value; value = value->next) count++;
    uint64_t bytes = os_round_up(sizeof(struct state_manifest) + count * sizeof(struct state_entry), OS_PAGE);
    struct state_manifest *manifest = os_map(bytes);
    if (!manifest) return -ENOMEM;
    manifest->generation = generation;
    bool commits = generation > loop->generation;
    for (const struct value *value = loop->put; value && commits; value = value->next)
        entry_of(value, &manifest->entries[manifest->count++]);
    for (const struct value *value = loop->committed; value; value = value->next)
        if (!(commits && is_replaced(loop, value)) && !(gone && !strcmp(gone, value->id)))
            entry_of(value, &manifest->entries[manifest->count++]);
    int error = state_files_write(&loop->files, manifest);
    os_unmap(manifest, bytes);
    return error;
}

static int commit_files(struct loop *loop) {
    if (!loop->files.name[0]) return 0;
    int error = link_values(loop);
    if (!error) error = write_manifest(loop, loop->generation + 1, NULL);
    if (error) {
        unlink_values(loop, loop->put);
        for (struct value *value = loop->put; value; value = value->next) value->linked = false;
    }
    return error;
}

/* Replaces the committed values by the new ones. Returns the old ones, which nobody can find any more. */
static struct value *replace(struct loop *loop) {
    struct value *old = NULL;
    hold_registry();
    while (loop->put) {
        struct value *value = loop->put, *before = take_from(&loop->committed, value->id);
        loop->put = value->next;
        value->next = loop->committed;
        loop->committed = value;
        if (before) before->next = old, old = before;
    }
    loop->generation++;
    loop->begun = false;
    lock_let_go(&registry);
    return old;
}

static int64_t commit(struct loop *loop) {
    int error = loop->begun ? commit_files(loop) : -EPERM;
    if (error) return error;
    struct value *old = replace(loop);
    if (loop->files.name[0]) unlink_values(loop, old);
    while (old) {
        struct value *value = old;
        uint32_t owner = value->owner;
        old = value->next;
        drop_value(value);
        note_stowed(owner);
    }
    return (int64_t)loop->generation;
}

int64_t state_commit(int64_t number) {
    struct loop *loop;
    int error = begin_change(number, &loop);
    return error ? error : end_change(loop, commit(loop));
}

static int release(struct loop *loop, const char *id) {
    hold_registry();
    bool committed = *find_in(&loop->committed, id) != NULL;
    bool any = committed || *find_in(&loop->put, id);
    lock_let_go(&registry);
    if (!any) return -ENOENT;
    int error = committed && loop->files.name[0] ? write_manifest(loop, loop->generation, id) : 0;
    if (error) return error;
    hold_registry();
    struct value *values[] = {take_from(&loop->put, id), take_from(&loop->committed, id)};
    lock_let_go(&registry);
    uint32_t owner = (values[0] ? values[0] : values[1])->owner;
    for (int i = 0; i < 2; i++) {
        if (!values[i]) continue;
        values[i]->next = NULL;
        unlink_values(loop, values[i]);
        drop_value(values[i]);
    }
    note_stowed(owner);
    owners_retire(owner);
    return 0;
}

int state_release(int64_t number, const char *id) {
    struct loop *loop;
    int error = begin_change(number, &loop);
    return error ? error : (int)end_change(loop, release(loop, id));
}

/* --- readers --- */

static int view(struct value *value, struct memstow_state_value *out) {
    describe(value, out);
    if (stow_file_is_still(&value->data.file) && !state_bytes_are_whole(&value->data)) return -EIO;
    const struct state_header *header = state_bytes_view(&value->data);
    if (!header) return stow_file_is_still(&value->data.file) ? -ENOMEM : -EIO;
    out->view = (void *)header;
    out->view_length = value->data.length;
    out->part = header->part;
    return 0;
}

int state_get(int64_t number, const char *id, struct memstow_state_value *out) {
    if (!lock_wait(&registry)) return -EBUSY;
    struct loop *loop = known(number);
    struct value *value = loop ? *find_in(&loop->put, id) : NULL;
    if (loop && !value) value = *find_in(&loop->committed, id);
    int error = value ? view(value, out) : -ENOENT;
    lock_let_go(&registry);
    return error;
}

int64_t state_list(int64_t number, bool (*visit)(const struct memstow_state_value *value, void *context),
                   void *context) {
    struct memstow_state_value out;
    int64_t count = 0;
    bool on = true;
    if (!lock_wait(&registry)) return -EBUSY;
    struct loop *loop = known(number);
    for (const struct value *value = loop ? loop->put : NULL; value && on; value = value->next, count++) {
        describe(value, &out);
        on = visit(&out, context);
    }
    for (const struct value *value = loop ? loop->committed : NULL; value && on; value = value->next) {
        if (is_replaced(loop, value)) continue;
        describe(value, &out);
        on = visit(&out, context);
        count++;
    }
    lock_let_go(&registry);
    return loop ? count : -ENOENT;
}

/* --- what owners have --- */

typedef bool look_at(struct value *value, void *context);

/* The caller holds the registry. Returns the value at which `look` returned true. */
static struct value *each(look_at *look, void *context) {
    for (struct loop *loop = loops; loop; loop = loop->next) {
        struct value *const lists[] = {loop->put, loop->committed};
        for (int i = 0; i < 2; i++)
            for (struct value *value = lists[i]; value; value = value->next)
                if (!look(value, context)) return value;
    }
    return NULL;
}

struct visitor {
    void (*visit)(uint32_t owner, uint64_t bytes, bool in_file, void *context);
    void *context;
};

static bool tell(struct value *value, void *context) {
    const struct visitor *self = context;
    self->visit(value->owner, value->data.length, stowed_bytes(value) != 0, self->context);
    return true;
}

static void visit_all(void (*visit)(uint32_t owner, uint64_t bytes, bool in_file, void *context), void *context) {
    struct visitor visitor = {visit, context};
    if (!loops || !lock_wait(&registry)) return;
    each(tell, &visitor);
    lock_let_go(&registry);
}

struct stowed {
    uint32_t owner;
    uint64_t bytes;
};

static void add_stowed(uint32_t owner, uint64_t bytes, bool in_file, void *context) {
    struct stowed *self = context;
    if (owner == self->owner && in_file) self->bytes += bytes;
}

static uint64_t stowed_of(uint32_t owner) {
    struct stowed stowed = {.owner = owner};
    visit_all(add_stowed, &stowed);
    return stowed.bytes;
}

/* --- moves --- */

struct move {
    uint32_t owner, from, to;
    int64_t moved, error;
};

static bool is_not_to_move(struct value *value, void *context) {
    const struct move *self = context;
    return value->owner != self->owner || value->data.place != self->from || value->moving;
}

static struct value *next_to_move(const struct move *self) {
    if (!lock_wait(&registry)) return NULL;
    struct value *value = each(is_not_to_move, (void *)self);
    if (value) value->holders++, value->moving = true;
    lock_let_go(&registry);
    return value;
}

/* Readers get the old bytes or the new ones, which are equal. */
static bool move_value(struct move *self, struct value *value) {
    struct state_bytes copy;
    int error = state_bytes_copy(&copy, &value->data, self->to);
    hold_registry();
    if (!error) error = state_bytes_replace(&value->data, &copy) ? 0 : -ENOMEM;
    if (!error) self->moved += (int64_t)value->data.length;
    value->moving = false;
    lock_let_go(&registry);
    drop_value(value);
    self->error = error;
    return !error;
}

static int64_t move_owner(uint32_t owner, bool out, struct move_end end) {
    struct move move = {.owner = owner};
    uint64_t signals;
    struct value *value;
    move.from = out ? MEMSTOW_STATE_MEMORY : MEMSTOW_STATE_STOWED;
    move.to = out ? MEMSTOW_STATE_STOWED : MEMSTOW_STATE_MEMORY;
    if (!lock_out_signals(&signals)) return -EPERM;
    while (!move_is_ended(end) && (value = next_to_move(&move)) && move_value(&move, value))
        ;
    lock_let_signals(signals);
    return move.moved ? move.moved : move.error;
}

/* --- open and close --- */

int64_t state_open(const char *name, const struct memstow_state_options *options, struct caller caller) {
    static const struct owned_store store = {visit_all, stowed_of, move_owner};
    struct loop *loop;
    int error = reserve_loop(name, options, &loop);
    if (error) return error;
    owned_store = &store;
    if (options->prefix) error = open_files(loop, options->prefix, caller);
    int64_t number = loop->number;
    if (error)
        free_loop(loop, true);
    else
        lock_let_go(&loop->changes);
    return error ? error : number;
}

int state_close(int64_t number, bool keep) {
    struct loop *loop;
    int error = begin_change(number, &loop);
    if (!error) free_loop(loop, keep);
    return error;
}

/* --- fork --- */

static bool forget_value(struct value *value, void *context) {
    (void)context;
    state_bytes_drop(&value->data);
    return true;
}

static void state_abandon(void) {
    registry = (struct lock){0};
    each(forget_value, NULL);
    for (struct loop *loop = loops; loop; loop = loop->next) {
        loop->changes = (struct lock){0};
        loop->number = 0;
        loop->put = loop->committed = NULL;
        state_files_forget(&loop->files);
    }
}
FORKED(state_abandon);
