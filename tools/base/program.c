/* program.c — see program.h. */
#include "tools/base/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { SCRIPT_DEPTH = 4, HEADERS_MAX = 256, ENTRIES_MAX = 4096 };

static int program_executable(const char *path) {
    struct stat st;
    if (stat(path, &st) < 0) return errno == ENOTDIR ? ENOENT : errno;
    return S_ISREG(st.st_mode) && access(path, X_OK) == 0 ? 0 : EACCES;
}

int program_find(const char *command, char *path, size_t size) {
    if (!*command) return ENOENT;
    if (strchr(command, '/')) {
        snprintf(path, size, "%s", command);
        return program_executable(path);
    }
    const char *list = getenv("PATH");
    int result = ENOENT;
    for (const char *next = list ? list : "/bin:/usr/bin"; next;) {
        size_t length = strcspn(next, ":");
        int used = snprintf(path, size, "%.*s%s%s", (int)length, next, length ? "/" : "", command);
        int error = used > 0 && (size_t)used < size ? program_executable(path) : ENOENT;
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

static bool read_header(int fd, const Elf64_Ehdr *elf, unsigned i, Elf64_Phdr *header) {
    off_t at = (off_t)(elf->e_phoff + (uint64_t)i * sizeof *header);
    return i < elf->e_phnum && i < HEADERS_MAX && pread(fd, header, sizeof *header, at) == sizeof *header;
}

static bool names_musl(int fd, const Elf64_Phdr *header) {
    char interpreter[256] = "";
    size_t length = header->p_filesz < sizeof interpreter - 1 ? header->p_filesz : sizeof interpreter - 1;
    if (pread(fd, interpreter, length, (off_t)header->p_offset) < 0) return false;
    return strstr(interpreter, "musl") != NULL;
}

/* Whether the file is the dynamic loader. Like a static program it has no interpreter, but it can be preloaded. */
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
        if (!read_header(fd, &elf, i, &header)) return PROGRAM_FINE;
        if (header.p_type != PT_INTERP) continue;
        if (!names_musl(fd, &header)) return PROGRAM_FINE;
        snprintf(note, size, "is a musl program: it cannot be preloaded and runs untracked");
        return PROGRAM_MUSL;
    }
    if (is_loader(path)) return PROGRAM_FINE;
    snprintf(note, size, "is a static program: it cannot be preloaded and runs untracked");
    return PROGRAM_STATIC;
}

/* The interpreter in the first line of a script; for example, "/usr/bin/perl" if the line is "#! /usr/bin/perl -w". */
static char *interpreter_of(char *line) {
    line += 2;
    line += strspn(line, " \t");
    line[strcspn(line, " \t\n")] = 0;
    return line;
}

static enum program_verdict path_look(const char *path, char *note, size_t size, int depth);

static enum program_verdict look_interpreter(char *line, char *note, size_t size, int depth) {
    const char *path = interpreter_of(line);
    if (!*path || program_executable(path) != ENOENT) return path_look(path, note, size, depth);
    snprintf(note, size, "%s", path);
    return PROGRAM_NO_INTERPRETER;
}

static enum program_verdict path_look(const char *path, char *note, size_t size, int depth) {
    char start[256] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (is_privileged(path)) {
        snprintf(note, size, "is setuid, setgid or has capabilities: it ignores preloading and runs untracked");
        if (fd >= 0) close(fd);
        return PROGRAM_PRIVILEGED;
    }
    if (fd < 0) /* a program that may be run, but not read, is not judged */
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
    return path_look(path, note, size, 0);
}

/* --- the libraries that a program is linked with --- */

/* The file offset of the byte that is loaded at the address; 0: no part of the file is loaded there. */
static uint64_t offset_of(int fd, const Elf64_Ehdr *elf, uint64_t address) {
    Elf64_Phdr part;
    for (unsigned i = 0; read_header(fd, elf, i, &part); i++)
        if (part.p_type == PT_LOAD && address >= part.p_vaddr && address - part.p_vaddr < part.p_filesz)
            return address - part.p_vaddr + part.p_offset;
    return 0;
}

static bool read_entry(int fd, const Elf64_Phdr *dynamic, unsigned i, Elf64_Dyn *entry) {
    off_t at = (off_t)(dynamic->p_offset + (uint64_t)i * sizeof *entry);
    return i < ENTRIES_MAX && (i + 1) * sizeof *entry <= dynamic->p_filesz &&
           pread(fd, entry, sizeof *entry, at) == sizeof *entry && entry->d_tag != DT_NULL;
}

static bool is_needed(int fd, const Elf64_Ehdr *elf, const Elf64_Phdr *dynamic, const char *library) {
    Elf64_Dyn entry;
    uint64_t strings = 0;
    char name[256];
    size_t length = strlen(library);
    for (unsigned i = 0; read_entry(fd, dynamic, i, &entry); i++)
        if (entry.d_tag == DT_STRTAB) strings = offset_of(fd, elf, entry.d_un.d_ptr);
    for (unsigned i = 0; strings && length < sizeof name && read_entry(fd, dynamic, i, &entry); i++)
        if (entry.d_tag == DT_NEEDED &&
            pread(fd, name, length, (off_t)(strings + entry.d_un.d_val)) == (ssize_t)length &&
            memcmp(name, library, length) == 0)
            return true;
    return false;
}

bool program_is_linked_with(const char *path, const char *library) {
    Elf64_Ehdr elf;
    Elf64_Phdr header;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool found = false;
    if (fd >= 0 && pread(fd, &elf, sizeof elf, 0) == sizeof elf && memcmp(elf.e_ident, ELFMAG, SELFMAG) == 0)
        for (unsigned i = 0; !found && read_header(fd, &elf, i, &header); i++)
            found = header.p_type == PT_DYNAMIC && is_needed(fd, &elf, &header, library);
    if (fd >= 0) close(fd);
    return found;
}
