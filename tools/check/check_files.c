/* check_files.c — before anything runs, refuses options that name the same file twice, that name a ledger as an output,
 * or that name an output that cannot be written. In: the options. Out: a refusal with its reason. It never changes a
 * file. */
#include "tools/base/complain.h"
#include "tools/base/new_file.h"
#include "tools/base/text.h"
#include "tools/check/baseline.h"
#include "tools/check/check.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct named {
    const char *option, *path; /* path: NULL if the option was not given */
    char words[40];            /* what the file is, for a message about a later option that names it, too */
};

/* Whether two paths have the same folder and name. Files that do not exist yet cannot be compared in another way. */
static bool same_new_file(const char *a, const char *b) {
    struct stat of_a, of_b;
    char folder[4096];
    text_folder(a, folder, sizeof folder);
    bool known = stat(folder, &of_a) == 0;
    text_folder(b, folder, sizeof folder);
    if (!known || stat(folder, &of_b) < 0) return strcmp(a, b) == 0;
    return strcmp(text_base_name(a), text_base_name(b)) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

/* Whether `a` and `b` lead to the same regular file. Devices do not count, because two forms of the verdict may be
 * written to one device, such as /dev/null. */
static bool same_file(const char *a, const char *b) {
    struct stat of_a, of_b;
    if (strcmp(a, "-") == 0 || strcmp(b, "-") == 0) return false;
    bool a_exists = stat(a, &of_a) == 0, b_exists = stat(b, &of_b) == 0;
    if (!a_exists && !b_exists) return same_new_file(a, b);
    return a_exists && b_exists && S_ISREG(of_a.st_mode) && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

/* The errno of a file that cannot be written; 0: it can. A file that is replaced by a new one (new_file.h) may be
 * read-only, but its folder may not. */
static int why_unwritable(const char *path, bool replaced) {
    struct stat st;
    char folder[4096];
    text_folder(path, folder, sizeof folder);
    bool there = stat(path, &st) == 0;
    if (!there && errno != ENOENT) return errno;
    if (there && S_ISDIR(st.st_mode)) return EISDIR;
    if (there && !(replaced && S_ISREG(st.st_mode))) return access(path, W_OK) < 0 ? errno : 0;
    return access(folder, W_OK | X_OK) < 0 ? errno : 0;
}

/* Returns 0; or, if the file cannot be written, an exit code after an error message. */
static int check_writable(const char *path, bool replaced) {
    int error = why_unwritable(path, replaced);
    if (!error) return EXIT_FINE;
    complain("%s: %s", TEXT_SAFE(path), strerror(error));
    return EXIT_UNREADABLE;
}

static int check_baseline(const char *path) {
    char error[4400];
    if (baseline_may_replace(path, error, sizeof error)) return EXIT_FINE;
    complain("%s", error);
    return EXIT_UNREADABLE;
}

int check_files(const struct check *check) {
    static const char *const forms[CHECK_FORMS] = {"text", "json", "junit", "github", "markdown"};
    struct named files[CHECK_FORMS + 4] = {{"suppressions", check->suppressed_in, "the list of suppressions"},
                                           {"comfy", check->comfy, "the workflow"},
                                           {"baseline", check->baseline, "the baseline"}};
    size_t count = 3;
    for (int i = 0; i < CHECK_FORMS; i++) files[count++] = (struct named){forms[i], check->output[i], ""};
    files[count++] = (struct named){"html", check->page, ""};
    for (size_t i = 3; i < count; i++) snprintf(files[i].words, sizeof files[i].words, "also --%s's", files[i].option);
    for (size_t i = 3; i < count; i++)
        if (files[i].path && strcmp(files[i].path, "-") != 0 && new_file_is_memstow(files[i].path))
            return complain_usage("check", "--%s=%s: is a memstow file: not replaced", files[i].option,
                                  TEXT_SAFE(files[i].path));
    for (size_t i = check->update ? 2 : 3; i < count; i++) /* files[i] is a file that the check writes */
        for (size_t j = 0; j < i; j++)
            if (files[i].path && files[j].path && same_file(files[i].path, files[j].path))
                return complain_usage("check", "--%s=%s: is %s", files[i].option, TEXT_SAFE(files[i].path),
                                      files[j].words);
    int code = check->update ? check_baseline(check->baseline) : EXIT_FINE;
    /* Two files are replaced by new ones (new_file.h): the baseline, which is files[2], and the page, the last file. */
    for (size_t i = check->update ? 2 : 3; i < count && code == EXIT_FINE; i++)
        if (files[i].path && strcmp(files[i].path, "-") != 0)
            code = check_writable(files[i].path, i == 2 || i + 1 == count);
    return code;
}
