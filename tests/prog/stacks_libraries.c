// Call stacks through libraries that are loaded one after the other at the same address. Data about one library's code
// is not used for the next library.
// needs: stacks
// build: -O2
#include "stacks.h"

#include <dlfcn.h>

enum { ROUNDS = 10, ONE = 10007, TWO = 10009 };

static unsigned same_address;

FRAME static void allocate(unsigned size) {
    KEEP(size);
    STAY;
}
static void back(unsigned size) {
    allocate(size);
    STAY;
}

FRAME static void through(const char *path, unsigned size) {
    static uintptr_t last;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    MUST(library);
    void (*call_back)(void (*)(unsigned), unsigned) =
        (void (*)(void (*)(unsigned), unsigned))dlsym(library, "call_back");
    same_address += (uintptr_t)call_back == last;
    last = (uintptr_t)call_back;
    for (int i = 0; i < 3; i++) /* the second and third stack come from the cache */
        call_back(back, size);
    MUST(dlclose(library) == 0);
}

int main(void) {
    for (int i = 0; i < ROUNDS; i++) {
        through(PROG_LIB "/stacks_one.so", ONE);
        through(PROG_LIB "/stacks_two.so", TWO);
    }
    MUST(same_address > ROUNDS); /* otherwise this test shows nothing */
    EXPECT_STACK(ONE, "allocate<back<call_back<through<main");
    EXPECT_STACK(TWO, "allocate<back<call_back<through<main");
    EXPECT("sites[stack[2].module=*/stacks_one.so].live_bytes", 3 * ROUNDS * ONE);
    EXPECT("sites[stack[2].module=*/stacks_two.so].live_bytes", 3 * ROUNDS * TWO);
    return 0;
}
