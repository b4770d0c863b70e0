/* driver_getproc_v1.c — route: dlsym finds cuGetProcAddress with four arguments (CUDA 11.3), which finds all other
 * functions. */
#include <dlfcn.h>

#include "driver_client.h"

int main(void) {
    CUresult (*get)(const char *, void **, int, uint64_t);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) check(-1, dlerror());
    *(void **)&get = dlsym(library, "cuGetProcAddress");
#define F(member, name, symbol, version, parameters) CHECK(get(#name, (void **)&cu.member, version, 0));
    DRIVER_FUNCTIONS
    driver_work();
    return 0;
}
