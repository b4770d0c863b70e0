"""A child that is not followed leaves no file, and frees its inherited blocks as if nobody had ever counted them."""
import pathlib

import support

program = support.compile(r'''
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    static void *blocks[1000];
    for (int i = 0; i < 1000; i++)
        blocks[i] = i % 10 ? malloc(i * 100) : memalign(i % 20 ? 4096 : 64, i * 100);
    if (!fork()) {
        for (int i = 0; i < 1000; i++)
            if (i % 3 == 0)
                free(blocks[i]);
            else if (i % 3 == 1) {
                blocks[i] = realloc(blocks[i], i * 130 + 1);
                if (malloc_usable_size(blocks[i]) < i * 130 + 1) abort();
                memset(blocks[i], 7, malloc_usable_size(blocks[i]));
            }
        for (int i = 0; i < 1000; i++)
            if (i % 3)
                free(blocks[i]);
        free(calloc(3, 100));
        exit(0);
    }
    int status;
    wait(&status);
    return status != 0;
}
''', "family", flags=("-w", "-O1", "-fno-builtin"))
for follow in ("none", "somebody,else"):
    support.track(program, options=[f"--follow={follow}"])
    assert [f.name for f in pathlib.Path(".").glob("out.mst*")] == ["out.mst"]
    total = sum(i * 100 for i in range(1000))
    module = [m for m in support.report()["modules"] if m["module"] == str(program)][0]
    assert (module["live_bytes"], module["live_blocks"]) == (total, 1000), module
support.track(program, options=["--follow=other,family"])
assert len(list(pathlib.Path(".").glob("out.mst*"))) == 2
