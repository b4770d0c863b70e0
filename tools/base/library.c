/* library.c — see library.h. It looks for libmemstow.so in this order: in the lib folder of the command's installation,
 * beside the command, in the build tree. */
#include "tools/base/library.h"
#include "tools/base/text.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

/* Finds this command by the path that exec was given. If that path is relative, it is right only while the process is
 * in the folder in which it was started. False: there is no such file. */
static bool given_to_exec(char path[PATH_MAX]) {
    const char *given = (const char *)getauxval(AT_EXECFN);
    return given && realpath(given, path);
}

bool library_command(char *path, size_t size) {
    char given[PATH_MAX];
    *path = 0;
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    path[length > 0 ? length : 0] = 0;
    if (length > 0) return true;
    if (!given_to_exec(given) || strlen(given) >= size) return false;
    strcpy(path, given);
    return true;
}

static int library_check(char *path, size_t size, const char *candidate) {
    char resolved[PATH_MAX];
    if (!realpath(candidate, resolved) || access(resolved, R_OK) < 0 || strlen(resolved) >= size) return -1;
    memcpy(path, resolved, strlen(resolved) + 1);
    return 0;
}

static int library_search(char *path, size_t size) {
    static const char *const paths[] = {"../lib/libmemstow.so", "../lib/x86_64-linux-gnu/libmemstow.so",
                                        "libmemstow.so", "../preload/libmemstow.so"};
    char here[PATH_MAX], candidate[PATH_MAX + 64];
    if (!library_command(here, sizeof here)) return -1;
    *strrchr(here, '/') = 0;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        snprintf(candidate, sizeof candidate, "%s/%s", here, paths[i]);
        if (library_check(path, size, candidate) == 0) return 0;
    }
    return -1;
}

/* Whether the file begins as a 64-bit ELF file does. The loader would report any other file and then start the program
 * without it, and a pipe would make the loader wait. */
static bool is_elf(const char *path) {
    char ident[EI_NIDENT] = "";
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool is = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && read(fd, ident, sizeof ident) == sizeof ident &&
              memcmp(ident, ELFMAG, SELFMAG) == 0 && ident[EI_CLASS] == ELFCLASS64;
    if (fd >= 0) close(fd);
    return is;
}

int library_find(char *path, size_t size, char *error, size_t error_size) {
    const char *given = getenv("MEMSTOW_LIBRARY");
    if (given && *given && library_check(path, size, given) < 0) {
        snprintf(error, error_size, "MEMSTOW_LIBRARY=%s cannot be read", TEXT_SAFE(given));
        return -1;
    }
    if ((!given || !*given) && library_search(path, size) < 0) {
        snprintf(error, error_size,
                 "libmemstow.so was not found beside this command (set MEMSTOW_LIBRARY to its path)");
        return -1;
    }
    if (!is_elf(path)) {
        snprintf(error, error_size, "%s is not a 64-bit shared library", TEXT_SAFE(path));
        return -1;
    }
    /* the loader splits LD_PRELOAD at colons and blanks, and has no quotes */
    if (strpbrk(path, ": ")) {
        snprintf(error, error_size, "%s: a path with a colon or a blank cannot be preloaded", TEXT_SAFE(path));
        return -1;
    }
    return 0;
}

int library_find_cupti(const char *beside, char *path, size_t size, char *error, size_t error_size) {
    char candidate[PATH_MAX + 64];
    const char *slash = strrchr(beside, '/');
    snprintf(candidate, sizeof candidate, "%.*s/libmemstow_cupti.so", (int)(slash ? slash - beside : 0), beside);
    if (library_check(path, size, candidate) == 0) return 0;
    snprintf(error, error_size, "%s was not found", TEXT_SAFE(candidate));
    return -1;
}
