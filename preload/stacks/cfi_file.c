/* cfi_file.c — see cfi_file.h. Unwind tables contain distances only: from an entry to its function, and from the header
 * to both. So cfi_find reads a copy of the tables at another address, if the address of the code is moved by the same
 * distance. A mapping is never removed, because a thread may be reading it; if pages of it are given back meanwhile,
 * the kernel reads them again. A library that is loaded again uses the same mapping. */
#include "preload/stacks/cfi_file.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "preload/base/forked.h"
#include "preload/base/lock.h"
#include "preload/base/seal.h"
#include "preload/stacks/generation.h"
#include "preload/stacks/module.h"
#include "preload/shared/os.h"

enum {
    FILES = 64,
    LEAST = 1 << 18,          /* tables with fewer bytes get no mapping */
    PAUSE = 250 * 1000 * 1000 /* ns; pages are not given back more often than once in this time */
};

/* A file with large tables. */
static struct cfi_file {
    uintptr_t header;      /* the address of .eh_frame_hdr in the loader's mapping */
    struct cfi_object own; /* the tables in memstow's mapping; own.header is 0 if there is no such mapping */
    uint8_t build_id[sizeof((struct snap_module){0}.build_id)];
    uint32_t build_id_length; /* bytes */
    uint32_t generation;      /* generation_of_code when `header` was noted. If it has changed, `header` may be wrong */
} files[FILES];
static uint32_t file_count;
static struct lock adding;
static uint64_t dropped_at; /* ns */

/* --- where the tables lie --- */

/* The headers of an object, and the part of it that has its unwind tables. */
struct image {
    const Elf64_Ehdr *elf;
    const Elf64_Phdr *segments;
    uintptr_t bias, start, end;
    uint64_t offset; /* where `start` lies in the file */
};

/* Returns the start of .eh_frame, which linkers place in front of its header or behind it. Returns 0 if the header does
 * not have the usual form. */
static uintptr_t start_of_entries(const struct cfi_object *object) {
    enum { VERSION = 1, PCREL_SDATA4 = 0x1b, AT = 4 };
    const uint8_t *bytes = (const uint8_t *)object->header;
    int32_t distance;
    if (object->end - object->header < 2 * AT || bytes[0] != VERSION || bytes[1] != PCREL_SDATA4) return 0;
    memcpy(&distance, bytes + AT, sizeof distance);
    uintptr_t start = object->header + AT + (uintptr_t)(intptr_t)distance;
    return start >= object->start && start < object->end ? start : 0;
}

/* The length of an object's .eh_frame_hdr in bytes. It is mainly an index, with 8 bytes for each function. 0: it is not
 * known. */
static uintptr_t length_of_header(const struct image *image, uintptr_t header) {
    for (int i = 0; i < image->elf->e_phnum; i++)
        if (image->segments[i].p_type == PT_GNU_EH_FRAME && image->bias + image->segments[i].p_vaddr == header)
            return image->segments[i].p_memsz;
    return 0;
}

/* Finds the pages that have the object's tables. Returns false if the tables are small or have an unusual form, or if
 * their segment is writable: then the memory may have other bytes than the file. */
static bool find_tables(const struct cfi_object *object, const struct dl_find_object *found, struct image *out) {
    const Elf64_Ehdr *elf = found->dlfo_map_start;
    *out = (struct image){.elf = elf, .bias = found->dlfo_link_map->l_addr};
    out->segments = (const Elf64_Phdr *)((const char *)elf + elf->e_phoff);
    uintptr_t entries = start_of_entries(object), length = length_of_header(out, object->header);
    if (!entries || !length || length > object->end - object->header) return false;
    out->start = (entries < object->header ? entries : object->header) & ~(uintptr_t)(OS_PAGE - 1);
    out->end = entries < object->header ? object->header + length : object->end;
    for (int i = 0; i < elf->e_phnum; i++) {
        const Elf64_Phdr *segment = &out->segments[i];
        if (segment->p_type != PT_LOAD || out->bias + segment->p_vaddr != object->start) continue;
        out->offset = segment->p_offset + out->start - object->start;
        return !(segment->p_flags & PF_W) && out->end - out->start >= LEAST;
    }
    return false;
}

/* --- the file --- */

/* Whether the file has the bytes that the object has in memory. */
static bool has_bytes(int fd, uint64_t offset, uintptr_t loaded, size_t length) {
    char in_file[256], in_memory[256];
    for (size_t at = 0, size; at < length; at += size) {
        size = length - at < sizeof in_file ? length - at : sizeof in_file;
        if (os_pread(fd, in_file, size, offset + at) != (long)size ||
            !os_peek(in_memory, (const void *)(loaded + at), size) || memcmp(in_file, in_memory, size) != 0)
            return false;
    }
    return true;
}

/* Whether the file is the one that was loaded. Its ELF headers and its notes, which include the build id, must be the
 * same as in memory, and the file must be long enough to contain the tables. */
static bool is_loaded_from(const struct image *image, int fd) {
    const Elf64_Ehdr *elf = image->elf;
    struct stat status;
    if (os_stat_fd(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
        (uint64_t)status.st_size < image->offset + (image->end - image->start) ||
        !has_bytes(fd, 0, (uintptr_t)elf, elf->e_phoff + elf->e_phnum * sizeof(Elf64_Phdr)))
        return false;
    for (int i = 0; i < elf->e_phnum; i++) {
        const Elf64_Phdr *segment = &image->segments[i];
        if (segment->p_type == PT_NOTE &&
            (segment->p_filesz > OS_PAGE ||
             !has_bytes(fd, segment->p_offset, image->bias + segment->p_vaddr, segment->p_filesz)))
            return false;
    }
    return true;
}

/* Whether the mapping at `at` has the first bytes of the object's .eh_frame_hdr, and can be read up to its end. It may
 * be a mapping of another file, if another thread has closed memstow's descriptor and opened that file. */
static bool is_mapped(const struct image *image, const struct cfi_object *object, uintptr_t at) {
    char header[32], last;
    return os_peek(header, (const void *)(at + object->header - image->start), sizeof header) &&
           memcmp(header, (const void *)object->header, sizeof header) == 0 &&
           os_peek(&last, (const void *)(at + image->end - image->start - 1), 1);
}

/* Maps the tables of the file at `path`, and returns where. 0: they cannot be mapped. */
static uintptr_t map_tables(const struct image *image, const struct cfi_object *object, const char *path) {
    int fd = path[0] == '/' ? os_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0) : -1;
    if (fd < 0) return 0;
    size_t length = image->end - image->start;
    uintptr_t at = is_loaded_from(image, fd) ? (uintptr_t)os_reserve_apart(length) : 0;
    bool fine = at && os_call(SYS_mmap, at, length, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, image->offset) == (long)at;
    os_close(fd);
    if (fine && is_mapped(image, object, at)) return at;
    if (at) os_unmap((void *)at, length);
    return 0;
}

/* --- files that are known --- */

static bool is_build(const struct cfi_file *file, const struct snap_module *module) {
    return file->build_id_length == module->build_id_length &&
           memcmp(file->build_id, module->build_id, module->build_id_length) == 0;
}

/* The entry of a file, or a free one. NULL: all are in use. A file without a build id has an entry for each place at
 * which it is loaded. */
static struct cfi_file *entry_for(uintptr_t header, const struct snap_module *module) {
    for (uint32_t i = 0; i < file_count; i++)
        if (is_build(&files[i], module) && (module->build_id_length || files[i].header == header)) return &files[i];
    return file_count < FILES ? &files[file_count] : NULL;
}

/* Notes where a file is loaded now. If the file is new, maps its tables. If this fails, it is not tried again. */
static void add_file(const struct cfi_object *object, const struct dl_find_object *found, const struct image *image,
                     uint32_t generation) {
    const struct snap_module *module = module_record(module_at(object->header));
    struct cfi_file *file = module ? entry_for(object->header, module) : NULL;
    if (!file) return;
    bool is_new = file == &files[file_count];
    if (is_new && module->build_id_length) {
        uintptr_t start = map_tables(image, object, module_path(found->dlfo_link_map));
        if (start)
            file->own =
                (struct cfi_object){start + object->header - image->start, start, start + image->end - image->start};
    }
    memcpy(file->build_id, module->build_id, module->build_id_length);
    file->build_id_length = module->build_id_length;
    __atomic_store_n(&file->generation, generation, __ATOMIC_RELAXED);
    __atomic_store_n(&file->header, object->header, __ATOMIC_RELEASE);
    if (is_new) __atomic_store_n(&file_count, file_count + 1, __ATOMIC_RELEASE);
}

/* Maps the object's tables if they are large. */
static void consider(const struct cfi_object *object, uint32_t generation) {
    struct dl_find_object found;
    struct image image;
    if (object->end - object->start < LEAST || seal_is_set()) return;
    if (_dl_find_object((void *)object->header, &found) || !found.dlfo_link_map) return;
    if (!find_tables(object, &found, &image) || os_load32(&file_count) == FILES || !lock_try(&adding)) return;
    add_file(object, &found, &image, generation);
    lock_let_go(&adding);
}

static const struct cfi_file *known_file(uintptr_t header, uint32_t generation) {
    for (uint32_t i = 0, n = __atomic_load_n(&file_count, __ATOMIC_ACQUIRE); i < n; i++)
        if (__atomic_load_n(&files[i].header, __ATOMIC_ACQUIRE) == header &&
            __atomic_load_n(&files[i].generation, __ATOMIC_RELAXED) == generation)
            return &files[i];
    return NULL;
}

/* Gives back the pages of all mappings, about four times a second at most. The kernel maps a page anew when it is next
 * read, which costs little. */
static void drop_pages(void) {
    uint64_t now = os_now(), before = os_load(&dropped_at);
    if (now - before < PAUSE || seal_is_set() ||
        !__atomic_compare_exchange_n(&dropped_at, &before, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    for (uint32_t i = 0, n = __atomic_load_n(&file_count, __ATOMIC_ACQUIRE); i < n; i++)
        if (files[i].own.header)
            os_call(SYS_madvise, files[i].own.start, files[i].own.end - files[i].own.start, MADV_DONTNEED);
}

struct cfi_rule cfi_file_find(const struct cfi_object *object, uintptr_t pc) {
    uint32_t generation = __atomic_load_n(&generation_of_code, __ATOMIC_ACQUIRE);
    const struct cfi_file *file = known_file(object->header, generation);
    drop_pages();
    if (!file) {
        consider(object, generation);
        file = known_file(object->header, generation);
    }
    if (file && file->own.header) {
        struct cfi_rule rule = cfi_find(&file->own, pc + file->own.header - object->header);
        if (rule.kind != CFI_UNKNOWN) return rule;
    }
    return cfi_find(object, pc);
}

static void cfi_file_abandon(void) { adding = (struct lock){0}; }
FORKED(cfi_file_abandon);
