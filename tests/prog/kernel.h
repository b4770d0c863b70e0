/* kernel.h — features of the running kernel that tests depend on. */
#ifndef KERNEL_H
#define KERNEL_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/utsname.h>

/* Whether the kernel has this version or a later one. */
static bool kernel_is(int major, int minor) {
    struct utsname name;
    int its_major = 0, its_minor = 0;
    if (uname(&name) != 0 || sscanf(name.release, "%d.%d", &its_major, &its_minor) != 2) return false;
    return its_major > major || (its_major == major && its_minor >= minor);
}

#endif
