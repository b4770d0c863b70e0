// A module is unloaded, and another module is loaded at its address. Each block still belongs to the module that
// allocated it.
#include "expect.h"

#include <dlfcn.h>
#include <stdint.h>

enum { ROUNDS = 50 };
static int same_address;

static void *grab_from(const char *path, size_t size) {
    static uintptr_t last;
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    MUST(module);
    void *(*grab)(size_t) = (void *(*)(size_t))dlsym(module, "grab");
    same_address += (uintptr_t)grab == last;
    last = (uintptr_t)grab;
    void *p = NULL;
    for (int i = 0; i < 3; i++) { /* the second and third stack come from the cache */
        free(p);
        p = grab(size);
    }
    MUST(dlclose(module) == 0);
    return p;
}

int main(void) {
    static void *kept[2 * ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        kept[2 * i] = grab_from(PROG_LIB "/one.so", 1000);
        kept[2 * i + 1] = grab_from(PROG_LIB "/two.so", 10);
    }
    MUST(kept[0] && same_address > ROUNDS); /* otherwise this test shows nothing */
    EXPECT("sites[stack[0].module=*/one.so].live_bytes", ROUNDS * 1000);
    EXPECT("sites[stack[0].module=*/two.so].live_bytes", ROUNDS * 10);
    return 0;
}
