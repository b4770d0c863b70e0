/* scopes N: opens a node, and enters and leaves its scope again and again, N times in all. */
#include "../prog/abi.h"

#include <stdlib.h>

int main(int argc, char **argv) {
    abi_find();
    uint32_t node = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_NODE, "node", "", 0, 0);
    for (long i = argc > 1 ? strtol(argv[1], NULL, 10) : 0; i > 0; i--) {
        abi_memstow_scope_enter(node);
        abi_memstow_scope_leave(node);
    }
    return 0;
}
