// Some libraries find libc's malloc before ours, because of RTLD_DEEPBIND or another namespace. Their blocks pass
// through our functions unharmed. So do blocks that libc allocates for such a library (strdup) and that the library
// frees.
// run:
// run: --allocator=mimalloc
#include "expect.h"

#include <dlfcn.h>
#include <malloc.h>

static void *(*grab_of(void *module))(size_t) {
    MUST(module);
    return (void *(*)(size_t))dlsym(module, "grab");
}

int main(void) {
    void *handle = dlopen(PROG_LIB "/one.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    MUST(handle);
    ((void (*)(void))dlsym(handle, "give_back"))();
    void *(*deep)(size_t) = grab_of(dlopen(PROG_LIB "/one.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND));
    void *(*apart)(size_t) = grab_of(dlmopen(LM_ID_NEWLM, PROG_LIB "/two.so", RTLD_NOW));
    for (int i = 0; i < 2000; i++) {
        unsigned char *p = deep((size_t)i * 37 + 1); /* glibc's block goes to our realloc and free */
        memset(p, 7, malloc_usable_size(p));
        p = realloc(p, (size_t)i * 53 + 1);
        MUST(p && p[0] == 7);
        free(p);
        MUST(apart((size_t)i + 1)); /* from another libc: only its own free can take it */
    }
    say("ok");
    return 0;
}
