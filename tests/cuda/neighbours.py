#!/usr/bin/env python3
# Two runtimes in one process: each library's calls go to the runtime that it was linked with. A library called
# aimdo.so, which writes over the functions that it gets, gets the driver's own functions.
import support, _simulated

LIBRARY = """
#include <stddef.h>
int cudaMalloc(void **, size_t); int cudaFree(void *); int cudaGetLastError(void);
int use(void); /* 0, or what is wrong */
int use(void) {
    void *at;
    if (cudaMalloc(&at, 1 << 20)) return 1;
    if (cudaMalloc(&at, (size_t)1 << 45) != 2) return 2;
    if (cudaGetLastError() != 2) return 3; /* each runtime has its own: another one's call leaves none here */
    return cudaGetLastError() ? 4 : 0;
}
"""
TAKER = """
#include <dlfcn.h>
#include <string.h>
int is_drivers(const char *name);
int is_drivers(const char *name) {
    Dl_info info;
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *found = library ? dlsym(library, name) : 0;
    int (*get)(const char *, void **, int, unsigned long long, int *) = dlsym(library, "cuGetProcAddress_v2");
    void *resolved = 0;
    int status;
    if (!found || !dladdr(found, &info) || !strstr(info.dli_fname, "libcuda.so")) return 0;
    if (get("cuMemAlloc", &resolved, 12000, 0, &status) || !dladdr(resolved, &info)) return 0;
    return strstr(info.dli_fname, "libcuda.so") != 0;
}
"""
PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
static void *function(const char *file, const char *name) {
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, name) : (fprintf(stderr, "%s\\n", dlerror()), NULL);
}
int main(void) {
    int (*a)(void) = function("./a.so", "use"), (*b)(void) = function("./b.so", "use");
    printf("%d %d %d %d\\n", a(), b(), b(), a());
    for (const char *file = "./aimdo.so"; file; file = file[2] == 'a' ? "./other.so" : NULL) {
        int (*drivers)(const char *) = function(file, "is_drivers");
        printf("%s %d\\n", file, drivers("cuMemAlloc_v2"));
    }
    return 0;
}
"""


def library(name, text, *linked):
    (support.HERE / f"{name}.c").write_text(text)
    support.run("cc", "-g", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", f"{name}.so", f"{name}.c", *linked,
                "-Wl,--allow-shlib-undefined")


library("a", LIBRARY, _simulated.LIBRARIES / "12/libcudart.so.12")
library("b", LIBRARY, _simulated.LIBRARIES / "13/libcudart.so.13")
library("aimdo", TAKER)
library("other", TAKER)
program = support.compile(PROGRAM, "neighbours")
environment = _simulated.environment()
assert support.run(program, env=environment).stdout == "0 0 0 0\n./aimdo.so 1\n./other.so 1\n"
tracked = support.track(program, env=environment).stdout
assert tracked == "0 0 0 0\n./aimdo.so 1\n./other.so 0\n", tracked
report = support.report()
assert report["totals"]["cuda"]["live_bytes"] == 4 << 20 and report["cuda"]["refused"]["requests"] == 4
modules = sorted(s["stack"][0]["module"].rsplit("/")[-1] for s in report["cuda"]["sites"])
assert modules == ["a.so", "a.so", "b.so", "b.so"], modules

# A program that asks for the next definition gets the runtime that it was linked with, and its memory counts.
NEXT = """
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
    int (*next)(void **, size_t) = (int (*)(void **, size_t))dlsym(RTLD_NEXT, "cudaMalloc");
    void *at;
    printf("%d\\n", next ? next(&at, 1 << 20) : -1);
    return 0;
}
"""
program = support.compile(
    NEXT, "next", flags=("-g", "-D_GNU_SOURCE", "-Wl,--no-as-needed", _simulated.LIBRARIES / "12/libcudart.so.12"))
assert support.run(program, env=environment).stdout == support.track(program, env=environment).stdout == "0\n"
assert support.report()["totals"]["cuda"]["live_bytes"] == 1 << 20
