/* state_manifest.c — see state_manifest.h. If a commit fails, what it has done so far is undone. */
#include "preload/state/state_manifest.h"

#include <errno.h>
#include <string.h>

#include "preload/shared/os.h"

static void entry_of(const struct state_value *value, struct state_entry *entry) {
    *entry = (struct state_entry){
        .generation = value->generation, .length = value->data.length, .checksum = value->data.checksum};
    strcpy(entry->id, value->id);
}

static int link_values(struct state_loop *loop) {
    int error = 0;
    for (struct state_value *value = loop->put; value && !error; value = value->next) {
        struct state_entry entry;
        entry_of(value, &entry);
        error = state_files_link(&loop->files, &value->data.file, &entry);
        value->linked = !error;
    }
    return error;
}

void state_manifest_unlink(const struct state_loop *loop, const struct state_value *list) {
    for (; list; list = list->next) {
        struct state_entry entry;
        entry_of(list, &entry);
        if (list->linked) state_files_remove(&loop->files, &entry);
    }
}

int state_manifest_write(struct state_loop *loop, uint64_t generation, const char *gone) {
    uint64_t count = 0;
    for (const struct state_value *value = loop->committed; value; value = value->next) count++;
    for (const struct state_value *value = loop->put; value; value = value->next) count++;
    uint64_t bytes = os_round_up(sizeof(struct state_manifest) + count * sizeof(struct state_entry), OS_PAGE);
    struct state_manifest *manifest = os_map(bytes);
    if (!manifest) return -ENOMEM;
    manifest->generation = generation;
    bool commits = generation > loop->generation;
    for (const struct state_value *value = loop->put; value && commits; value = value->next)
        entry_of(value, &manifest->entries[manifest->count++]);
    for (const struct state_value *value = loop->committed; value; value = value->next)
        if (!(commits && state_loop_is_replaced(loop, value)) && !(gone && !strcmp(gone, value->id)))
            entry_of(value, &manifest->entries[manifest->count++]);
    int error = state_files_write(&loop->files, manifest);
    os_unmap(manifest, bytes);
    return error;
}

int state_manifest_commit(struct state_loop *loop) {
    if (!loop->files.name[0]) return 0;
    int error = link_values(loop);
    if (!error) error = state_manifest_write(loop, loop->generation + 1, NULL);
    if (error) {
        state_manifest_unlink(loop, loop->put);
        for (struct state_value *value = loop->put; value; value = value->next) value->linked = false;
    }
    return error;
}
