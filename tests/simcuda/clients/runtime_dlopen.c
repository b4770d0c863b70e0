/* runtime_dlopen.c — route: the client opens the runtime by its name with RTLD_LOCAL, and finds functions by dlsym. */
#include <dlfcn.h>

#include "runtime_client.h"

int main(void) {
    void *library = dlopen("libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
    if (!library) check(-1, dlerror());
#define F(name, parameters) *(void **)&rt.name = dlsym(library, #name);
    RUNTIME_FUNCTIONS
    runtime_work();
    return 0;
}
