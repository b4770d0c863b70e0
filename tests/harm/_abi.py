"""Calls the registration ABI at random for some seconds in each mode, with glibc's malloc and with jemalloc."""
import os, pathlib, random, sys

import support

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "stow"))
import _moving

MODES = [["--stacks=none"], [], ["--stacks=sample:4096"], ["--stack-memory=1M"], ["--allocator=mimalloc"]]


def programs():
    """abi_random.c, over glibc and over jemalloc."""
    for name, flags in (("over_glibc", ()), ("over_jemalloc", ("-Wl,--no-as-needed", "-l:libjemalloc.so.2"))):
        yield support.compile(pathlib.Path(__file__).with_name("abi_random.c"), name,
                              ("-O1", "-g", "-pthread", *flags))


def call_at_random(seconds):
    folder = _moving.real_disk()
    plain, over_jemalloc = programs()
    runs = [(plain, mode, (seconds,)) for mode in MODES] + [(plain, [], (1, "ends in the middle"))]
    for program, mode, words in runs + [(over_jemalloc, mode, (seconds,)) for mode in MODES[:-1]]:
        seed = random.randrange(1 << 32)
        print("seed", seed, program.name, *mode, *words)
        support.memstow("run", "--quiet", "-o", "x.mst", *mode, "--", program, seed, 3, *words,
                        timeout=4 * seconds + 60, env={**os.environ, "MEMSTOW_STOW_DIR": str(folder)})
        assert not list(folder.iterdir()), list(folder.iterdir())
        for file in support.HERE.glob("x.mst*"): # the ledgers of children, too
            file.unlink()
    folder.rmdir()
