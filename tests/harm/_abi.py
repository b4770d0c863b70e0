"""Random calls of the registration ABI, for some seconds in each mode."""
import pathlib, random

import support

MODES = [["--stacks=none"], [], ["--stacks=sample:4096"], ["--stack-memory=1M"], ["--allocator=mimalloc"]]


def call_at_random(seconds):
    program = support.compile(pathlib.Path(__file__).with_name("abi_random.c"))
    for mode in MODES:
        seed = random.randrange(1 << 32)
        print("seed", seed, *mode)
        support.memstow("run", "--quiet", "-o", "x.mst", *mode, "--", program, seed, 3, seconds, timeout=4 * seconds + 60)
