/* check_folder.c — the folder of the runs' ledgers; see check.h. */
#include "tools/check/check.h"
#include "tools/base/complain.h"
#include "tools/base/text.h"
#include "tools/subject/subject.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_folder_fails(const char *path) {
    complain("%s: %s", TEXT_SAFE(path), strerror(errno));
    return EXIT_UNREADABLE;
}

static bool is_empty(const char *path) {
    DIR *directory = opendir(path);
    size_t names = 0;
    if (!directory) return false;
    while (readdir(directory)) names++;
    closedir(directory);
    return names <= 2;
}

/* Makes the folder that --keep names. A folder that exists must be empty, because its files would be taken for ledgers
 * of these runs. */
static int make_kept(struct check *check) {
    if (mkdir(check->keep, 0777) < 0 && (errno != EEXIST || !is_empty(check->keep))) {
        complain("--keep=%s: %s", TEXT_SAFE(check->keep), errno == EEXIST ? "is not an empty folder" : strerror(errno));
        return EXIT_USAGE;
    }
    return realpath(check->keep, check->folder) ? EXIT_FINE : check_folder_fails(check->keep);
}

int check_folder_make(struct check *check) {
    const char *folder = getenv("TMPDIR");
    if (check->keep) return make_kept(check);
    int used = snprintf(check->folder, sizeof check->folder - 64, "%s/memstow-check.XXXXXX",
                        folder && *folder == '/' ? folder : "/tmp");
    if (used < 0 || (size_t)used >= sizeof check->folder - 64) {
        complain("TMPDIR: the name is too long");
        return EXIT_USAGE;
    }
    return mkdtemp(check->folder) ? EXIT_FINE : check_folder_fails(check->folder);
}

int check_folder_of_run(const struct check *check, const char *what, uint32_t n, char *path, size_t size) {
    snprintf(path, size, "%s/%s-%u", check->folder, what, n);
    return mkdir(path, 0777) < 0 ? check_folder_fails(path) : EXIT_FINE;
}

/* Whether a ledger must be kept. It must if the program misused a block, because then a line on standard error has
 * named the ledger. If so, says that the ledger is kept. */
static bool check_folder_is_named(const char *path, const char *name) {
    static struct subject subject;
    struct stat st;
    if (!strstr(name, ".mst") || lstat(path, &st) < 0 || !S_ISREG(st.st_mode)) return false;
    if (subject_open(&subject, path, false) != EXIT_FINE) return false;
    bool misused = subject.image.misuse_count;
    subject_close(&subject);
    if (misused) complain("a block was misused: %s is kept", TEXT_SAFE(path));
    return misused;
}

/* Removes a folder with the files and folders in it, down to `depth`, except ledgers that must be kept. memstow makes
 * no deeper folders. */
static void remove_all(const char *path, int depth) {
    char inner[5000];
    DIR *directory = opendir(path);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (check_folder_is_named(inner, entry->d_name)) continue;
        if (unlink(inner) < 0 && depth) remove_all(inner, depth - 1);
    }
    closedir(directory);
    rmdir(path);
}

void check_folder_remove(const struct check *check) {
    if (!check->keep && *check->folder) remove_all(check->folder, 1);
}
