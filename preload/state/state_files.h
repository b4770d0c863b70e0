/* state_files.h — the files of a loop with a prefix: a folder PREFIX.state with a manifest (the list of valid values),
 * a file for each value that the manifest lists, and a lock.
 * In: values whose bytes lie in files without names in the folder. Out: names for these files, and a manifest on the
 * disk. At any moment, all files that the manifest lists exist. These functions must never follow a link below the
 * directory, and never touch files that the store did not make. Once the folder is locked, they must leave no file of a
 * value that the manifest does not list. No hook may call them. */
#ifndef MEMSTOW_STATE_FILES_H
#define MEMSTOW_STATE_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "include/memstow.h"
#include "preload/stow/stow_file.h"

#pragma GCC visibility push(hidden)

struct state_files {
    struct stow_file folder, lock;
    struct stow_file above;         /* the folder that contains `folder` */
    char name[256];                 /* the name of `folder`; "": the loop has no prefix */
    const char *directory, *prefix; /* the caller's strings, which must stay valid */
    uint64_t device, inode;         /* of the folder `directory` */
};

struct state_entry {
    char id[MEMSTOW_STATE_ID + 8];
    uint64_t generation; /* the generation in which the value was put; a part of the file's name */
    uint64_t length, checksum;
};
struct state_manifest {
    char magic[8];
    uint32_t version, count;
    uint64_t generation;
    uint64_t checksum;
    struct state_entry entries[];
};

/* Opens or makes the folder. 0 or -errno, as for memstow_state_open. It does not take the lock. */
int state_files_open(struct state_files *self, const char *directory, const char *prefix);
/* Whether two loops have the same folder. */
bool state_files_are_same(const struct state_files *a, const struct state_files *b);
/* Locks the folder for this process. -EBUSY: another process has the lock. */
int state_files_lock(struct state_files *self);
/* Reads the valid manifest, and removes files of values that it does not list. *manifest is NULL if there is none;
 * otherwise free it by os_unmap with its length. 0 or -errno. */
int state_files_read(const struct state_files *self, struct state_manifest **manifest, uint64_t *length);
/* A descriptor of an entry's file, or -errno. -EUCLEAN: the file is missing. */
int state_files_value(const struct state_files *self, const struct state_entry *entry);

/* state_files_link gives a name to a file that has none. state_files_write makes a manifest the valid one.
 * state_files_remove removes the file of an entry. */
int state_files_link(const struct state_files *self, const struct stow_file *file, const struct state_entry *entry);
int state_files_write(const struct state_files *self, struct state_manifest *manifest);
void state_files_remove(const struct state_files *self, const struct state_entry *entry);

/* Closes the files, and removes the lock. If `all`, also removes what the store made in the folder, then the folder,
 * and then the folders of the prefix that contain it, from the inside out. The removal stops at a folder that is not
 * empty. It also stops at an outer folder that does not look as if the store had made it. */
void state_files_close(struct state_files *self, bool all);
/* In a forked child: closes the files and leaves the folder as it is, because it is the parent's. */
void state_files_forget(struct state_files *self);

#pragma GCC visibility pop

#endif
