// dlsym and dlvsym give the same answers as without memstow. RTLD_NEXT means the definition after the caller. An entry
// point of CUDA is found only if it exists. dlerror gives the same errors.
// build: -rdynamic
#include "expect.h"

#include <dlfcn.h>
#include <malloc.h>

const char *tell(void);
const char *tell(void) { return "the program"; }

static void is_missing(void *handle, const char *name) {
    dlerror();
    MUST(!dlsym(handle, name));
    const char *error = dlerror();
    MUST(error && strstr(error, "undefined symbol") && strstr(error, name));
    MUST(!dlerror());
}

int main(void) {
    void *library = dlopen(PROG_LIB "/interposer.so", RTLD_NOW | RTLD_GLOBAL), *self = dlopen(NULL, RTLD_NOW);
    MUST(library && self);
    const char *(*through)(void) = (const char *(*)(void))dlsym(library, "tell");
    MUST(through && through != tell);
    say("the interposer: %s", through());
    void *(*behind)(const char *) = (void *(*)(const char *))dlsym(library, "look_behind");
    MUST(behind && !behind("cudaMalloc") && !behind("tell"));
    is_missing(RTLD_DEFAULT, "cudaMalloc");
    is_missing(self, "cuMemAlloc_v2");
    is_missing(library, "cuMemAlloc_v2");
    is_missing(RTLD_NEXT, "cudaMalloc");
    is_missing(RTLD_NEXT, "cuMemAlloc_v2");
    MUST(!dlvsym(RTLD_NEXT, "cudaMalloc", "libcudart.so.13") && dlerror() && !dlerror());
    is_missing(RTLD_DEFAULT, "cu");
    is_missing(RTLD_DEFAULT, "c");
    is_missing(RTLD_DEFAULT, "");
    MUST(dlsym(RTLD_DEFAULT, "tell") == (void *)tell && dlsym(self, "tell") == (void *)tell);
    MUST(!dlvsym(RTLD_DEFAULT, "cudaMalloc", "libcudart.so.13") && dlerror());
    MUST(!dlvsym(RTLD_DEFAULT, "malloc_usable_size", "GLIBC_1.0") && dlerror());
    MUST(dlvsym(RTLD_NEXT, "malloc_usable_size", "GLIBC_2.2.5"));
    say("ok");
    return 0;
}
