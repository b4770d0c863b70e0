#!/usr/bin/env python3
# needs: cc deb:clang deb:libclang-rt-14-dev
# timeout: 300
"""Programs that are built with a sanitizer start under memstow, and the sanitizer finds the same faults as without
memstow. The sanitizers are those of GCC and of Clang. Each is linked into the executable, or is a library.
memstow-run(1) names the exceptions."""
import os, re, shutil

import support

PROGRAM = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int shared;
/* ThreadSanitizer misses a race of two accesses at the very same time. */
static void *race(void *argument) { usleep(20000); shared++; return argument; }
int main(int count, char **arguments) {
    char *volatile p = malloc(100), *volatile q = malloc(50);
    volatile int large = 2147483647;
    pthread_t thread;
    switch (arguments[1][0]) {
    case 'o': p[100] = 1; break;                  /* overflow */
    case 'b': p[-1] = 1; break;                   /* below the block */
    case 'u': free(p); return p[5];               /* use after free */
    case 'd': free(q); break;                     /* double free */
    case 'l': p = q = NULL; break;                /* leak */
    case 'i': dlclose(dlopen("libm.so.6", RTLD_NOW)); break; /* of the loader, which is none */
    case 'r':                                     /* race */
        pthread_create(&thread, NULL, race, NULL);
        shared++;
        pthread_join(thread, NULL);
        break;
    case 's': large += count; break;              /* signed overflow */
    case 'm': if (p[count]) puts("it is"); break; /* use of memory that nobody wrote */
    }
    free(p);
    free(q);
    printf("end %s\n", strrchr(arguments[0], '/'));
    return 0;
}
"""
FOUND = {"o": "heap-buffer-overflow", "b": "heap-buffer-overflow", "u": "heap-use-after-free", "d": "double-free",
         "l": "detected memory leaks", "r": "data race", "s": "signed integer overflow",
         "m": "use-of-uninitialized-value", "i": "end ", "n": "end "}
# Compiler, sanitizer, flags, and the letters of the faults of PROGRAM. If AddressSanitizer is a shared library, it
# comes behind memstow, and its blocks begin with memstow's header of 16 bytes. A write below the program's block (b)
# hits this header, which AddressSanitizer does not report. So the builds with such a library leave out b.
BUILDS = [
    ("gcc", "address", ["-static-libasan"], "obudln"),
    ("gcc", "address", [], "oudlin"),
    ("gcc", "thread", [], "run"),
    ("gcc", "thread", ["-static-libtsan"], "run"),
    ("gcc", "undefined", ["-fno-sanitize-recover=all"], "sn"),
    ("gcc", "leak", [], "lin"),
    ("clang", "address", [], "obudln"),
    ("clang", "address", ["-shared-libsan"], "oudlin"),
    ("clang", "thread", [], "run"),
    ("clang", "undefined", ["-fno-sanitize-recover=all"], "sn"),
    ("clang", "leak", [], "ln"),
    ("clang", "memory", [], "mn"),
]
PLAIN = {k: v for k, v in os.environ.items() if not k.endswith("SAN_OPTIONS")}


def leaked(errors):
    """The bytes and blocks that the sanitizer reports as leaked."""
    found = re.search(r"SUMMARY: \w+: (\d+) byte\(s\) leaked in (\d+)", errors)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def same(plain, tracked, fault, behind):
    """Asserts that the program has the same status, the same output and the same fault as without memstow. If the
    sanitizer comes behind memstow (`behind`), each block that the sanitizer sees is 16 bytes longer, because the block
    includes memstow's header."""
    assert tracked.returncode == plain.returncode, f"{plain.returncode} without memstow\n{tracked}"
    assert tracked.stdout == plain.stdout
    assert FOUND[fault] in tracked.stderr + tracked.stdout, tracked.stderr
    size, blocks = leaked(plain.stderr)
    assert leaked(tracked.stderr) == (size + 16 * blocks * behind, blocks), tracked.stderr


def check(compiler, sanitizer, flags, faults):
    title = f"{compiler} -fsanitize={sanitizer} {' '.join(flags)}"
    (support.HERE / "program.c").write_text(PROGRAM)
    program = support.HERE / "program"
    support.run(compiler, "-g", "-O0", "-w", "-pthread", f"-fsanitize={sanitizer}", *flags, "program.c", "-o", program)
    env = dict(PLAIN)
    needed = re.findall(r"NEEDED.*\[(lib(?:asan|lsan|tsan|clang_rt)[^]]*)",
                        support.run("readelf", "-dW", program).stdout)
    if flags == ["-shared-libsan"]:
        folder = support.run("clang", "-print-file-name=" + needed[0]).stdout.strip()
        env["LD_LIBRARY_PATH"] = os.path.dirname(folder)
    is_shared_asan = sanitizer == "address" and bool(needed)
    if is_shared_asan:
        refused(program, env)
        env["ASAN_OPTIONS"] = "verify_asan_link_order=0"
    for fault in faults:
        plain = support.run(program, fault, status=None, env=env)
        assert FOUND[
            fault
        ] in plain.stderr + plain.stdout, f"{title} {fault}: it does not work here without memstow\n{plain.stderr}"
        same(plain, support.track(program, fault, status=None, env=env), fault, bool(needed))
    print(title, faults)


def refused(program, env):
    """AddressSanitizer as a library refuses to start if it is not the first library. memstow says in one line which
    option to set. With this option the program runs without a message."""
    ended = support.track(program, "n", status=None, env=env)
    hint = (f"memstow: {program}: AddressSanitizer refuses to start behind memstow: set "
            f"ASAN_OPTIONS=verify_asan_link_order=0\n")
    assert ended.stderr.startswith(hint) and ended.returncode != 0, ended
    done = support.track(program, "n", env={**env, "ASAN_OPTIONS": "verify_asan_link_order=1:verify_asan_link_order=0"})
    assert done.stderr == "", done
    if support.features()["sanitize"]: # the command itself would start behind that library
        return
    preloaded = re.search(r"=> (\S*asan\S*)", support.run("ldd", program, env=env).stdout)[1]
    other = support.track("true", status=None, env={**env, "LD_PRELOAD": preloaded})
    assert "memstow: true: AddressSanitizer refuses" in other.stderr, other


for compiler in ("gcc", "clang"):
    if not shutil.which(compiler):
        support.skip(f"needs {compiler}")
for build in BUILDS:
    check(*build)
