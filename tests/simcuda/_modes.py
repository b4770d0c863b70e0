"""Shared by modes.py and modes_long.py: the cases of _moves.c over the simulated driver (a test double) in the modes of
simcuda.h. In these modes the driver is slow, waits, or takes more memory, as a real driver may."""
import support
from _simcuda import BUILD, environment

MODES = {"slow": {"SIMCUDA_VMM_US": "300"}, "drains": {"SIMCUDA_DRAINS": "1", "SIMCUDA_LATENCY_US": "200"},
         "first": {"SIMCUDA_FIRST": "6M"}, "pieces": {"SIMCUDA_FRAGMENTED": "16M"},
         "keeps": {"SIMCUDA_KEEP": "64M"}, # a setting of memstow's: copies on the host are kept
         "pageable": {"SIMCUDA_PAGEABLE": "1"}}
# Cases that need settings or a partner of their own: moves.py runs them.
APART = {"killed_on_the_way_out", "killed_on_the_way_back", "asked", "off", "no_host", "no_vram", "exportable",
         "total_stays"}
# Cases that rely on something that a mode does not give.
WITHOUT = {
    "drains": {"own_stream"}, # it frees memory while an endless kernel runs: here unmapping waits for the kernel
    "first": {"out_and_back", "other_stream"}, # they compare exact sums from before and after the first pinned memory
    "pieces": {"freed_memory_comes_back", "room_is_used"}, # one request takes all that is free
}


def all_cases():
    return support.run(BUILD / "moves", env=environment()).stdout.split()


def run(cases):
    for mode, settings in MODES.items():
        for case in sorted(set(cases) - APART - WITHOUT.get(mode, set())):
            env = environment(SIMCUDA_CAPACITY="192M", MEMSTOW_CUDA_MOVES="2M", **settings)
            done = support.track(BUILD / "moves", case, env=env, file=f"{mode}_{case}.mst", status=None)
            assert done.returncode == 0 and done.stdout == "ok\n", (
                f"{case}, {mode}: {done.returncode}\n{done.stdout}{done.stderr}")
            print(f"{mode}: {case}")
