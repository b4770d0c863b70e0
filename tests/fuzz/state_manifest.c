/* state_manifest.c — fuzz target: any manifest of a loop's folder is read or refused. A manifest that was read names no
 * file outside of the folder. The folder can be removed in both cases. The target makes the checksum right, so that the
 * code behind that check is reached. */
#include <stdlib.h>
#include <unistd.h>

#include "preload/state/state_files.c" /* for its checksum and names */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition) {
    if (!condition) abort();
}

static const char *home(void) {
    static char path[] = "/tmp/memstow-fuzz-XXXXXX";
    static bool made;
    if (!made) must(mkdtemp(path) && chdir(path) == 0);
    made = true;
    return path;
}

static void read_entries(const struct state_files *files, const struct state_manifest *manifest) {
    for (uint32_t i = 0; i < manifest->count; i++) {
        char name[NAME_SIZE];
        name_of(name, &manifest->entries[i]);
        must(!strchr(name, '/') && is_value(name));
        must(state_files_value(files, &manifest->entries[i]) == -EUCLEAN); /* there is no file */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static _Alignas(8) char bytes[16 * OS_PAGE];
    struct state_manifest *manifest = (struct state_manifest *)bytes;
    struct state_files files;
    uint64_t length;
    if (size > sizeof bytes) return 0;
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, data, size);
    if (size >= sizeof *manifest && bytes_of(manifest) == size) manifest->checksum = sum_of(manifest);
    must(state_files_open(&files, home(), "loop") == 0 && state_files_lock(&files) == 0);
    int fd = open("loop.state/manifest", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    close(fd);
    int error = state_files_read(&files, &manifest, &length);
    must(error == 0 || error == -EUCLEAN);
    must((error == 0) == (manifest != NULL));
    if (manifest) {
        read_entries(&files, manifest);
        os_unmap(manifest, length);
    }
    state_files_close(&files, true);
    must(access("loop.state", F_OK) != 0);
    return 0;
}
