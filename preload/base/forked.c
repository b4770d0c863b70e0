/* forked.c — see forked.h. The linker collects the pointers to the functions of all files in one section. Two symbols
 * of the linker, __start_… and __stop_…, are the section's bounds. */
#include "preload/base/forked.h"

typedef void forget_function(void);
extern forget_function *const __start_memstow_forked[] __attribute__((weak, visibility("hidden")));
extern forget_function *const __stop_memstow_forked[] __attribute__((weak, visibility("hidden")));

void forked_forget(void) {
    for (forget_function *const *at = __start_memstow_forked; at < __stop_memstow_forked; at++) (*at)();
}
