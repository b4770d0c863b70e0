/* symfile.c — see symfile.h.
 *
 * elfutils finds three things: separate debug files (by build id and by name), symbol tables, and the compressed symbol
 * table of MiniDebugInfo. The functions of a compilation unit are read once, and kept as spans of addresses. For two
 * reasons elfutils' own look-up is not used: it would walk the whole unit for every address, and a hostile ELF file
 * decides how deep it recurses. */
#include "tools/symbols/symfile.h"
#include "tools/base/list.h"

#include <dwarf.h>
#include <errno.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <libiberty/demangle.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

enum { SCOPES_MAX = 64, STEPS_MAX = 20000000, SPANS_BACK = 64, LEAST_MORE = 1 << 20 };

struct span {
    Dwarf_Addr low, high;
    Dwarf_Off die;
};

struct spans {
    struct span *list;
    size_t count, capacity;
};

/* The functions of one compilation unit. */
struct unit {
    Dwarf_Off die;
    struct spans functions;
    UT_hash_handle hh;
};

struct symfile {
    enum symfile_state state;
    int error;
    Dwfl *dwfl;
    Dwfl_Module *module;
    Dwarf *dwarf;
    Dwarf_Addr bias;        /* added to addresses of the debug information */
    struct unit *units;     /* a hash table by `die`: the units whose functions were read */
    struct spans all_units; /* the addresses of all units, if the file has no table of them (.debug_aranges) */
    struct spans symbols;   /* the symbol table; `die` of a span is a symbol_key() here */
    bool all_units_read, symbols_read;
    size_t steps; /* entries of debug information that the present look-up has visited; its limit is STEPS_MAX */
    char *demangled[SYMFILE_NAMES_MAX];
    size_t demangled_count;
};

/* ---- finding files */

static int open_regular(const char *path) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

static bool has_build_id(int fd, const uint8_t *build_id, size_t length) {
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    const void *found;
    ssize_t found_length = elf ? dwelf_elf_gnu_build_id(elf, &found) : -1;
    bool same = found_length == (ssize_t)length && memcmp(found, build_id, length) == 0;
    elf_end(elf);
    return same;
}

/* Writes the path of the folder in which debuginfod's client keeps fetched files. Returns the length of the path, or -1
 * if there is no such folder. */
static int cache_folder(char *path, size_t size) {
    const char *folder = getenv("DEBUGINFOD_CACHE_PATH"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (folder && *folder) return snprintf(path, size, "%s", folder);
    if (xdg && *xdg) return snprintf(path, size, "%s/debuginfod_client", xdg);
    return home && *home ? snprintf(path, size, "%s/.cache/debuginfod_client", home) : -1;
}

static int find_in_cache(const uint8_t *build_id, size_t length) {
    char path[4096];
    int used = cache_folder(path, sizeof path);
    if (used < 0 || (size_t)used + 2 * length + 16 > sizeof path) return -1;
    path[used++] = '/';
    for (size_t i = 0; i < length; i++) used += sprintf(path + used, "%02x", build_id[i]);
    strcpy(path + used, "/debuginfo");
    int fd = open_regular(path);
    if (fd < 0 || has_build_id(fd, build_id, length)) return fd;
    close(fd);
    return -1;
}

static int find_debuginfo(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, const char *file,
                          const char *link, GElf_Word crc, char **found) {
    const unsigned char *build_id;
    GElf_Addr where;
    int fd = dwfl_standard_find_debuginfo(module, user, name, base, file, link, crc, found);
    if (fd >= 0) return fd;
    int length = dwfl_module_build_id(module, &build_id, &where);
    return length > 0 && length <= 64 ? find_in_cache(build_id, (size_t)length) : -1;
}

static char *debuginfo_path; /* NULL: elfutils' default, beside the file and below /usr/lib/debug */
static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = find_debuginfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = &debuginfo_path,
};

/* Has elfutils open the file. Takes over fd. The file is laid out from address 0, so that addresses are those in the
 * file. */
static enum symfile_state read_file(struct symfile *file, int fd, const char *path) {
    file->dwfl = dwfl_begin(&callbacks);
    if (!file->dwfl) {
        close(fd);
        return SYMFILE_DAMAGED;
    }
    dwfl_report_begin(file->dwfl);
    file->module = dwfl_report_elf(file->dwfl, path, path, fd, 0, true);
    if (!file->module) close(fd);
    if (!file->module || dwfl_report_end(file->dwfl, NULL, NULL) != 0) return SYMFILE_DAMAGED;
    file->dwarf = dwfl_module_getdwarf(file->module, &file->bias);
    return file->dwarf ? SYMFILE_FINE : SYMFILE_NAMES_ONLY;
}

/* Tests whether this process can get what elfutils needs: memory to map the file, and a descriptor. elfutils has no
 * error of its own for the lack of a descriptor. Returns 0, or an errno. */
int symfile_lack(size_t size) {
    int error = 0, fd = open("/", O_PATH | O_CLOEXEC);
    size += LEAST_MORE;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        error = errno;
    else
        munmap(memory, size);
    if (fd < 0) return errno;
    close(fd);
    return error;
}

/* Sets the state to SYMFILE_NO_MEANS if this process has too little memory or too few descriptors to read the file, so
 * that the file is not called damaged. */
static void look_for_lack(struct symfile *file, const char *path) {
    struct stat st = {0};
    if (file->state == SYMFILE_FINE) return;
    file->error = symfile_lack(stat(path, &st) == 0 ? (size_t)st.st_size : 0);
    if (file->error) file->state = SYMFILE_NO_MEANS;
}

struct symfile *symfile_open(const char *path, const uint8_t *build_id, size_t build_id_length) {
    struct symfile *file = calloc(1, sizeof *file);
    if (!file) return NULL;
    elf_version(EV_CURRENT);
    int fd = open_regular(path);
    if (fd < 0) {
        file->state = SYMFILE_MISSING;
    } else if (build_id_length && !has_build_id(fd, build_id, build_id_length)) {
        close(fd);
        file->state = SYMFILE_OTHER_BUILD;
    } else {
        file->state = read_file(file, fd, path);
    }
    look_for_lack(file, path);
    return file;
}

enum symfile_state symfile_state(const struct symfile *file) { return file->state; }

int symfile_error(const struct symfile *file) { return file->error; }

static void forget_names(struct symfile *file) {
    while (file->demangled_count) free(file->demangled[--file->demangled_count]);
}

void symfile_close(struct symfile *file) {
    struct unit *unit, *next;
    HASH_ITER(hh, file->units, unit, next) {
        HASH_DEL(file->units, unit);
        free(unit->functions.list);
        free(unit);
    }
    free(file->all_units.list);
    free(file->symbols.list);
    forget_names(file);
    dwfl_end(file->dwfl);
    free(file);
}

/* ---- spans of addresses */

static void spans_add(struct spans *spans, Dwarf_Addr low, Dwarf_Addr high, Dwarf_Off die) {
    if (low >= high) return;
    if (!LIST_GROW(spans->list, spans->count, spans->capacity)) return;
    spans->list[spans->count++] = (struct span){low, high, die};
}

static void spans_add_die(struct spans *spans, Dwarf_Die *die) {
    Dwarf_Addr base, low, high;
    for (ptrdiff_t next = 0; (next = dwarf_ranges(die, next, &base, &low, &high)) > 0;)
        spans_add(spans, low, high, dwarf_dieoffset(die));
}

static int by_low(const void *left, const void *right) {
    const struct span *a = left, *b = right;
    if (a->low != b->low) return a->low < b->low ? -1 : 1;
    return a->die < b->die ? -1 : a->die > b->die;
}

static void spans_sort(struct spans *spans) {
    if (spans->count) qsort(spans->list, spans->count, sizeof *spans->list, by_low);
}

/* The span for an address: the last span that begins at or before the address and reaches it. Of nested spans, this is
 * the innermost. NULL: there is none among the SPANS_BACK spans that are looked at. */
static const struct span *spans_find(const struct spans *spans, Dwarf_Addr address) {
    size_t low = 0, high = spans->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (spans->list[middle].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (int back = 0; low-- && back < SPANS_BACK; back++)
        if (address < spans->list[low].high) return &spans->list[low];
    return NULL;
}

/* ---- finding units and functions */

static bool holds_functions(int tag) {
    return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_structure_type ||
           tag == DW_TAG_class_type || tag == DW_TAG_enumeration_type || tag == DW_TAG_union_type;
}

/* Gets the first child of an entry of debug information. Returns 0 if there is a child. Returns another value if there
 * is none, if it cannot be read, or if the limit of steps is reached. Because of this limit, a walk through circular
 * lists ends. */
static int first_child(struct symfile *file, Dwarf_Die *die, Dwarf_Die *child) {
    return ++file->steps > STEPS_MAX ? 1 : dwarf_child(die, child);
}

static int next_sibling(struct symfile *file, Dwarf_Die *die) {
    return ++file->steps > STEPS_MAX ? 1 : dwarf_siblingof(die, die);
}

static void collect_functions(struct symfile *file, struct spans *spans, Dwarf_Die *parent, int depth) {
    Dwarf_Die die;
    if (depth > SCOPES_MAX || first_child(file, parent, &die) != 0) return;
    do {
        int tag = dwarf_tag(&die);
        if (tag == DW_TAG_subprogram) spans_add_die(spans, &die);
        if (holds_functions(tag)) collect_functions(file, spans, &die, depth + 1);
    } while (next_sibling(file, &die) == 0);
}

static const struct spans *unit_functions(struct symfile *file, Dwarf_Die *cu) {
    struct unit *unit;
    Dwarf_Off offset = dwarf_dieoffset(cu);
    HASH_FIND(hh, file->units, &offset, sizeof offset, unit);
    if (unit) return &unit->functions;
    unit = calloc(1, sizeof *unit);
    if (!unit) return NULL;
    unit->die = offset;
    collect_functions(file, &unit->functions, cu, 0);
    spans_sort(&unit->functions);
    HASH_ADD(hh, file->units, die, sizeof unit->die, unit);
    return &unit->functions;
}

static void read_all_units(struct symfile *file) {
    Dwarf_CU *cu = NULL;
    Dwarf_Die die, skeleton;
    uint8_t type;
    file->all_units_read = true;
    while (dwarf_get_units(file->dwarf, cu, &cu, NULL, &type, &die, &skeleton) == 0 && ++file->steps < STEPS_MAX)
        if (type == DW_UT_compile) spans_add_die(&file->all_units, &die);
    spans_sort(&file->all_units);
}

/* Finds the compilation unit of an address in the file's table of units. Some compilers leave that table out; then all
 * units are searched. */
static bool find_unit(struct symfile *file, Dwarf_Addr address, Dwarf_Die *cu) {
    if (dwarf_addrdie(file->dwarf, address, cu)) return true;
    if (!file->all_units_read) read_all_units(file);
    const struct span *span = spans_find(&file->all_units, address);
    return span && dwarf_offdie(file->dwarf, span->die, cu);
}

/* Finds the scopes in a function in which the address lies, the outermost first: the function itself and functions that
 * are inlined in it. Returns their number. */
static size_t find_scopes(struct symfile *file, Dwarf_Die *function, Dwarf_Addr address, Dwarf_Die scopes[SCOPES_MAX]) {
    size_t count = 1;
    Dwarf_Die scope = *function, die;
    scopes[0] = scope;
    for (bool found = true; found && count < SCOPES_MAX;) {
        found = false;
        if (first_child(file, &scope, &die) != 0) break;
        do {
            int tag = dwarf_tag(&die);
            if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
                 tag == DW_TAG_catch_block) &&
                dwarf_haspc(&die, address) > 0)
                found = true;
        } while (!found && next_sibling(file, &die) == 0);
        if (!found) break;
        scope = die;
        if (dwarf_tag(&die) == DW_TAG_inlined_subroutine) scopes[count++] = die;
    }
    return count;
}

/* ---- naming functions */

/* Demangles names of C++ and Rust. Parameters are left out because they are long; file and line tell overloads
 * apart. */
static const char *symfile_demangle(struct symfile *file, const char *name) {
    char *demangled = NULL;
    if (name[0] == '_' && file->demangled_count < SYMFILE_NAMES_MAX)
        demangled = cplus_demangle(name, DMGL_AUTO | DMGL_ANSI);
    if (!demangled) return name;
    file->demangled[file->demangled_count++] = demangled;
    return demangled;
}

static const char *string_of(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute attribute;
    return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

static uint64_t symfile_number_of(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    return dwarf_formudata(dwarf_attr(die, name, &attribute), &value) == 0 ? value : 0;
}

static const char *die_name(struct symfile *file, Dwarf_Die *die) {
    const char *linkage = string_of(die, DW_AT_linkage_name);
    if (!linkage) linkage = string_of(die, DW_AT_MIPS_linkage_name);
    return linkage ? symfile_demangle(file, linkage) : string_of(die, DW_AT_name);
}

static void take_line(Dwarf_Die *cu, Dwarf_Addr address, struct symfile_name *name) {
    int line;
    Dwarf_Line *found = dwarf_getsrc_die(cu, address);
    if (!found) return;
    name->file = dwarf_linesrc(found, NULL, NULL);
    if (dwarf_lineno(found, &line) == 0 && line > 0) name->line = (uint32_t)line;
}

static void take_call(Dwarf_Die *cu, Dwarf_Die *inlined, struct symfile_name *name) {
    Dwarf_Files *files;
    size_t count;
    uint64_t index = symfile_number_of(inlined, DW_AT_call_file);
    if (dwarf_getsrcfiles(cu, &files, &count) == 0 && index < count)
        name->file = dwarf_filesrc(files, index, NULL, NULL);
    name->line = (uint32_t)symfile_number_of(inlined, DW_AT_call_line);
}

static size_t names_by_debug(struct symfile *file, Dwarf_Addr address, struct symfile_name *names) {
    Dwarf_Die cu, function, scopes[SCOPES_MAX];
    if (!file->dwarf || !find_unit(file, address, &cu)) return 0;
    take_line(&cu, address, &names[0]);
    const struct spans *functions = unit_functions(file, &cu);
    const struct span *span = functions ? spans_find(functions, address) : NULL;
    if (!span || !dwarf_offdie(file->dwarf, span->die, &function)) return 1;
    size_t count = find_scopes(file, &function, address, scopes);
    for (size_t i = 0; i < count; i++) { /* scopes are sorted outermost first */
        names[i].function = die_name(file, &scopes[count - 1 - i]);
        if (i) take_call(&cu, &scopes[count - i], &names[i]);
    }
    return count;
}

/* The key of a symbol: its rank, and its index in the symbol table. Of several symbols at an address, the one with the
 * highest key gives the name. Global symbols rank higher than weak ones, and weak ones higher than local ones. */
static Dwarf_Off symbol_key(const GElf_Sym *symbol, int index) {
    int binding = GELF_ST_BIND(symbol->st_info);
    uint64_t rank = binding == STB_GLOBAL ? 2 : binding == STB_WEAK ? 1 : 0;
    return rank << 32 | (uint32_t)index;
}

/* Reads the symbol table once, because elfutils would search the whole table for each address, and some tables have
 * half a million symbols. */
static void read_symbols(struct symfile *file) {
    int count = dwfl_module_getsymtab(file->module);
    struct spans *symbols = &file->symbols;
    file->symbols_read = true;
    for (int i = 1; i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        if (!dwfl_module_getsym_info(file->module, i, &symbol, &address, NULL, NULL, NULL)) continue;
        int type = GELF_ST_TYPE(symbol.st_info);
        if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)) continue;
        spans_add(symbols, address, address + (symbol.st_size ? symbol.st_size : 1), symbol_key(&symbol, i));
    }
    spans_sort(symbols);
    for (size_t i = 0; i + 1 < symbols->count; i++) /* assembly without sizes: the symbol reaches up to the next one */
        if (symbols->list[i].high == symbols->list[i].low + 1) symbols->list[i].high = symbols->list[i + 1].low;
}

static const char *name_by_table(struct symfile *file, Dwarf_Addr address) {
    GElf_Sym symbol;
    GElf_Addr start;
    if (!file->symbols_read) read_symbols(file);
    const struct span *span = spans_find(&file->symbols, address);
    if (!span) return NULL;
    const char *name =
        dwfl_module_getsym_info(file->module, (int)(uint32_t)span->die, &symbol, &start, NULL, NULL, NULL);
    return name && *name ? symfile_demangle(file, name) : NULL;
}

size_t symfile_lookup(struct symfile *file, uint64_t address, struct symfile_name names[SYMFILE_NAMES_MAX]) {
    forget_names(file);
    memset(names, 0, SYMFILE_NAMES_MAX * sizeof *names);
    file->steps = 0;
    if (file->state != SYMFILE_FINE && file->state != SYMFILE_NAMES_ONLY) return 0;
    size_t count = names_by_debug(file, address - file->bias, names), last = count ? count - 1 : 0;
    if (!names[last].function) names[last].function = name_by_table(file, address);
    return names[0].function || names[0].file ? last + 1 : 0;
}
