/* state_saved.c — see state_saved.h. If one value cannot be read, the caller gets an error, and frees the loop. */
#include "preload/state/state_saved.h"

#include <errno.h>
#include <string.h>

#include "preload/shared/os.h"
#include "preload/state/state_owner.h"

static int read_value(struct state_loop *loop, const struct state_entry *entry, struct caller caller) {
    struct state_value *value = state_value_new();
    if (!value) return -ENOMEM;
    strcpy(value->id, entry->id);
    value->generation = entry->generation;
    value->linked = true;
    int fd = state_files_value(&loop->files, entry);
    int error = fd < 0 ? fd : state_bytes_from_file(&value->data, fd, entry->length, entry->checksum);
    /* The owner is made last: if an earlier step fails, no owner is left without a value. */
    int64_t owner = error ? error : state_owner_open(loop, value->id);
    if (owner < 0) {
        state_value_drop(value);
        return (int)owner;
    }
    const struct state_header *header = (const struct state_header *)value->data.base;
    value->owner = (uint32_t)owner;
    value->parts = header->parts;
    for (uint32_t i = 0; i < header->parts; i++) value->bytes += header->part[i].length;
    strcpy(value->type, header->type);
    state_value_count(value, caller);
    lock_hold(&state_registry);
    value->next = loop->committed;
    loop->committed = value;
    lock_let_go(&state_registry);
    state_owner_note_stowed(value->owner);
    return 0;
}

static int read_values(struct state_loop *loop, struct caller caller) {
    struct state_manifest *manifest;
    uint64_t length;
    int error = state_files_read(&loop->files, &manifest, &length);
    if (error || !manifest) return error;
    for (uint32_t i = 0; i < manifest->count && !error; i++) {
        const struct state_entry *entry = &manifest->entries[i];
        bool twice = *state_value_find(&loop->committed, entry->id) != NULL;
        error = twice ? -EUCLEAN : read_value(loop, entry, caller);
    }
    loop->generation = manifest->generation;
    os_unmap(manifest, length);
    return error;
}

int state_saved_open(struct state_loop *loop, const char *prefix, struct caller caller) {
    strcpy(loop->prefix, prefix);
    int error = state_files_open(&loop->files, loop->directory, loop->prefix);
    if (error) return error;
    lock_hold(&state_registry);
    bool taken = state_loop_has_folder(loop);
    lock_let_go(&state_registry);
    error = taken ? -EBUSY : state_files_lock(&loop->files);
    return error ? error : read_values(loop, caller);
}
