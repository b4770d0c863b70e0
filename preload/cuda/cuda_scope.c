/* cuda_scope.c — see cuda_scope.h. The loader does not tell which objects it loaded together. But if two objects were
 * loaded together, one depends on the other, or a third object depends on both. So a name is searched in the dependency
 * tree of the caller, and then in those of all objects that depend on the caller. */
#include "preload/cuda/cuda_scope.h"

#include <dlfcn.h>
#include <string.h>

#include "preload/shared/os.h"
#include "preload/base/symbol.h"

const struct link_map *cuda_scope_object(uintptr_t address) {
    struct dl_find_object object;
    return _dl_find_object((void *)address, &object) ? NULL : object.dlfo_link_map;
}

static const char *without_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *cuda_scope_file(const struct link_map *object) {
    return object && object->l_name ? without_folder(object->l_name) : "";
}

static const struct link_map *cuda_scope_ourselves(void) {
    static const struct link_map *own;
    if (unlikely(!own)) own = cuda_scope_object((uintptr_t)&cuda_scope_object);
    return own;
}

bool cuda_scope_is_ours(const void *address) {
    return address && cuda_scope_object((uintptr_t)address) == cuda_scope_ourselves();
}

/* --- the list of loaded objects --- */

/* `work` is a function that reads the list of loaded objects. `context` is its argument. While `work` runs, nothing is
 * loaded or unloaded. */
struct locked {
    void (*work)(const struct link_map *first, void *context);
    void *context;
};

static int with_lock(struct dl_phdr_info *info, size_t size, void *context) {
    (void)info, (void)size;
    const struct locked *self = context;
    const struct link_map *first = cuda_scope_ourselves();
    while (first && first->l_prev) first = first->l_prev;
    self->work(first, self->context);
    return 1;
}

static void lock_and(void (*work)(const struct link_map *first, void *context), void *context) {
    struct locked self = {work, context};
    LIBC(dl_iterate_phdr)(with_lock, &self);
}

/* The symbol's address in the object, or NULL. memstow itself is skipped, and so is an object that is being loaded: it
 * is in the list before it is complete. */
static void *symbol_in(const struct link_map *object, const char *name) {
    if (object == cuda_scope_ourselves() || cuda_scope_object((uintptr_t)object->l_ld) != object) return NULL;
    return (void *)symbol_find(object, name, NULL);
}

struct any {
    const char *name;
    void *found;
    uint32_t count;
};

static void look_in_all(const struct link_map *object, void *context) {
    struct any *self = context;
    for (; object; object = object->l_next) {
        void *found = symbol_in(object, self->name);
        if (!self->found) self->found = found;
        self->count += found != NULL;
    }
}

void *cuda_scope_any(const char *name, uint32_t *count) {
    struct any self = {.name = name};
    lock_and(look_in_all, &self);
    if (count) *count = self.count;
    return self.found;
}

/* --- the dependencies of an object --- */

/* The loader makes addresses in the dynamic section absolute, except where it cannot write to the section. */
static const char *strings_of(const struct link_map *object) {
    for (const ElfW(Dyn) *entry = object->l_ld; entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_STRTAB)
            return (const char *)(entry->d_un.d_ptr < object->l_addr ? object->l_addr + entry->d_un.d_ptr
                                                                     : entry->d_un.d_ptr);
    return NULL;
}

/* The text of the index-th entry with this tag in the dynamic section. */
static const char *text_at(const struct link_map *object, ElfW(Sxword) tag, uint32_t index) {
    const char *strings = strings_of(object);
    for (const ElfW(Dyn) *entry = object->l_ld; strings && entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag && index-- == 0) return strings + entry->d_un.d_val;
    return NULL;
}

static bool is_called(const struct link_map *object, const char *needed) {
    const char *own = text_at(object, DT_SONAME, 0);
    return !strcmp(cuda_scope_file(object), without_folder(needed)) || (own && !strcmp(own, needed));
}

/* An object is identified by its index in the loader's list of objects. Objects after the first 1024 are ignored. */
enum { OBJECTS_MOST = 1024, NO_OBJECT = UINT16_MAX };

/* A search for `name` through the objects of `queue`. `first`: the first object in the loader's list. */
struct tree {
    const char *name;
    const struct link_map *first;
    void *found;
    uint32_t count, next;             /* objects in the queue; the next one to look at */
    uint64_t seen[OBJECTS_MOST / 64]; /* a bit for each object: it is or was in the queue */
    uint16_t queue[OBJECTS_MOST];     /* breadth first, like the loader */
};

static const struct link_map *object_in(const struct tree *self, uint16_t index) {
    const struct link_map *object = self->first;
    while (object && index--) object = object->l_next;
    return object;
}

static uint16_t needed_in(const struct tree *self, const char *needed) {
    uint16_t index = 0;
    for (const struct link_map *object = self->first; object && index < OBJECTS_MOST; object = object->l_next, index++)
        if (is_called(object, needed)) return index;
    return NO_OBJECT;
}

static bool has_seen(const struct tree *self, uint16_t index) { return self->seen[index / 64] >> index % 64 & 1; }

static void cuda_scope_enter(struct tree *self, uint16_t index) {
    if (index >= OBJECTS_MOST || has_seen(self, index)) return;
    self->seen[index / 64] |= (uint64_t)1 << index % 64;
    self->queue[self->count++] = index;
}

/* Looks for the name in each object of the queue, and puts the object's dependencies into the queue, until the name is
 * found. */
static void look_through(struct tree *self) {
    while (self->next < self->count && !self->found) {
        const struct link_map *object = object_in(self, self->queue[self->next++]);
        self->found = symbol_in(object, self->name);
        const char *needed;
        for (uint32_t i = 0; (needed = text_at(object, DT_NEEDED, i)); i++)
            cuda_scope_enter(self, needed_in(self, needed));
    }
}

static bool needs_any(const struct tree *self, const struct link_map *object) {
    const char *needed;
    for (uint32_t i = 0; (needed = text_at(object, DT_NEEDED, i)); i++) {
        uint16_t index = needed_in(self, needed);
        if (index != NO_OBJECT && has_seen(self, index)) return true;
    }
    return false;
}

/* Adds objects that depend on an object in the queue, until there are no more. */
static void enter_dependents(struct tree *self) {
    for (uint32_t before = 0; before != self->count;) {
        uint16_t index = 0;
        before = self->count;
        for (const struct link_map *object = self->first; object && index < OBJECTS_MOST; object = object->l_next)
            if (!has_seen(self, index++) && needs_any(self, object)) cuda_scope_enter(self, (uint16_t)(index - 1));
    }
}

struct wanted {
    const char *name;
    const struct link_map *caller;
    void *found;
};

static void look_around(const struct link_map *first, void *context) {
    struct wanted *wanted = context;
    struct tree own = {.name = wanted->name, .first = first}, around = own;
    uint16_t index = 0;
    for (const struct link_map *object = first; object && object != wanted->caller; object = object->l_next) index++;
    cuda_scope_enter(&own, index);
    look_through(&own);
    if (!own.found) {
        cuda_scope_enter(&around, index);
        enter_dependents(&around);
        look_through(&around);
    }
    wanted->found = own.found ? own.found : around.found;
}

void *cuda_scope_linked(const char *name, uintptr_t caller) {
    struct wanted wanted = {name, cuda_scope_object(caller), NULL};
    if (wanted.caller) lock_and(look_around, &wanted);
    return wanted.found;
}
