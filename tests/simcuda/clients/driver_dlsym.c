/* driver_dlsym.c — route: the client opens libcuda by its name with RTLD_LOCAL, and finds every function by dlsym, as
 * Triton, JAX and numba do. */
#include <dlfcn.h>

#include "driver_client.h"

int main(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) check(-1, dlerror());
#define F(member, name, symbol, version, parameters) *(void **)&cu.member = dlsym(library, #symbol);
    DRIVER_FUNCTIONS
    driver_work();
    return 0;
}
