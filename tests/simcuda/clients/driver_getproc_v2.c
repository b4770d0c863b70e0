/* driver_getproc_v2.c — route: cuGetProcAddress_v2 with five arguments (CUDA 12), found by dlsym. The client asks it
 * for both generations of the resolver, and asks the newer one for everything else. */
#include <dlfcn.h>

#include "driver_client.h"

typedef CUresult (*get_v2)(const char *, void **, int, uint64_t, int *);

int main(void) {
    get_v2 get;
    CUresult (*old)(const char *, void **, int, uint64_t);
    int status;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *address;
    if (!library) check(-1, dlerror());
    *(void **)&get = dlsym(library, "cuGetProcAddress_v2");
    CHECK(get("cuGetProcAddress", (void **)&old, 11030, 0, &status));
    CHECK(old("cuMemAlloc", &address, 11030, 0));
    CHECK(get("cuGetProcAddress", (void **)&get, 12000, 0, &status));
#define F(member, name, symbol, version, parameters)                                                                   \
    CHECK(get(#name, (void **)&cu.member, version > 12000 ? version : 12000, 0, &status));
    DRIVER_FUNCTIONS
    driver_work();
    return 0;
}
