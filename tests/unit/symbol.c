// build: -ldl
// The look-up of an exported symbol in an object finds the same address as dlsym, and nothing if dlsym finds nothing.
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <link.h>
#include <math.h>
#include <stdlib.h>

#include "preload/base/symbol.h"

static const struct link_map *object_of(const void *code) {
    struct dl_find_object found;
    cr_assert_eq(_dl_find_object((void *)code, &found), 0);
    return found.dlfo_link_map;
}

Test(symbol, is_what_the_loader_finds) {
    const struct link_map *libc = object_of(dlsym(RTLD_DEFAULT, "hcreate"));
    void *handle = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    const char *names[] = {"qsort", "strtod", "environ", "getenv", "_IO_2_1_stdout_"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        cr_assert_eq(symbol_find(libc, names[i], NULL), (uintptr_t)dlsym(handle, names[i]), "%s", names[i]);
    size_t size = 0;
    cr_assert_neq(symbol_find(libc, "environ", &size), 0);
    cr_assert_eq(size, sizeof(char **));
}

Test(symbol, of_another_object_is_not_found) {
    const struct link_map *libc = object_of(dlsym(RTLD_DEFAULT, "hcreate"));
    cr_assert_eq(symbol_find(libc, "no_such_name", NULL), 0);
    cr_assert_eq(symbol_find(libc, "", NULL), 0);
    cr_assert_eq(symbol_find(libc, "symbol_find", NULL), 0);
}

/* A name can be looked up in any object of this process, even in the vDSO, whose tables are not relocated. */
Test(symbol, any_object_will_do) {
    void *self = dlopen(NULL, RTLD_NOW);
    struct link_map *object;
    cr_assert_eq(dlinfo(self, RTLD_DI_LINKMAP, &object), 0);
    int found = 0;
    for (; object; object = object->l_next) found += symbol_find(object, "malloc", NULL) != 0;
    cr_assert_geq(found, 1);
}
