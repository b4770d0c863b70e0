/* driver_dlsym.c — route: libcuda opened by name, RTLD_LOCAL, every entry looked up with dlsym (Triton, JAX, numba). */
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
