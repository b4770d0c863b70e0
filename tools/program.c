/* program.c — can this program be preloaded? See program.h. */
#include "program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { SCRIPT_DEPTH = 4, HEADERS_MAX = 256 };

static int executable(const char *path) {
    struct stat st;
    if (stat(path, &st) < 0) return errno == ENOTDIR ? ENOENT : errno;
    return S_ISREG(st.st_mode) && access(path, X_OK) == 0 ? 0 : EACCES;
}

int program_find(const char *command, char *path, size_t size) {
    if (!*command) return ENOENT;
    if (strchr(command, '/')) {
        snprintf(path, size, "%s", command);
        return executable(path);
    }
    const char *list = getenv("PATH");
    int result = ENOENT;
    for (const char *next = list ? list : "/bin:/usr/bin"; next;) {
        size_t length = strcspn(next, ":");
        int used = snprintf(path, size, "%.*s%s%s", (int)length, next, length ? "/" : "", command);
        int error = used > 0 && (size_t)used < size ? executable(path) : ENOENT;
        if (error == 0) return 0;
        if (error == EACCES) result = EACCES;
        next = next[length] ? next + length + 1 : NULL;
    }
    return result;
}

static bool is_privileged(const char *path) {
    struct stat st;
    struct statvfs fs;
    if (stat(path, &st) < 0 || statvfs(path, &fs) < 0 || (fs.f_flag & ST_NOSUID)) return false;
    if ((st.st_mode & S_ISUID) && st.st_uid != getuid()) return true;
    if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getgid()) return true;
    return getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
}

static bool names_musl(int fd, const Elf64_Phdr *header) {
    char interpreter[256] = "";
    size_t length = header->p_filesz < sizeof interpreter - 1 ? header->p_filesz : sizeof interpreter - 1;
    if (pread(fd, interpreter, length, (off_t)header->p_offset) < 0) return false;
    return strstr(interpreter, "musl") != NULL;
}

/* The dynamic loader itself has no interpreter either, and can be preloaded. */
static bool is_loader(const char *path) {
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, "ld-linux", 8) == 0;
}

static enum program_verdict look_elf(int fd, const char *path, char *note, size_t size) {
    Elf64_Ehdr elf;
    if (pread(fd, &elf, sizeof elf, 0) != sizeof elf) return PROGRAM_FINE;
    if (elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_machine != EM_X86_64) {
        snprintf(note, size, "is not an x86-64 program: it cannot be preloaded and runs untracked");
        return PROGRAM_STATIC;
    }
    for (unsigned i = 0; i < elf.e_phnum && i < HEADERS_MAX; i++) {
        Elf64_Phdr header;
        if (pread(fd, &header, sizeof header, (off_t)(elf.e_phoff + (uint64_t)i * sizeof header)) != sizeof header)
            return PROGRAM_FINE;
        if (header.p_type != PT_INTERP) continue;
        if (!names_musl(fd, &header)) return PROGRAM_FINE;
        snprintf(note, size, "is a musl program: it cannot be preloaded and runs untracked");
        return PROGRAM_MUSL;
    }
    if (is_loader(path)) return PROGRAM_FINE;
    snprintf(note, size, "is a static program: it cannot be preloaded and runs untracked");
    return PROGRAM_STATIC;
}

/* "#! /usr/bin/perl -w" → /usr/bin/perl */
static char *interpreter_of(char *line) {
    line += 2;
    line += strspn(line, " \t");
    line[strcspn(line, " \t\n")] = 0;
    return line;
}

static enum program_verdict look(const char *path, char *note, size_t size, int depth);

static enum program_verdict look_interpreter(char *line, char *note, size_t size, int depth) {
    const char *path = interpreter_of(line);
    if (!*path || executable(path) != ENOENT) return look(path, note, size, depth);
    snprintf(note, size, "%s", path);
    return PROGRAM_NO_INTERPRETER;
}

static enum program_verdict look(const char *path, char *note, size_t size, int depth) {
    char start[256] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (is_privileged(path)) {
        snprintf(note, size, "is setuid, setgid or has capabilities: it ignores preloading and runs untracked");
        if (fd >= 0) close(fd);
        return PROGRAM_PRIVILEGED;
    }
    if (fd < 0) /* executable, not readable: nothing can be said */
        return PROGRAM_FINE;
    enum program_verdict verdict = PROGRAM_FINE;
    if (pread(fd, start, sizeof start - 1, 0) >= SELFMAG && memcmp(start, ELFMAG, SELFMAG) == 0)
        verdict = look_elf(fd, path, note, size);
    else if (memcmp(start, "#!", 2) == 0 && depth < SCRIPT_DEPTH)
        verdict = look_interpreter(start, note, size, depth + 1);
    close(fd);
    return verdict;
}

enum program_verdict program_look(const char *path, char *note, size_t size) {
    snprintf(note, size, "%s", "");
    return look(path, note, size, 0);
}
