"""memstow's own threads are not reported as left of a program. The thread that listens for requests is known by its
name; the thread that watches the limit is known before it has a name."""
import json, pathlib

from support import MEMSTOW, ROOT, compile, run

program = compile(r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "memstow.h"
#define CALL(name) ((__typeof__(&memstow_##name))dlsym(RTLD_DEFAULT, "memstow_" #name))

static int listens(void) {
    char path[300], name[32] = "";
    struct dirent *entry;
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");
    while ((entry = readdir(tasks))) {
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file)) found |= !strcmp(name, "memstow\n");
        if (file) fclose(file);
    }
    closedir(tasks);
    return found;
}

int main(void) {
    if (CALL(owner_open)(MEMSTOW_MODEL, "model", "", 1, 0) <= 0) return 2;
    for (int i = 0; !listens(); i++, usleep(10000))
        if (i == 1000) return 3;
    return (int)CALL(shutdown)("the test", 0, 76);
}
""", "listens", ("-O1", "-g", "-I", ROOT / "include"))
for _ in range(20):
    pathlib.Path("shutdown.log").unlink(missing_ok=True)
    run(MEMSTOW, "run", "--quiet", "-o", "x.mst", "--", program)
    lines = [json.loads(line) for line in pathlib.Path("shutdown.log").read_text().splitlines()]
    assert lines[-1]["step"] == "end" and lines[-1]["threads_left"] == 0, lines
