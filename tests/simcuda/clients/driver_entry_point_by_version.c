/* driver_entry_point_by_version.c — route: the client opens the runtime with RTLD_LOCAL, and finds functions by its
 * cudaGetDriverEntryPointByVersion. For each function it asks for the oldest version of CUDA that has the function. */
#include <dlfcn.h>

#include "driver_client.h"

int main(void) {
    int (*get)(const char *, void **, unsigned, unsigned long long, int *), status;
    void *library = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
    if (!library) check(-1, dlerror());
    *(void **)&get = dlsym(library, "cudaGetDriverEntryPointByVersion");
#define F(member, name, symbol, version, parameters) CHECK(get(#name, (void **)&cu.member, version, 0, &status));
    DRIVER_FUNCTIONS
    driver_work();
    return 0;
}
