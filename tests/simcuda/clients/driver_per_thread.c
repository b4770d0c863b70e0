/* driver_per_thread.c — route: the client asks cuGetProcAddress_v2 with flag 2, and gets functions whose stream 0 is
 * the calling thread's own (_ptsz, _ptds). */
#include <dlfcn.h>

#include "driver_client.h"

int main(void) {
    CUresult (*get)(const char *, void **, int, uint64_t, int *);
    int status;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) check(-1, dlerror());
    *(void **)&get = dlsym(library, "cuGetProcAddress_v2");
#define F(member, name, symbol, version, parameters)                                                                   \
    CHECK(get(#name, (void **)&cu.member, version > 12000 ? version : 12000, CU_GET_PROC_PER_THREAD, &status));
    DRIVER_FUNCTIONS
    driver_work();
    return 0;
}
