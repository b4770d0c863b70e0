/* one.c — a module that allocates. tests/prog/modules_at_one_address.c loads it and two.c, which has the same layout,
 * in turn. */
#include <stdlib.h>
#include <string.h>

void *grab(size_t size) {
    char *p = malloc(size);
    p[0] = 1; /* not a tail call: the caller of malloc must be here */
    return p;
}

void give_back(void) { free(strdup("allocated by libc, freed here")); }
