"""Random calls of the registration ABI, for some seconds in each mode."""
import os, pathlib, random, sys

import support

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "stow"))
import _moving

MODES = [["--stacks=none"], [], ["--stacks=sample:4096"], ["--stack-memory=1M"], ["--allocator=mimalloc"]]


def call_at_random(seconds):
    program, folder = support.compile(pathlib.Path(__file__).with_name("abi_random.c")), _moving.real_disk()
    for mode, words in [*((mode, (seconds,)) for mode in MODES), ([], (1, "ends in the middle"))]:
        seed = random.randrange(1 << 32)
        print("seed", seed, *mode, *words)
        support.memstow("run", "--quiet", "-o", "x.mst", *mode, "--", program, seed, 3, *words,
                        timeout=4 * seconds + 60, env={**os.environ, "MEMSTOW_STOW_DIR": str(folder)})
        assert not list(folder.iterdir()), list(folder.iterdir())
        for file in support.HERE.glob("x.mst*"): # also of children
            file.unlink()
    folder.rmdir()
