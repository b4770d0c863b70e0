/* driver_default.c — route: the client opens libcuda with RTLD_GLOBAL, and finds functions by dlsym(RTLD_DEFAULT). */
#include <dlfcn.h>

#include "driver_client.h"

int main(void) {
    if (!dlopen("libcuda.so.1", RTLD_LAZY | RTLD_GLOBAL)) check(-1, dlerror());
#define F(member, name, symbol, version, parameters) *(void **)&cu.member = dlsym(RTLD_DEFAULT, #symbol);
    DRIVER_FUNCTIONS
    driver_work();
    return 0;
}
