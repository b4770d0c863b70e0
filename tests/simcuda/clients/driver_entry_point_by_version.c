/* driver_entry_point_by_version.c — route: cudaGetDriverEntryPointByVersion of a runtime opened RTLD_LOCAL, with the
 * oldest version that has the entry. */
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
