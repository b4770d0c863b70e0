/* driver_getproc_v2.c — route: dlsym of cuGetProcAddress_v2, five arguments (CUDA 12). It is asked for the resolver
 * itself in both generations; everything else comes from the newest. */
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
