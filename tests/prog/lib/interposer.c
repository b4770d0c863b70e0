/* A library that wraps a function of another library in the usual way, by dlsym(RTLD_NEXT). If memstow's dlsym simply
 * called libc's dlsym, libc would take memstow for the caller, and the library would find its own function. */
#define _GNU_SOURCE
#include <dlfcn.h>

const char *tell(void);
const char *tell(void) {
    const char *(*next)(void) = (const char *(*)(void))dlsym(RTLD_NEXT, "tell");
    return next ? next() : "nobody comes next";
}

/* Returns the function of this name in the libraries after this one, or NULL if none of them has it. */
void *look_behind(const char *name);
void *look_behind(const char *name) { return dlsym(RTLD_NEXT, name); }
