/* A library that stands in front of another by the usual means: whoever comes next by dlsym(RTLD_NEXT). With a dlsym of
 * ours that is called in between it would find itself. */
#define _GNU_SOURCE
#include <dlfcn.h>

const char *tell(void);
const char *tell(void) {
    const char *(*next)(void) = (const char *(*)(void))dlsym(RTLD_NEXT, "tell");
    return next ? next() : "nobody comes next";
}

/* What is asked for here lies behind this library, or is not there. */
void *look_behind(const char *name);
void *look_behind(const char *name) { return dlsym(RTLD_NEXT, name); }
