/* endless.c — moves memory out and back until it is killed. Prints a line when it has begun. */
#include "moving.h"

int main(void) {
    enum { LENGTH = 32 * MIB };
    find_engine();
    char *p = map_memory(LENGTH);
    fill(p, LENGTH, 1);
    for (uint64_t turn = 0;; turn++) {
        uint32_t why;
        if (out(p, LENGTH, has_userfaultfd() ? NULL : &(struct stow_options){.idle = true}, &why) < 0)
            skip("%s", stow_text_(why));
        if (!turn) puts("begun"), fflush(stdout);
        if (turn % 2) MUST(in(p, LENGTH, NULL) == LENGTH || !has_userfaultfd());
        MUST(holds(p, LENGTH, 1));
    }
}
