/* runtime_dlvsym.c — route: the client opens the runtime by its name with RTLD_LOCAL, and finds functions by dlvsym
 * with their symbol version. */
#include <dlfcn.h>

#include "runtime_client.h"

int main(void) {
    void *library = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
    if (!library) check(-1, dlerror());
#define F(name, parameters) *(void **)&rt.name = dlvsym(library, #name, "libcudart.so.13");
    RUNTIME_FUNCTIONS
    runtime_work();
    return 0;
}
