/* Each run takes sixty megabytes in small blocks and frees them all. One block above them stays, so that glibc cannot
 * give them back. */
#include "_runs.h"

#include <string.h>

enum { BLOCKS = 30000, SIZE = 2000 };

static void work(int run) {
    static char *blocks[BLOCKS], *above;
    (void)run;
    enter("Honest");
    for (int i = 0; i < BLOCKS; i++) {
        if (!(blocks[i] = malloc(SIZE))) exit(1);
        memset(blocks[i], 1, SIZE);
    }
    if (!above) above = malloc(SIZE);
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    leave();
}

int main(int count, char **arguments) { return do_runs(count, arguments, work); }
