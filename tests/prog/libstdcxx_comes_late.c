// A C program loads C++ after an owner's heap has been in use for long. `operator new` is libstdc++'s own, not that of
// the allocator behind owners' heaps. Memory from this operator is counted, also for the owner whose scope is open, and
// can be freed anywhere.
// run:
// run: --stacks=none
// run: --allocator=mimalloc
// needs: mimalloc
#include "abi.h"
#include "expect.h"

#include <stdint.h>

enum { PLAIN = 3000, ARRAY = 70000, WIDE = 512, MANY = 2000 };

static void *module;
static uint32_t model, other;

#define IN(scope, ...)                                                                                                 \
    do {                                                                                                               \
        MUST(CALL(0, memstow_scope_enter, scope) == 0);                                                                \
        __VA_ARGS__;                                                                                                   \
        MUST(CALL(0, memstow_scope_leave, scope) == 0);                                                                \
    } while (0)

static void *find(const char *name) {
    void *found = dlsym(module, name);
    MUST(found);
    return found;
}

static void *make(const char *name, size_t size) { return ((void *(*)(size_t))find(name))(size); }
static void drop(const char *name, void *p) { ((void (*)(void *))find(name))(p); }

static struct memstow_figures figures_of(uint32_t owner) {
    struct memstow_figures figures = {.size = sizeof figures};
    MUST(CALL(0, memstow_owner_figures, owner, &figures) == 0);
    return figures;
}

static uint32_t open_model(const char *name, uint64_t key) {
    return (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, name, "", key, 0);
}

static void use_heap(void) {
    void *blocks[MANY];
    IN(model, for (int i = 0; i < MANY; i++) blocks[i] = malloc((size_t)i));
    for (int i = 0; i < MANY; i++) free(blocks[i]);
}

/* The module calls the operator new of libstdc++, and mimalloc's functions cannot be found by name. */
static void resolves_in_libstdcxx(void) {
    void *(*address_of_new)(void) = (void *(*)(void))find("address_of_new");
    Dl_info info;
    MUST(dladdr(address_of_new(), &info) && strstr(info.dli_fname, "libstdc++"));
    MUST(!dlsym(RTLD_DEFAULT, "mi_malloc"));
}

/* Memory is allocated in one scope, and freed in another scope or in none. */
static void come_and_go(void) {
    struct {
        const char *make, *drop;
        size_t size;
    } kinds[] = {
        {"make_plain", "drop_plain", PLAIN}, {"make_array", "drop_array", ARRAY}, {"make_wide", "drop_wide", WIDE}};
    for (int i = 0; i < 3; i++) {
        void *p, *q, *r;
        uint64_t before = figures_of(model).live_bytes;
        IN(model, p = make(kinds[i].make, kinds[i].size); q = make(kinds[i].make, kinds[i].size));
        r = make(kinds[i].make, kinds[i].size);
        memset(p, 1, kinds[i].size), memset(q, 2, kinds[i].size), memset(r, 3, kinds[i].size);
        MUST(!has_memstow || figures_of(model).live_bytes == before + 2 * kinds[i].size);
        IN(other, drop(kinds[i].drop, p); drop(kinds[i].drop, r));
        drop(kinds[i].drop, q);
        MUST(figures_of(model).live_bytes == before);
    }
    MUST(figures_of(other).live_bytes == 0);
}

/* C++ frees memory that C allocated, and the reverse: one allocator is behind both. */
static void mixed(void) {
    void *p, *q;
    IN(model, p = malloc(PLAIN); q = make("make_plain", PLAIN));
    drop("drop_plain", p);
    free(q);
    MUST(figures_of(model).live_bytes == 0);
}

int main(void) {
    abi_find();
    model = open_model("model", 1), other = open_model("other", 2);
    MUST(!dlopen("libstdc++.so.6", RTLD_NOLOAD | RTLD_NOW));
    use_heap();
    module = dlopen(PROG_LIB "/objects.so", RTLD_NOW | RTLD_LOCAL);
    MUST(module);
    resolves_in_libstdcxx();
    come_and_go();
    mixed();
    void *p, *vector;
    IN(model, p = make("make_plain", PLAIN));
    uint64_t before = figures_of(model).live_bytes;
    IN(model, vector = make("make_vector", MANY));
    MUST(((bool (*)(void *, size_t))find("vector_holds"))(vector, MANY));
    MUST(!has_memstow || figures_of(model).live_bytes >= before + MANY * 100);
    drop("drop_vector", vector);
    MUST(p && figures_of(model).live_bytes == before);
    EXPECT("owners[name=model].live_bytes", PLAIN);
    EXPECT("owners[name=other].live_bytes", 0);
    return 0;
}
