/* dynsym.c — see dynsym.h. */
#include "tools/proc/dynsym.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TABLE_MOST = 32 << 20, SECTIONS_MOST = 4096, FILES_MOST = 16 };

/* Reads `size` bytes at `offset` of the file, and appends a NUL. NULL: the part is too large, the file does not have
 * it, or there is no memory. */
static char *read_part(int fd, uint64_t offset, uint64_t size) {
    if (size > TABLE_MOST) return NULL;
    char *part = malloc(size + 1);
    if (!part) return NULL;
    part[size] = 0;
    if (pread(fd, part, size, (off_t)offset) == (ssize_t)size) return part;
    free(part);
    return NULL;
}

static size_t dynsym_look_up(const Elf64_Sym *symbols, size_t symbol_count, const char *strings, uint64_t strings_size,
                             const char *const *names, uint64_t *addresses, size_t count) {
    size_t found = 0;
    memset(addresses, 0, count * sizeof *addresses);
    for (size_t i = 0; i < symbol_count; i++) {
        if (!symbols[i].st_value || symbols[i].st_name >= strings_size) continue;
        for (size_t k = 0; k < count; k++)
            if (!addresses[k] && strcmp(strings + symbols[i].st_name, names[k]) == 0) {
                addresses[k] = symbols[i].st_value;
                found++;
            }
    }
    return found;
}

static bool look_in_sections(int fd, const Elf64_Ehdr *elf, const Elf64_Shdr *sections, const char *const *names,
                             uint64_t *addresses, size_t count) {
    for (size_t i = 0; i < elf->e_shnum; i++) {
        const Elf64_Shdr *table = &sections[i];
        if (table->sh_type != SHT_DYNSYM || table->sh_link >= elf->e_shnum) continue;
        const Elf64_Shdr *link = &sections[table->sh_link];
        char *symbols = read_part(fd, table->sh_offset, table->sh_size);
        char *strings = read_part(fd, link->sh_offset, link->sh_size);
        bool all = symbols && strings &&
                   dynsym_look_up((const Elf64_Sym *)symbols, table->sh_size / sizeof(Elf64_Sym), strings,
                                  link->sh_size, names, addresses, count) == count;
        free(symbols);
        free(strings);
        if (all) return true;
    }
    return false;
}

/* Finds the addresses of the names in the file. *moved says whether the addresses are relative to the file's mapping.
 * Returns false if the file lacks a name, or is no 64-bit ELF file. */
static bool look_in_file(int fd, const char *const *names, uint64_t *addresses, size_t count, bool *moved) {
    Elf64_Ehdr elf;
    if (pread(fd, &elf, sizeof elf, 0) != sizeof elf || memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
        elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_shentsize != sizeof(Elf64_Shdr) || elf.e_shnum > SECTIONS_MOST)
        return false;
    *moved = elf.e_type == ET_DYN;
    char *sections = read_part(fd, elf.e_shoff, (uint64_t)elf.e_shnum * sizeof(Elf64_Shdr));
    bool found = sections && look_in_sections(fd, &elf, (const Elf64_Shdr *)sections, names, addresses, count);
    free(sections);
    return found;
}

static bool dynsym_is_named(const char *path, const char *const *files) {
    const char *name = strrchr(path, '/');
    for (; name && *files; files++)
        if (strncmp(name + 1, *files, strlen(*files)) == 0) return true;
    return false;
}

/* Whether a line of /proc/PID/maps is the first mapping of one of the files. */
static bool is_candidate(char *line, const char *const *files, uint64_t *start, const char **path) {
    uint64_t offset;
    int at = 0;
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "%" SCNx64 "-%*x %*s %" SCNx64 " %*s %*s %n", start, &offset, &at) < 2 || !at || offset)
        return false;
    *path = line + at;
    return **path == '/' && dynsym_is_named(*path, files);
}

_Bool dynsym_find(pid_t pid, const char *const *files, const char *const *names, uint64_t *addresses, size_t count) {
    char maps_path[64], *line = NULL;
    size_t size = 0, tried = 0;
    bool found = false;
    snprintf(maps_path, sizeof maps_path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(maps_path, "re");
    while (maps && !found && tried < FILES_MOST && getline(&line, &size, maps) > 0) {
        char path[4200];
        const char *inside;
        uint64_t start;
        bool moved = false;
        if (!is_candidate(line, files, &start, &inside)) continue;
        tried++;
        snprintf(path, sizeof path, "/proc/%d/root%.4000s", (int)pid, inside);
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        found = fd >= 0 && look_in_file(fd, names, addresses, count, &moved);
        if (fd >= 0) close(fd);
        for (size_t i = 0; found && moved && i < count; i++) addresses[i] += start;
    }
    free(line);
    if (maps) fclose(maps);
    return found;
}
