#!/usr/bin/env python3
# Cases that the simulated driver does not have: runtimes that are loaded late or deep in a tree of libraries, calls
# that are left by longjmp, two threads within one call, addresses that are used again. Each case has small drivers or
# runtimes of its own, whose functions only return values.
import os, pathlib, sys

import support, _simulated

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "stow"))
import _moving

FAKE = pathlib.Path(__file__).with_name("_fake_driver.c")


def library(path, text, *linked):
    (support.HERE / f"{path}.c").parent.mkdir(parents=True, exist_ok=True)
    source = support.HERE / f"{path}.c"
    source.write_text(text)
    support.run("cc", "-g", "-D_GNU_SOURCE", "-shared", "-fPIC", f"-Wl,-soname,{pathlib.Path(path).name}", "-o", path,
                source, "-Wl,--no-as-needed", *linked, "-Wl,-rpath,$ORIGIN:$ORIGIN/..", "-Wl,--allow-shlib-undefined")
    return path


def runtime(path, mark):
    return library(path, f"""
#include <stddef.h>
int cudaMalloc(void **at, size_t bytes);
int cudaMalloc(void **at, size_t bytes) {{
    static long n;
    *at = (void *)({mark}l << 40 | (n += (long)bytes));
    return 0;
}}
""")


def same(program, *arguments):
    """Asserts that the program's output is the same with and without memstow."""
    plain = support.run(program, *arguments).stdout
    assert support.track(program, *arguments).stdout == plain, (plain, support.track(program, *arguments).stdout)
    return plain


# A plugin that is loaded later is linked with a runtime of its own.
USE = "#include <stddef.h>\nint cudaMalloc(void **, size_t);\nlong use(void); long use(void) { void *at; " \
      "return cudaMalloc(&at, 4096) ? -1 : (long)at >> 40; }\n"
library("plugin_a.so", USE, runtime("a/libcudart.so.12", 1))
library("plugin_b.so", USE, runtime("b/libcudart.so.13", 2))
LATER = """
#include <dlfcn.h>
#include <stdio.h>
static long use(const char *file) {
    void *plugin = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    return plugin ? ((long (*)(void))dlsym(plugin, "use"))() : (fprintf(stderr, "%s\\n", dlerror()), -1);
}
int main(void) {
    long a = use("./plugin_a.so"), b = use("./plugin_b.so"), again = use("./plugin_a.so");
    printf("%ld %ld %ld\\n", a, b, again);
    return 0;
}
"""
os.environ["LD_LIBRARY_PATH"] = "a:b"
assert same(support.compile(LATER, "later")) == "1 2 1\n"
assert support.report()["totals"]["cuda"]["live_blocks"] == 3

# A library looks up a name that it does not have. Only an indirect dependency of this library has the name, or another
# library that was loaded beside it.
PROBE = """
#include <dlfcn.h>
#include <stddef.h>
long probe(void);
long probe(void) {
    int (*found)(void **, size_t) = dlsym(RTLD_DEFAULT, "cudaMalloc");
    void *at;
    if (dlerror()) return found ? -3 : -2;
    return found(&at, 4096) ? -1 : (long)at >> 40;
}
"""
library("use_a.so", USE, "a/libcudart.so.12")
library("deep.so", PROBE, "use_a.so")
library("beside.so", PROBE)
library("root.so", "int root;", "beside.so", "b/libcudart.so.13")
library("alone.so", PROBE)
NAMES = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **files) {
    for (int i = 1; i < count; i += 2) {
        void *opened = dlopen(files[i], RTLD_NOW | RTLD_LOCAL), *at = opened ? dlopen(files[i + 1], RTLD_NOW) : NULL;
        if (!at) fprintf(stderr, "%s\\n", dlerror());
        printf("%s %ld\\n", files[i + 1], at ? ((long (*)(void))dlsym(at, "probe"))() : -9);
    }
    return 0;
}
"""
names = same(support.compile(NAMES, "names"), "./alone.so", "./alone.so", "./deep.so", "./deep.so", "./root.so",
             "beside.so")
assert names == "./alone.so -2\n./deep.so 1\nbeside.so 2\n", names
assert support.report()["totals"]["cuda"]["live_blocks"] == 2

# The other cases: a driver that only answers.
(support.HERE / "fake").mkdir()
support.run("cc", "-g", "-O1", "-D_GNU_SOURCE", "-pthread", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o",
            "fake/libcuda.so.1", FAKE)
program = support.HERE / "fakes"
support.run("cc", "-g", "-O1", "-D_GNU_SOURCE", "-pthread", f"-I{support.ROOT / 'tests/prog'}", "-o", program,
            FAKE.with_name("_fakes.c"), "fake/libcuda.so.1")
library("fake/aimdo.so", "int vbar_allocate(void); int vbar_allocate(void) { return 0; }\n")
folder, skipped = _moving.real_disk(), []
folder.chmod(0o777)
support.HERE.chmod(0o755)
os.environ.update(LD_LIBRARY_PATH="fake", MEMSTOW_STOW_DIR=str(folder))
for case in support.run(program).stdout.split():
    for options in ((), ("--stacks=none",)):
        wish = {"MEMSTOW_CUDA_MOVES": "2M"} if case == "old" else {}
        done = support.track(program, case, options=options, file=f"{case}.mst", status=None,
                             env={**os.environ, **wish})
        output = done.stdout
        if done.returncode == 77:
            skipped.append(f"{case}: {output.strip()}")
            continue
        assert done.returncode == 0, f"{case}: exit status {done.returncode}\n{output}{done.stderr}"
        lines = [line for line in output.split("\n") if line.startswith("expect")]
        assert lines, f"{case} says nothing"
        wrong = _simulated.wrong(lines, f"{case}.mst")
        assert not wrong, f"{case} {options}:\n" + "\n".join(wrong)
        if case == "old":
            assert "the driver lacks a function that memstow needs" in support.memstow(
                "decisions", f"{case}.mst", "--json").stdout
        os.remove(f"{case}.mst")
assert not list(folder.iterdir())
folder.rmdir()
if skipped:
    support.skip("; ".join(skipped))
