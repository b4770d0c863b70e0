/* state_files.c — see state_files.h. An iteration is committed when the new manifest gets the name of the old one. */
#include "preload/state/state_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "preload/shared/heapsort.h"
#include "preload/shared/os.h"

enum {
    VERSION = 2,
    NAME_SIZE = 256,
    FOLDER_MODE = 0700,
    OPEN_TRIES = 100,
    ESCAPED_MOST = 160,
    MANIFEST_MOST = 256 << 20
};

/* The largest generation that a manifest may have. The store's functions return a generation or an error as one signed
 * number, and each commit adds 1 to the generation. With this limit, a generation never reaches the largest number. */
static const uint64_t GENERATION_MOST = INT64_MAX / 2;

static const char MAGIC[8] = "MSTSTATE", MANIFEST[] = "manifest", NEW_MANIFEST[] = "manifest.new", LOCK[] = "lock",
                  VALUE[] = ".value", FOLDER[] = ".state";

/* --- names of files --- */

static bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static uint64_t hash_of(const char *text) {
    uint64_t hash = 0xCBF29CE484222325u;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001B3u;
    return hash;
}

static char *append_hex(char *to, uint64_t n, int digits) {
    for (int i = digits; i-- > 0;) *to++ = "0123456789ABCDEF"[n >> 4 * i & 15];
    *to = 0;
    return to;
}

/* Escapes an id for use in a file name. Plain characters stay as they are; any other becomes '%' and two digits. A name
 * that is too long ends with a hash of the whole id. */
static char *append_escaped(char *to, const char *id) {
    const char *end = to + ESCAPED_MOST;
    for (const char *at = id; *at; at++) {
        if (to + 3 > end) {
            *to++ = '~';
            return append_hex(to, hash_of(id), 16);
        }
        if (is_plain(*at))
            *to++ = *at;
        else
            *to++ = '%', to = append_hex(to, (unsigned char)*at, 2);
    }
    *to = 0;
    return to;
}

static void name_of(char name[NAME_SIZE], const struct state_entry *entry) {
    char *end = append_escaped(name, entry->id);
    *end++ = '.';
    strcpy(os_decimal(end, entry->generation), VALUE);
}

/* --- the folder of a loop, and its lock --- */

static int is_ours(int fd, bool folder, struct stow_file *out) {
    struct stat status;
    int error = os_stat_fd(fd, &status);
    if (error) return error;
    if (folder ? !S_ISDIR(status.st_mode) : !S_ISREG(status.st_mode) || status.st_nlink != 1) return -EPERM;
    if (status.st_uid != (uid_t)os_call(SYS_geteuid) || status.st_mode & (S_IWGRP | S_IWOTH)) return -EPERM;
    *out = (struct stow_file){.fd = fd, .device = status.st_dev, .inode = status.st_ino};
    return 0;
}

static int open_at(int folder, const char *name, int flags) {
    struct stat status;
    int fd = os_open_in(folder, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    if (fd != -ENOTDIR) return fd;
    bool link = os_call(SYS_newfstatat, folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
    return link ? -ELOOP : -ENOTDIR;
}

/* Takes the next name of a path into `name`, and says in *last whether it is the last name. Returns `name`, or NULL if
 * the name is empty, ".", ".." or too long. */
static const char *next_name(const char **path, char name[NAME_SIZE], bool *last) {
    size_t length = strcspn(*path, "/");
    if (!length || length + sizeof FOLDER > NAME_MAX) return NULL;
    memcpy(name, *path, length);
    name[length] = 0;
    *last = !(*path)[length];
    *path += length + !*last;
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 ? name : NULL;
}

static int state_files_enter(int above, const char *name) {
    long made = os_call(SYS_mkdirat, above, name, FOLDER_MODE);
    if (made < 0 && made != -EEXIST) return (int)made;
    return open_at(above, name, O_RDONLY | O_DIRECTORY);
}

static bool is_within(const char *prefix) {
    char name[NAME_SIZE];
    bool last = false;
    while (!last)
        if (!next_name(&prefix, name, &last)) return false;
    return true;
}

/* Opens or makes the folders of a prefix in the directory `above`, and takes over the descriptor `above`. On success,
 * `self` has the innermost folder and the folder that contains it. 0 or -errno. */
static int open_folder(struct state_files *self, int above, const char *prefix) {
    bool last = false;
    int folder = above, error;
    while (!last) {
        next_name(&prefix, self->name, &last);
        if (last) strcat(self->name, FOLDER);
        folder = state_files_enter(above, self->name);
        if (folder < 0 || last) break;
        os_close(above);
        above = folder;
    }
    struct stat status;
    error = folder < 0 ? folder : is_ours(folder, true, &self->folder);
    if (!error) error = os_stat_fd(above, &status);
    if (!error) {
        self->above = (struct stow_file){.fd = above, .device = status.st_dev, .inode = status.st_ino};
        return 0;
    }
    if (folder >= 0) os_close(folder);
    os_close(above);
    return error;
}

static int open_directory(struct state_files *self) {
    struct stat status;
    int fd = os_open(self->directory, O_RDONLY | O_DIRECTORY, 0);
    int error = fd < 0 ? fd : os_stat_fd(fd, &status);
    if (!error && stow_file_judge(fd)) error = -ENOTSUP;
    if (error && fd >= 0) os_close(fd);
    if (error) return error;
    self->device = status.st_dev, self->inode = status.st_ino;
    return fd;
}

int state_files_open(struct state_files *self, const char *directory, const char *prefix) {
    *self = (struct state_files){.lock.fd = -1, .directory = directory, .prefix = prefix};
    if (!is_within(prefix)) return -EINVAL;
    int error = -ENOENT;
    for (int i = 0; i < OPEN_TRIES && error == -ENOENT; i++) { /* a loop that closes may remove a folder meanwhile */
        int fd = open_directory(self);
        if (fd < 0) return fd;
        error = open_folder(self, fd, prefix);
        if (error) self->name[0] = 0;
    }
    return error;
}

bool state_files_are_same(const struct state_files *a, const struct state_files *b) {
    return a->name[0] && b->name[0] && a->folder.device == b->folder.device && a->folder.inode == b->folder.inode;
}

/* Locks the folder for this process. A forked child does not have the lock, even if it outlives this process. */
int state_files_lock(struct state_files *self) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat status;
    int fd = open_at(self->folder.fd, LOCK, O_RDWR | O_CREAT);
    if (fd == -ENOENT) return -EBUSY; /* another process has removed the folder since it was opened */
    if (fd < 0) return fd;
    int error = is_ours(fd, false, &self->lock);
    if (!error && os_call(SYS_fcntl, fd, F_SETLK, &lock) < 0) error = -EBUSY;
    /* Another process may have removed the lock file after it was opened and before it was locked. */
    if (!error && (os_call(SYS_newfstatat, self->folder.fd, LOCK, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
                   status.st_ino != self->lock.inode))
        error = -EBUSY;
    if (error) {
        os_close(fd);
        self->lock.fd = -1;
    }
    return error;
}

/* --- reading the manifest --- */

static uint64_t bytes_of(const struct state_manifest *manifest) {
    return sizeof *manifest + manifest->count * sizeof *manifest->entries;
}

static uint64_t sum_of(const struct state_manifest *manifest) {
    const uint64_t *word = (const uint64_t *)manifest;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < bytes_of(manifest) / sizeof *word; i++)
        if (word + i != &manifest->checksum) sum = (sum ^ word[i]) * 0x9E3779B97F4A7C15u, sum ^= sum >> 29;
    return sum;
}
_Static_assert(sizeof(struct state_manifest) % 8 == 0 && sizeof(struct state_entry) % 8 == 0, "summed by words");

/* Whether an entry of a manifest makes sense. The entry's generation must not be above the manifest's, because a file's
 * name is made of the id and the generation: a later commit could give a new value's file the name that this entry's
 * file already has. */
static bool is_sound_entry(const struct state_entry *entry, uint64_t generation) {
    return entry->id[0] && memchr(entry->id, 0, MEMSTOW_STATE_ID + 1) && entry->generation <= generation;
}

static bool is_sound(const struct state_manifest *manifest, uint64_t length) {
    if (length < sizeof *manifest || memcmp(manifest->magic, MAGIC, sizeof MAGIC) != 0) return false;
    if (manifest->version != VERSION || bytes_of(manifest) != length) return false;
    if (manifest->generation > GENERATION_MOST) return false;
    for (uint32_t i = 0; i < manifest->count; i++)
        if (!is_sound_entry(&manifest->entries[i], manifest->generation)) return false;
    return manifest->checksum == sum_of(manifest);
}

static int read_manifest(int fd, struct state_manifest **manifest, uint64_t *length) {
    struct stow_file file;
    struct stat status;
    int error = is_ours(fd, false, &file);
    if (!error) error = os_stat_fd(fd, &status);
    if (error) return error;
    *length = (uint64_t)status.st_size;
    if (!*length || *length > MANIFEST_MOST) return -EUCLEAN;
    *manifest = os_map(*length);
    if (!*manifest) return -ENOMEM;
    long got = os_pread(fd, *manifest, *length, 0);
    if (got == (long)*length && is_sound(*manifest, *length)) return 0;
    os_unmap(*manifest, *length);
    *manifest = NULL;
    return got < 0 ? -EIO : -EUCLEAN;
}

/* --- files that no manifest names --- */

struct file_name {
    uint64_t hash;
    const struct state_entry *entry;
};

struct cleaning {
    int folder;
    struct file_name *names; /* the manifest's names, sorted by hash */
    uint32_t count;
};

static uint64_t by_hash(const struct file_name *name) { return name->hash; }
HEAPSORT(struct file_name, sort_names, by_hash)

static bool collect_names(struct cleaning *self, const struct state_manifest *manifest) {
    char name[NAME_SIZE];
    self->count = manifest ? manifest->count : 0;
    self->names = self->count ? os_map(self->count * sizeof *self->names) : NULL;
    for (uint32_t i = 0; i < self->count && self->names; i++) {
        name_of(name, &manifest->entries[i]);
        self->names[i] = (struct file_name){hash_of(name), &manifest->entries[i]};
    }
    if (self->names) sort_names(self->names, self->count);
    return self->names || !self->count;
}

static bool is_named(const struct cleaning *self, const char *file) {
    char name[NAME_SIZE];
    uint64_t hash = hash_of(file);
    uint32_t low = 0, high = self->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (self->names[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < self->count && self->names[low].hash == hash; low++) {
        name_of(name, self->names[low].entry);
        if (!strcmp(name, file)) return true;
    }
    return false;
}

/* Whether a name has the form ID.GENERATION.value, with an ID of the characters that append_escaped writes. */
static bool is_value(const char *name) {
    size_t id = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-%~");
    const char *at = name + id;
    if (!id || *at++ != '.') return false;
    size_t digits = strspn(at, "0123456789");
    return digits && !strcmp(at + digits, VALUE);
}

static bool state_files_clean(void *context, const char *name) {
    const struct cleaning *self = context;
    if (!strcmp(name, NEW_MANIFEST) || (is_value(name) && !is_named(self, name)))
        os_call(SYS_unlinkat, self->folder, name, 0);
    return true;
}

/* Removes an unfinished manifest, and the files of values that `manifest` does not list. If `manifest` is NULL, removes
 * the files of all values. If there is no memory for the list of names, all these files stay until the folder is read
 * again. */
static void clean_folder(const struct state_files *self, const struct state_manifest *manifest) {
    struct cleaning cleaning = {.folder = self->folder.fd};
    char path[40] = "/proc/self/fd/";
    if (!collect_names(&cleaning, manifest)) return;
    os_decimal(path + strlen(path), (uint64_t)self->folder.fd);
    os_each_name(path, state_files_clean, &cleaning);
    if (cleaning.names) os_unmap(cleaning.names, cleaning.count * sizeof *cleaning.names);
}

int state_files_read(const struct state_files *self, struct state_manifest **manifest, uint64_t *length) {
    *manifest = NULL;
    int fd = open_at(self->folder.fd, MANIFEST, O_RDONLY);
    if (fd < 0 && fd != -ENOENT) return fd;
    int error = fd < 0 ? 0 : read_manifest(fd, manifest, length);
    if (fd >= 0) os_close(fd);
    if (!error) clean_folder(self, *manifest);
    return error;
}

int state_files_value(const struct state_files *self, const struct state_entry *entry) {
    char name[NAME_SIZE];
    struct stow_file file;
    name_of(name, entry);
    int fd = open_at(self->folder.fd, name, O_RDONLY);
    if (fd < 0) return fd == -ENOENT ? -EUCLEAN : fd;
    int error = is_ours(fd, false, &file);
    if (error) os_close(fd);
    return error ? error : fd;
}

/* --- committing a manifest --- */

static bool is_there(const struct state_files *self) {
    return stow_file_is_still(&self->folder) && stow_file_is_still(&self->lock);
}

int state_files_link(const struct state_files *self, const struct stow_file *file, const struct state_entry *entry) {
    char name[NAME_SIZE], path[40] = "/proc/self/fd/";
    if (!is_there(self) || !stow_file_is_still(file)) return -EIO;
    name_of(name, entry);
    os_decimal(path + strlen(path), (uint64_t)file->fd);
    long result = os_call(SYS_linkat, AT_FDCWD, path, self->folder.fd, name, AT_SYMLINK_FOLLOW);
    if (result != -EEXIST) return (int)result;
    os_call(SYS_unlinkat, self->folder.fd, name, 0); /* a failed commit has left a file with this name */
    return (int)os_call(SYS_linkat, AT_FDCWD, path, self->folder.fd, name, AT_SYMLINK_FOLLOW);
}

static int write_new(const struct state_files *self, const struct state_manifest *manifest) {
    int fd = open_at(self->folder.fd, NEW_MANIFEST, O_WRONLY | O_CREAT | O_TRUNC);
    if (fd < 0) return fd;
    long result = bytes_of(manifest) > os_file_limit() ? -EFBIG : os_write(fd, manifest, bytes_of(manifest));
    if (result >= 0) result = os_call(SYS_fsync, fd);
    os_close(fd);
    return result < 0 ? (int)result : 0;
}

enum { EXCHANGE = 2 }; /* RENAME_EXCHANGE of <linux/fs.h> */

/* Makes the new manifest the valid one, on the disk. If the flush fails, the change of names is undone, and the error
 * is returned:
 * - If there was an old manifest, the two manifests have exchanged their names, and exchange them again.
 * - If there was none, the new manifest is removed.
 * Nothing can be undone on a file system that cannot exchange names, or on a disk that fails altogether. Then the new
 * manifest stays valid, and the result is 0, although the flush has failed. An error would make state_manifest_commit
 * remove the files of new values, which the manifest lists. */
static int replace_manifest(int folder) {
    int error = (int)os_call(SYS_renameat2, folder, NEW_MANIFEST, folder, MANIFEST, EXCHANGE);
    bool exchanged = !error, is_first = error == -ENOENT;
    if (error) error = (int)os_call(SYS_renameat, folder, NEW_MANIFEST, folder, MANIFEST);
    if (error) return error;
    error = (int)os_call(SYS_fsync, folder);
    if (!error) return 0;
    int stays = -EINVAL;
    if (exchanged) stays = (int)os_call(SYS_renameat2, folder, NEW_MANIFEST, folder, MANIFEST, EXCHANGE);
    if (is_first) stays = (int)os_call(SYS_unlinkat, folder, MANIFEST, 0);
    return stays ? 0 : error;
}

int state_files_write(const struct state_files *self, struct state_manifest *manifest) {
    if (bytes_of(manifest) > MANIFEST_MOST) return -E2BIG;
    if (!is_there(self)) return -EIO;
    memcpy(manifest->magic, MAGIC, sizeof MAGIC);
    manifest->version = VERSION;
    manifest->checksum = sum_of(manifest);
    /* The folder's entries for the files of values must be on the disk before the manifest that lists these files. */
    int folder = self->folder.fd, error = (int)os_call(SYS_fsync, folder);
    if (!error) error = write_new(self, manifest);
    if (!error) error = replace_manifest(folder);
    os_call(SYS_unlinkat, folder, NEW_MANIFEST, 0);
    return error;
}

void state_files_remove(const struct state_files *self, const struct state_entry *entry) {
    char name[NAME_SIZE];
    name_of(name, entry);
    if (stow_file_is_still(&self->folder)) os_call(SYS_unlinkat, self->folder.fd, name, 0);
}

/* Opens the folder that contains the n-th folder of the prefix, and writes the n-th folder's name to `name`. */
static int open_around(const struct state_files *self, int n, char name[NAME_SIZE]) {
    const char *path = self->prefix;
    bool last;
    struct state_files now = {.directory = self->directory};
    int folder = open_directory(&now);
    if (folder >= 0 && (now.device != self->device || now.inode != self->inode)) {
        os_close(folder);
        return -ENOENT;
    }
    for (int i = 0; folder >= 0; i++) {
        next_name(&path, name, &last);
        if (i == n) break;
        int below = open_at(folder, name, O_RDONLY | O_DIRECTORY);
        os_close(folder);
        folder = below;
    }
    return folder;
}

static bool is_as_made(int above, const char *name) {
    struct stat status;
    return os_call(SYS_newfstatat, above, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           status.st_mode == (S_IFDIR | FOLDER_MODE) && status.st_uid == (uid_t)os_call(SYS_geteuid);
}

/* Removes the empty folders around the loop's folder, from the inside out. */
static void remove_around(const struct state_files *self) {
    char name[NAME_SIZE];
    int depth = 0;
    for (const char *at = self->prefix; *at; at++) depth += *at == '/';
    bool removed = true;
    while (removed && depth-- > 0) {
        int above = open_around(self, depth, name);
        if (above < 0) return;
        removed = is_as_made(above, name) && os_call(SYS_unlinkat, above, name, AT_REMOVEDIR) == 0;
        os_close(above);
    }
}

static void remove_all(const struct state_files *self) {
    os_call(SYS_unlinkat, self->folder.fd, MANIFEST, 0);
    clean_folder(self, NULL);
    os_call(SYS_unlinkat, self->folder.fd, LOCK, 0);
    if (os_call(SYS_unlinkat, self->above.fd, self->name, AT_REMOVEDIR) == 0) remove_around(self);
}

void state_files_forget(struct state_files *self) {
    if (!self->name[0]) return;
    if (self->lock.fd >= 0) stow_file_close(&self->lock);
    stow_file_close(&self->above);
    stow_file_close(&self->folder);
    self->name[0] = 0;
}

void state_files_close(struct state_files *self, bool all) {
    if (!self->name[0]) return;
    if (self->lock.fd >= 0 && is_there(self) && all && stow_file_is_still(&self->above))
        remove_all(self);
    else if (self->lock.fd >= 0 && is_there(self))
        os_call(SYS_unlinkat, self->folder.fd, LOCK, 0);
    state_files_forget(self);
}
