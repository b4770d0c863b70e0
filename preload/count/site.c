/* site.c — see site.h. Modules are found by the loader's lock-free _dl_find_object, and compared by path, so that
 * one that is unloaded and loaded again keeps its id. Two threads that see a module first at the same moment may
 * both record it; readers join records of one path. */
#include "preload/count/site.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#include "preload/count/counters.h"
#include "preload/count/fold.h"
#include "preload/ledger/ledger.h"
#include "preload/count/pin.h"
#include "preload/base/lock.h"
#include "preload/stacks/rule.h"
#include "preload/stacks/tree.h"

uint32_t site_code_generation, site_generation;

void site_forget_stacks(void) { __atomic_fetch_add(&site_generation, 1, __ATOMIC_SEQ_CST); }

void site_forget_code(void) {
    rule_forget();
    __atomic_fetch_add(&site_code_generation, 1, __ATOMIC_RELEASE);
    site_forget_stacks();
}

static const char *program_path = "";

static struct series modules = {
    .type = SNAP_MODULE, .record_size = sizeof(struct snap_module), .first_bits = 7, .limit = 1 << 16};
static struct series sites = {
    .type = SNAP_SITE, .record_size = sizeof(struct snap_site), .first_bits = 9, .limit = SITE_LIMIT};
static struct ids *free_sites; /* NULL: there never were any */
static struct ids mapping_sites;

/* Sites with a tag, by tag and stack. */
static bool tagged_equal(uint32_t site, const void *key);
static uint32_t tagged_hash(uint32_t site);
static const void *tagged_record(uint32_t site);
static struct index tagged = {
    .equal = tagged_equal, .hash = tagged_hash, .record = tagged_record, .may_grow = site_has_memory};
static bool tagged_ready;
static struct lock readying;

/* What a module id was given for, to find it again without reading strings in the ledger. */
static struct module_key {
    uintptr_t start, end;
    uint64_t path_hash;
} keys[1 << 16];

static uint64_t hash_text(const char *text) {
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *text; text++) h = (h ^ (uint8_t)*text) * 0x100000001b3u;
    return h;
}

static void copy_build_id(struct snap_module *module, const char *note, size_t length) {
    size_t at = 0;
    while (at + sizeof(Elf64_Nhdr) <= length) {
        const Elf64_Nhdr *n = (const void *)(note + at);
        size_t name = at + sizeof *n, desc = name + os_round_up(n->n_namesz, 4);
        if (desc + n->n_descsz > length) return;
        if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && !memcmp(note + name, "GNU", 4) &&
            n->n_descsz <= sizeof module->build_id) {
            memcpy(module->build_id, note + desc, n->n_descsz);
            module->build_id_length = n->n_descsz;
            return;
        }
        at = desc + os_round_up(n->n_descsz, 4);
    }
}

/* The module is mapped: code of it is on our stack. Its ELF header lies at the start of its first segment. */
static void read_elf(struct snap_module *module, const char *start, uintptr_t bias) {
    const Elf64_Ehdr *elf = (const void *)start;
    if (memcmp(elf->e_ident, ELFMAG, SELFMAG) || elf->e_phentsize != sizeof(Elf64_Phdr) ||
        elf->e_phoff + (size_t)elf->e_phnum * sizeof(Elf64_Phdr) > OS_PAGE)
        return;
    const Elf64_Phdr *headers = (const void *)(start + elf->e_phoff);
    for (int i = 0; i < elf->e_phnum; i++)
        if (headers[i].p_type == PT_NOTE && bias + headers[i].p_vaddr + headers[i].p_memsz <= module->end)
            copy_build_id(module, (const char *)(bias + headers[i].p_vaddr), headers[i].p_memsz);
}

const char *site_path(const struct link_map *map) { return map->l_name && map->l_name[0] ? map->l_name : program_path; }

static uint32_t add_module(const struct dl_find_object *found, const char *path) {
    uint32_t id = series_take(&modules);
    struct snap_module *module = series_at(&modules, id);
    if (!module) {
        ledger_lost(SNAP_LOST_MODULES);
        return 0;
    }
    module->start = (uintptr_t)found->dlfo_map_start;
    module->end = (uintptr_t)found->dlfo_map_end;
    module->bias = found->dlfo_link_map->l_addr;
    module->generation = site_code_generation;
    read_elf(module, found->dlfo_map_start, module->bias);
    module->path = ledger_string(path);
    keys[id].end = module->end;
    keys[id].path_hash = hash_text(path);
    __atomic_store_n(&keys[id].start, module->start, __ATOMIC_RELEASE);
    return id + 1;
}

uint32_t site_module(uintptr_t address) {
    struct dl_find_object found;
    if (_dl_find_object((void *)address, &found) || !found.dlfo_link_map) return 0;
    const char *path = site_path(found.dlfo_link_map);
    uint64_t hash = hash_text(path);
    for (uint64_t i = 0, n = os_load(&modules.next); i < n; i++)
        if (__atomic_load_n(&keys[i].start, __ATOMIC_ACQUIRE) == (uintptr_t)found.dlfo_map_start &&
            keys[i].end == (uintptr_t)found.dlfo_map_end && keys[i].path_hash == hash)
            return (uint32_t)i + 1;
    return add_module(&found, path);
}

/* The one module that has such an address tells its upper half. */
uintptr_t site_code(uint32_t low) {
    uintptr_t found = 0;
    for (uint64_t i = 0, n = os_load(&modules.next); i < n; i++) {
        uintptr_t start = __atomic_load_n(&keys[i].start, __ATOMIC_ACQUIRE);
        uintptr_t address = start + (uint32_t)(low - (uint32_t)start);
        if (!start || address >= keys[i].end || address == found || site_module(address) != i + 1) continue;
        if (found) return 0;
        found = address;
    }
    return found;
}

static uint64_t memory_limit;
static uint32_t memory_looks, memory_full; /* for which (enum site_memory), at the last look that counted */

static uint64_t memory_used(void) {
    return tree_bytes() + rule_bytes() + counters_bytes() + os_load(&sites.next) * sizeof(struct snap_site) +
           index_bytes(&tagged);
}

/* What cannot become free again stops last, and of frames there are always some. */
static uint32_t full_for(void) {
    uint64_t share = memory_limit / 32, rules = rule_bytes(), used = memory_used();
    /* The first time it is not known how much will go while more is looked for. */
    bool soon = used >= memory_limit - 3 * share - (ids_known(&free_sites) ? share / 2 : 2 * share);
    return (uint32_t)soon << SITE_SOON | (uint32_t)(used >= memory_limit - 3 * share) << SITE_STACKS |
           (uint32_t)(used >= memory_limit - 2 * share) << SITE_ENDS |
           (uint32_t)(used >= memory_limit && rules >= 2 * share) << SITE_FRAMES;
}

/* It is added up now and then only: in between, some KiB more may be taken. */
bool site_memory_full(enum site_memory of) {
    enum { LOOKS = 32 };
    uint32_t n = __atomic_load_n(&memory_looks, __ATOMIC_RELAXED);
    __atomic_store_n(&memory_looks, n + 1, __ATOMIC_RELAXED);
    if (n % LOOKS == 0) __atomic_store_n(&memory_full, full_for(), __ATOMIC_RELAXED);
    return __atomic_load_n(&memory_full, __ATOMIC_RELAXED) >> of & 1;
}

bool site_has_memory(uint64_t bytes) { return memory_used() + bytes < memory_limit - memory_limit / 8; }

static uint32_t new_id(void) {
    struct ids *free = ids_known(&free_sites);
    uint32_t id = free && ledger_is_ours() ? ids_take(free, SNAP_SITE_FIRST) : IDS_NONE;
    bool few = id == IDS_NONE || fold_is_short(ids_count(free), os_load(&sites.next));
    if (few && site_memory_full(SITE_SOON)) fold_want();
    return id == IDS_NONE ? series_take(&sites) : id;
}

uint32_t site_new(uint32_t tag, uint32_t stack, uint32_t module) {
    uint32_t id = new_id();
    struct snap_site *site = series_at(&sites, id);
    if (!site) {
        ledger_lost(SNAP_LOST_SITES);
        return SNAP_SITE_UNKNOWN;
    }
    __atomic_store_n(&site->word, snap_site(tag, stack, module).word, __ATOMIC_RELEASE);
    return id;
}

struct snap_site site_record(uint32_t site) {
    const struct snap_site *record = series_at(&sites, site);
    return (struct snap_site){record ? os_load(&record->word) : 0};
}

const struct snap_module *site_module_record(uint32_t module) {
    return module ? series_at(&modules, module - 1) : NULL;
}

void site_close(uint32_t site) {
    struct snap_site *record = series_at(&sites, site);
    __atomic_store_n(&record->word, SNAP_SITE_FREE, __ATOMIC_SEQ_CST);
}

bool site_make_ready(void) { return ids_made(&free_sites) != NULL; }

void site_free(uint32_t first, uint64_t bits) { ids_add_word(free_sites, first / 64, bits); }

uint64_t site_free_count(void) {
    const struct ids *free = ids_known(&free_sites);
    return free ? ids_count(free) : 0;
}

/* Of code that is loaded: what its frame says, which is known by now, is found sooner than the module itself. */
static uint32_t module_at(uintptr_t address) {
    struct rule rule = rule_of(address);
    return rule.frame == RULE_NO_FRAME ? site_module(address) : rule_frame(rule.frame)->module;
}

static uint32_t make_site(uint32_t stack, uint32_t module) {
    uint32_t *known = tree_site(stack), none = 0, site = site_new(0, stack, module);
    if (site == SNAP_SITE_UNKNOWN) return site;
    if (__atomic_compare_exchange_n(known, &none, site, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return site;
    return none; /* another thread was faster: its site it is. fold.c may know ours already, and makes it free */
}

/* Of the frame that calls on from a place, whose code may be gone; 0 where it is Python code. */
static uint32_t module_of(uint32_t place) {
    const struct snap_frame *frame = rule_frame(tree_frame(place));
    return frame && !(frame->code & ~SNAP_FRAME_INTERRUPTED) ? frame->module : 0;
}

static uint32_t site_at(uint32_t place) {
    uint32_t stack = tree_stack_known(place);
    return stack == TREE_NONE ? 0 : __atomic_load_n(tree_site(stack), __ATOMIC_RELAXED);
}

static uint32_t make_outer(uint32_t place) {
    uint32_t stack = tree_stack(place);
    if (stack == TREE_NONE) stack = place = TREE_ROOT;
    uint32_t site = __atomic_load_n(tree_site(stack), __ATOMIC_RELAXED);
    return site ? site : make_site(stack, module_of(place));
}

/* From a place outwards to the beginning of its run; 0: there is none. */
static uint32_t site_in_run(uint32_t place) {
    uint32_t site = 0;
    for (uint32_t first = tree_first(place); !site && place >= first; place--) site = site_at(place);
    return site;
}

/* Many come the same way. */
uint32_t site_outer(uint32_t place, struct site_outer_found *found) {
    enum { WAY = 16 };
    uint32_t way[WAY], length = 0, outermost = TREE_ROOT, site = 0;
    for (; place != TREE_ROOT && !site; place = tree_outside(place)) {
        uint32_t i = place % SITE_OUTER_FOUND;
        site = found && found->at[i].place == place ? found->at[i].site : site_in_run(place);
        if (length < WAY) way[length++] = place;
        outermost = place;
    }
    if (!site) site = make_outer(outermost == TREE_ROOT ? TREE_ROOT : tree_first(outermost));
    for (uint32_t i = 0; found && i < length; i++) {
        found->at[way[i] % SITE_OUTER_FOUND].place = way[i];
        found->at[way[i] % SITE_OUTER_FOUND].site = site;
    }
    return site;
}

uint32_t site_for_stack(uint32_t stack, uintptr_t address) {
    fold_note_losses();
    uint32_t site = __atomic_load_n(tree_site(stack), __ATOMIC_RELAXED);
    if (likely(site)) return site;
    if (likely(site_free_count() || !site_memory_full(SITE_STACKS))) return make_site(stack, module_at(address));
    fold_want();
    ledger_lost(SNAP_LOST_STACKS);
    return site_outer(stack, NULL);
}

/* --- under a tag --- */

enum { KEY_BITS = SNAP_SITE_TAG_BITS + SNAP_SITE_STACK_BITS };

/* Tag and stack of a site: all of its word but the module, which follows from the stack. */
static uint64_t key_in(uint64_t word) { return word & (((uint64_t)1 << KEY_BITS) - 1); }
static uint32_t hash_of_key(uint64_t key) { return (uint32_t)((key ^ key >> 32) * 0x9E3779B97F4A7C15u >> 32); }

static bool tagged_equal(uint32_t site, const void *key) {
    return key_in(site_record(site).word) == *(const uint64_t *)key;
}
static uint32_t tagged_hash(uint32_t site) { return hash_of_key(key_in(site_record(site).word)); }
static const void *tagged_record(uint32_t site) { return series_at(&sites, site); }

static bool make_tagged_ready(void) {
    if (likely(__atomic_load_n(&tagged_ready, __ATOMIC_ACQUIRE))) return true;
    if (!lock_wait(&readying)) return false;
    if (!tagged_ready) __atomic_store_n(&tagged_ready, index_begin(&tagged), __ATOMIC_RELEASE);
    lock_let_go(&readying);
    return tagged_ready;
}

/* Of two threads that make one at once, the site of one is never used: fold.c finds it empty. */
static uint32_t find_tagged(uint32_t tag, uint32_t stack, uint32_t module, bool make) {
    uint64_t key = snap_site(tag, stack, 0).word;
    uint32_t site = index_find(&tagged, hash_of_key(key), &key);
    if (site != INDEX_NONE || !make) return site;
    site = site_new(tag, stack, module);
    if (tags_at(tag).run) fold_note_run_site();
    return site == SNAP_SITE_UNKNOWN ? INDEX_NONE : index_insert(&tagged, hash_of_key(key), &key, site);
}

/* Where there is no room for the stack, it is the owner's all the same. */
uint32_t site_tagged(uint32_t site, uint32_t tag) {
    struct snap_site record = site_record(site);
    uint32_t stack = snap_site_stack(record), found = INDEX_NONE;
    if (!make_tagged_ready()) return site;
    if (record.word != SNAP_SITE_FREE) {
        bool room = site_free_count() || !site_memory_full(SITE_STACKS);
        found = find_tagged(tag, stack, snap_site_module(record), room);
        if (found == INDEX_NONE && !room) {
            fold_want();
            ledger_lost(SNAP_LOST_STACKS);
        }
    }
    if (found == INDEX_NONE) found = find_tagged(tag, TREE_ROOT, 0, true);
    return found == INDEX_NONE ? site : found;
}

static uint32_t site_untagged(struct snap_site record) {
    uint32_t stack = snap_site_stack(record);
    if (account_here && !stack) return account_here;
    uint32_t site = __atomic_load_n(tree_site(stack), __ATOMIC_RELAXED);
    return site ? site : make_site(stack, snap_site_module(record));
}

static bool is_under(uint32_t site, struct snap_tag tag) {
    struct snap_tag has = tags_at(snap_site_tag(site_record(site)));
    return has.model == tag.model && has.node == tag.node && has.run == tag.run;
}

/* Asked twice, it may answer with another: fold.c hides sites, and shows those again that are in use. */
bool site_of_model(uint32_t site, uint32_t model, uint32_t *other) {
    struct snap_site record = site_record(site);
    struct snap_tag tag = tags_at(snap_site_tag(record));
    tag.model = model;
    uint32_t number = tags_number(tag);
    *other = number ? site_tagged(site, number) : site_untagged(record);
    if (!is_under(*other, tag)) return false; /* there is no room for the tag, or for a site of it */
    if (site_is_of_mapping(site)) ids_add(&mapping_sites, *other);
    return true;
}

uint32_t site_known_tagged(struct snap_site record) {
    uint64_t key = key_in(record.word);
    uint32_t site = tagged_ready ? index_find(&tagged, hash_of_key(key), &key) : INDEX_NONE;
    return site == INDEX_NONE ? 0 : site;
}

void site_show_tagged(uint32_t site) {
    uint64_t key = key_in(site_record(site).word);
    index_insert(&tagged, hash_of_key(key), &key, site);
}

bool site_hide_tagged(const struct ids *stay, struct ids *hidden, struct index_walk *walk) {
    if (!tagged_ready) return true;
    if (!index_hold(&tagged)) return false;
    bool done = index_prune(&tagged, stay, hidden, walk);
    index_let_go(&tagged);
    return done;
}

/* A mapping's record may refer to its site although nothing is counted there: reserved and file mappings. */
static uint32_t site_that_stays(struct caller caller, bool tagged_too) {
    enum pin pin = pin_begin(caller.slot);
    bool here = account_here && !sample_bytes;
    uint32_t site = here ? account_here : stack_site(caller.slot, caller.address, caller.rbp);
    if (unlikely(tags_used && tagged_too)) site = tags_site(site);
    ids_add(&mapping_sites, site);
    pin_end(pin);
    return site;
}

uint32_t site_of_mapping(struct caller caller) { return site_that_stays(caller, true); }

uint32_t site_of_call(struct caller caller) { return site_that_stays(caller, false); }

uint32_t site_of_place(uintptr_t address) {
    enum pin pin = pin_begin(CALLER.slot);
    uint32_t site = account_here && !sample_bytes ? account_here : stack_site_of_place(address);
    ids_add(&mapping_sites, site);
    pin_end(pin);
    return site;
}

void site_keep(uint32_t site) { ids_add(&mapping_sites, site); }

uintptr_t site_caller(uint32_t site, bool (*skip)(const void *address)) {
    uintptr_t innermost = 0;
    for (uint32_t place = snap_site_stack(site_record(site)); place != TREE_ROOT; place = tree_outer(place)) {
        const struct snap_frame *frame = tree_frame(place) == SNAP_RUN_FRAME ? NULL : rule_frame(tree_frame(place));
        if (!frame || frame->code & ~SNAP_FRAME_INTERRUPTED) continue;
        if (!innermost) innermost = frame->address;
        if (!skip((const void *)frame->address)) return frame->address;
    }
    return innermost;
}

bool site_is_of_mapping(uint32_t site) { return ids_has(&mapping_sites, site); }

uint32_t site_count(void) { return (uint32_t)os_load(&sites.next); }

void site_begin(uint32_t stacks, uint64_t memory, const char *program) {
    memory_limit = memory;
    program_path = program;
    tags_begin();
    for (int fixed = 0; fixed < SNAP_SITE_FIRST; fixed++)
        site_new(0, 0, 0); /* SNAP_SITE_UNKNOWN, SNAP_SITE_INHERITED */
    bool recorded = stacks != SNAP_STACKS_NONE && tree_begin() && rule_begin();
    if (!recorded) sample_bytes = 0;
    if (recorded) fold_begin();
    account_here = recorded && !sample_bytes ? 0 : site_new(0, 0, 0); /* SNAP_SITE_NOT_SAMPLED */
}

void site_abandon(void) {
    uint64_t known = os_load(&modules.next);
    memset(keys, 0, known * sizeof *keys);
    series_reset(&modules);
    tags_abandon();
    index_reset(&tagged);
    tagged_ready = false;
    readying = (struct lock){0};
    series_reset(&sites);
    free_sites = NULL;
    memory_looks = memory_full = 0;
    ids_clear(&mapping_sites);
    fold_abandon();
    account_here = 0;
    tree_abandon();
    rule_abandon();
}
