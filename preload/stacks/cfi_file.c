/* cfi_file.c — see cfi_file.h. Unwind tables contain distances only: from an entry to its function, and from the header
 * to both. So cfi_find can also read a copy of the tables that lies elsewhere, if the address of the code is moved by
 * the same distance. memstow makes such a copy by mapping the library's file once more. This mapping is never removed,
 * because a thread may be reading it. If pages of it are given back meanwhile, the kernel reads them again. A library
 * that is loaded again uses the same mapping, but only after its file has been compared with the memory again. */
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
    FILES = 1024,
    LEAST = 1 << 18,          /* tables with fewer bytes get no mapping */
    PAUSE = 250 * 1000 * 1000 /* ns; pages are not given back more often than once in this time */
};

/* An object with large tables, as it is loaded in one generation of code. The first `file_count` entries of `files`
 * never change. */
static struct cfi_file {
    uintptr_t header;      /* the address of .eh_frame_hdr in the loader's mapping */
    uint32_t generation;   /* generation_of_code; the entry is not used in a later generation */
    struct cfi_object own; /* the tables in memstow's mapping; own.header is 0 if there is no such mapping */
    bool maps;             /* the mapping was made for this entry; entries of later generations use it, too */
    /* The file that is mapped, the time of its latest change, and where its tables begin in it. */
    dev_t device;
    ino_t inode;
    struct timespec changed;
    uint64_t offset;
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
 * same as in memory, and the file must be long enough to contain the tables. *status: the file's status. */
static bool is_loaded_from(const struct image *image, int fd, struct stat *status) {
    const Elf64_Ehdr *elf = image->elf;
    if (os_stat_fd(fd, status) < 0 || !S_ISREG(status->st_mode) ||
        (uint64_t)status->st_size < image->offset + (image->end - image->start) ||
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
 * be a mapping of another file: if another thread has closed memstow's descriptor and then opened a file, that file has
 * got the descriptor's number. */
static bool is_mapped(const struct image *image, const struct cfi_object *object, uintptr_t at) {
    char header[256], loaded[256], last;
    size_t length = image->end - object->header < sizeof header ? image->end - object->header : sizeof header;
    return os_peek(header, (const void *)(at + object->header - image->start), length) &&
           os_peek(loaded, (const void *)object->header, length) && memcmp(header, loaded, length) == 0 &&
           os_peek(&last, (const void *)(at + image->end - image->start - 1), 1);
}

/* Maps the tables of an open file, and returns where. 0: they cannot be mapped. If the kernel refuses, the reserved
 * addresses are not unmapped here: some kernels have unmapped them before they refuse, and another thread may have
 * mapped something there since. */
static uintptr_t map_tables(const struct image *image, const struct cfi_object *object, int fd) {
    size_t length = image->end - image->start;
    uintptr_t at = (uintptr_t)os_reserve_apart(length);
    if (!at || os_call(SYS_mmap, at, length, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, image->offset) != (long)at)
        return 0;
    if (is_mapped(image, object, at)) return at;
    os_unmap((void *)at, length);
    return 0;
}

/* --- files that are known --- */

static bool is_same_file(const struct cfi_file *file, const struct image *image, const struct stat *status) {
    return file->maps && file->device == status->st_dev && file->inode == status->st_ino &&
           file->offset == image->offset && file->own.end - file->own.start == image->end - image->start &&
           file->changed.tv_sec == status->st_ctim.tv_sec && file->changed.tv_nsec == status->st_ctim.tv_nsec;
}

/* Where an earlier entry has mapped the tables of this file. 0: none has. */
static uintptr_t tables_of(const struct image *image, const struct cfi_object *object, const struct stat *status) {
    for (uint32_t i = 0; i < file_count; i++)
        if (is_same_file(&files[i], image, status) && is_mapped(image, object, files[i].own.start))
            return files[i].own.start;
    return 0;
}

/* Adds an entry for the object. If its tables have no mapping, own.header of the entry is 0. */
static void add_file(const struct cfi_object *object, const struct dl_find_object *found, const struct image *image,
                     uint32_t generation) {
    const struct snap_module *module = module_record(module_at(object->header));
    const char *path = module_path(found->dlfo_link_map);
    struct cfi_file file = {.header = object->header, .generation = generation};
    struct stat status;
    bool may_map = module && module->build_id_length && path[0] == '/';
    int fd = may_map ? os_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0) : -1;
    if (fd >= 0 && is_loaded_from(image, fd, &status)) {
        uintptr_t start = tables_of(image, object, &status);
        file.maps = !start && (start = map_tables(image, object, fd));
        if (start)
            file.own =
                (struct cfi_object){start + object->header - image->start, start, start + image->end - image->start};
        file.device = status.st_dev;
        file.inode = status.st_ino;
        file.changed = status.st_ctim;
        file.offset = image->offset;
    }
    if (fd >= 0) os_close(fd);
    files[file_count] = file;
    __atomic_store_n(&file_count, file_count + 1, __ATOMIC_RELEASE);
}

static const struct cfi_file *known_file(uintptr_t header, uint32_t generation) {
    for (uint32_t i = __atomic_load_n(&file_count, __ATOMIC_ACQUIRE); i-- > 0;)
        if (files[i].header == header && files[i].generation == generation) return &files[i];
    return NULL;
}

/* Adds an entry for the object if its tables are large. Adds none while a library is being unloaded: before the
 * generation changes again, another library may be loaded at the same address, and an entry of the unloaded library
 * would be taken for its entry. */
static void consider(const struct cfi_object *object, uint32_t generation) {
    struct dl_find_object found;
    struct image image;
    if (seal_is_set() || os_load32(&generation_unloading)) return;
    if (_dl_find_object((void *)object->header, &found) || !found.dlfo_link_map) return;
    if (!find_tables(object, &found, &image) || os_load32(&file_count) == FILES || !lock_try(&adding)) return;
    if (file_count < FILES && !known_file(object->header, generation)) add_file(object, &found, &image, generation);
    lock_let_go(&adding);
}

/* Gives back the pages of all mappings, about four times a second at most. The kernel maps a page anew when it is next
 * read, which costs little. */
static void drop_pages(void) {
    uint64_t before = os_load(&dropped_at), now = os_now();
    if (now < before + PAUSE || seal_is_set() ||
        !__atomic_compare_exchange_n(&dropped_at, &before, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    for (uint32_t i = 0, n = __atomic_load_n(&file_count, __ATOMIC_ACQUIRE); i < n; i++)
        if (files[i].maps)
            os_call(SYS_madvise, files[i].own.start, files[i].own.end - files[i].own.start, MADV_DONTNEED);
}

struct cfi_rule cfi_file_find(const struct cfi_object *object, uintptr_t pc) {
    uint32_t generation = __atomic_load_n(&generation_of_code, __ATOMIC_ACQUIRE);
    drop_pages();
    if (object->end - object->start < LEAST) return cfi_find(object, pc);
    const struct cfi_file *file = known_file(object->header, generation);
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

/* In a forked child: resets the lock, which another thread of the parent may have held. An entry that this thread was
 * adding is not counted in file_count yet, so nobody reads it. */
static void cfi_file_abandon(void) { adding = (struct lock){0}; }
FORKED(cfi_file_abandon);
