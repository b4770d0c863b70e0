#!/usr/bin/env python3
"""A library wraps dlsym or dlvsym, as overlays do, and comes behind memstow, linked or preloaded. The library gets the
same calls as without memstow, and the program gets the library's answers, also for CUDA's names. In each call RTLD_NEXT
means the definition after the caller."""
import os

import support

COMMON = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
extern int wrapper_nexts;
int wrapper_nexts;
static int wrapped(void) { return 99; }
static void *instead(void *handle, const char *name) {
    if (handle == RTLD_NEXT) wrapper_nexts++;
    return !strcmp(name, "getppid") || !strcmp(name, "cuMemAlloc_v2") ? (void *)wrapped : NULL;
}
"""
WRAPPERS = {
    "dlsym": COMMON + r"""
void *dlsym(void *handle, const char *name) {
    static void *(*next)(void *, const char *);
    if (!next) next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    void *mine = instead(handle, name);
    return mine ? mine : next(handle, name); /* a jump: who calls is known behind it */
}
""",
    "dlvsym": COMMON + r"""
void *dlvsym(void *handle, const char *name, const char *version) {
    static void *(*next)(void *, const char *, const char *);
    if (!next) next = (void *(*)(void *, const char *, const char *))dlsym(RTLD_NEXT, "dlvsym");
    void *mine = instead(handle, name);
    return mine ? mine : next(handle, name, version);
}
"""}
MIDDLE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
const char *tell(void);
const char *tell(void) {
    const char *(*next)(void) = (const char *(*)(void))LOOK_UP(RTLD_NEXT, "tell");
    return next ? next() : "nobody comes next";
}
"""
LAST = """
const char *tell(void);
const char *tell(void) { return "the last"; }
"""
PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
extern int wrapper_nexts __attribute__((weak));
const char *tell(void);
int main(void) {
    int (*parent)(void) = (int (*)(void))LOOK_UP(RTLD_DEFAULT, "getppid"), at;
    int (*cuda)(void *, size_t) = (int (*)(void *, size_t))LOOK_UP(RTLD_DEFAULT, "cuMemAlloc_v2");
    free(malloc(100));
    munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
    dlclose(dlopen("./liblast.so", RTLD_NOW));
    printf("%d %d %s, ", parent() == 99, cuda && cuda(&at, 0) == 99, tell());
    printf("%d\n", &wrapper_nexts ? wrapper_nexts : *(int *)dlsym(RTLD_DEFAULT, "wrapper_nexts"));
    return 0;
}
"""
VERSIONS = {"dlsym": "-DLOOK_UP(handle,name)=dlsym(handle,name)",
            "dlvsym": '-DLOOK_UP(handle,name)=dlvsym(handle,name,"GLIBC_2.2.5")'}


def build(out, text, *more):
    (support.HERE / f"{out}.c").write_text(text)
    shared = ("-shared", "-fPIC") if out.startswith("lib") else ("-Wl,--no-as-needed",)
    support.run("cc", "-g", "-O2", *shared, "-o", f"{out}.so" if shared[0] == "-shared" else out, f"{out}.c", *more,
                "-Wl,-rpath,$ORIGIN")


build("liblast", LAST)
for name, wrapper in WRAPPERS.items():
    build("libwrapper", wrapper)
    build("libmiddle", MIDDLE, VERSIONS[name])
    build("linked", PROGRAM, VERSIONS[name], "./libwrapper.so", "./libmiddle.so", "./liblast.so")
    build("alone", PROGRAM, VERSIONS[name], "./libmiddle.so", "./liblast.so")
    for program, preload in (("./linked", {}), ("./alone", {"LD_PRELOAD": "./libwrapper.so"})):
        if preload and support.features()["sanitize"]: # the command itself would start behind that library
            continue
        environment = {**os.environ, **preload}
        expected = support.run(program, env=environment).stdout
        said = support.track(program, env=environment).stdout
        assert expected.startswith("1 1 ") and said == expected, (name, program, said, expected)
