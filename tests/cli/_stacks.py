"""Ledgers with call stacks of a real program. A small program is compiled and run, and prints the return addresses of
one of its calls. They go into a synthetic ledger, as if the program had been mapped at another address."""
import pathlib, re, subprocess
from _ledger import Ledger
from support import HERE, compile, run

BIAS = 0x7f1200000000
SOURCE = """\
#include <cstdio>
#include <dlfcn.h>
#include <execinfo.h>
namespace shop {
template <class T> struct Shelf {
    __attribute__((noinline)) int fill(T count);
};
static int told;
__attribute__((noinline)) int tell(int depth) {
    void *frames[16];
    Dl_info info;
    int count = backtrace(frames, 16);
    for (int i = 1; i < count; i++)
        if (dladdr(frames[i], &info))
            std::printf("%s %lx\\n", info.dli_fname, (long)((char *)frames[i] - (char *)info.dli_fbase));
    return told += depth;
}
static inline __attribute__((always_inline)) int order(int depth) {
    return tell(depth + 1) + 1; // LINE order
}
template <class T> int Shelf<T>::fill(T count) {
    return order((int)count) * 2; // LINE fill
}
}
int main(int, char **) {
    shop::Shelf<long> shelf;
    return shelf.fill(3) > 1000; // LINE main
}
"""


def line(name):
    """The number of the source line with this mark."""
    return 1 + next(i for i, text in enumerate(SOURCE.split("\n")) if text.endswith(f"// LINE {name}"))


def build_id(path):
    """The build id of an ELF file; b"" if it has none."""
    found = re.search(r"Build ID: ([0-9a-f]+)",
                      subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout)
    return bytes.fromhex(found[1]) if found else b""


def program(name="shop",
            flags=("-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-Wl,--build-id")):
    """Compiles SOURCE. Returns the program's path, and the offsets of the return addresses in fill and in main."""
    source = HERE / f"{name}.cc"
    source.write_text(SOURCE)
    path = compile(source, name, flags=flags)
    lines = [text.rsplit(" ", 1) for text in run(path).stdout.splitlines()]
    offsets = [int(offset, 16) for file, offset in lines if pathlib.Path(file).name == name]
    return path, offsets[:2]


def ledger(path, offsets, identity=None, bias=BIAS, **header):
    """A ledger with one stack of the program: 3000 bytes in 3 blocks."""
    made = Ledger(**header)
    made.fact(1, str(path))
    module = made.module(str(path), bias=bias, build_id=build_id(path) if identity is None else identity, size=0x100000)
    frames = [made.frame(bias + offset, module) for offset in reversed(offsets)]
    made.count(made.site(module, stack=made.node(frames), peak=5000), alloc=(5000, 5), free=(2000, 2))
    return made
