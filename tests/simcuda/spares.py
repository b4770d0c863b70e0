# timeout: 300
# Device memory that is freed in the scope that it was allocated in serves the next requests there: what a temporary
# block costs, whose memory it is, and when it is given back. Over the simulated driver (a test double): each case of
# _spares.c by itself.
import support
from _simcuda import BUILD, environment, left_out, run_cases

MANY = 1000 # blocks, one after the other
ONCE = 4    # calls that make a block: reserve, create, map, set access
EACH = 7    # calls that make a block and end it
LIMIT = {"bounded": "8M"}
LARGE = {"out_of_memory", "other_entries", "free_memory", "kept_at_the_end"} # filling their memory takes long


def wish(case):
    spare = {"MEMSTOW_CUDA_SPARE": LIMIT[case]} if case in LIMIT else {}
    fill = {"SIMCUDA_FILL": "0"} if case in LARGE else {}
    return {"SIMCUDA_CAPACITY": "128M", "MEMSTOW_CUDA_MOVES": "2M", **spare, **fill}


run_cases("spares", 16, wish, without=("in_a_stream", "of_cuda_malloc", "of_several_sizes", "behind"))


def calls(case, **settings):
    """Calls about physical memory that a case makes."""
    env = environment(SIMCUDA_CAPACITY="8G", SIMCUDA_FILL="0", MEMSTOW_CUDA_MOVES="2M", **settings)
    said = support.track(BUILD / "spares", case, env=env, file=f"{case}_calls.mst").stdout.split()
    assert said[0] == "calls" and said[2] == "ok", said
    return int(said[1])


for case, sizes in (("in_a_stream", 1), ("of_cuda_malloc", 1), ("of_several_sizes", 4), ("behind", 1)):
    if case in left_out("spares"):
        continue
    kept, given_back = calls(case), calls(case, MEMSTOW_CUDA_SPARE="0")
    print(f"{case}: {given_back} calls for {MANY} blocks, {kept} where memory is kept")
    assert kept == ONCE * sizes, (case, kept)
    # The number varies, because stream-ordered frees of the last blocks may not have been executed yet.
    assert ONCE * MANY <= given_back <= EACH * MANY, (case, given_back)
    assert given_back == EACH * MANY or case != "of_cuda_malloc", (case, given_back)

# The report says how much memory memstow keeps. The driver's figures in the ledger include this memory.
device = support.report("kept_at_the_end.mst")["cuda"]["devices"][0]
assert (device["live_bytes"], device["spare_bytes"], device["rest_bytes"]) == (0, 100 << 20, 8 << 20), device
assert device["driver_used_bytes"] == 108 << 20, device
text = support.memstow("report", "kept_at_the_end.mst").stdout
assert "100.0 MiB kept by memstow for the next requests" in text, text
device = support.report("bounded.mst")["cuda"]["devices"][0]
assert device["spare_bytes"] <= 8 << 20, device

# A setting that cannot be read.
support.track(BUILD / "spares", "in_a_stream", env=environment(MEMSTOW_CUDA_MOVES="2M", MEMSTOW_CUDA_SPARE="lots"),
              file="word.mst")
notes = support.report("word.mst")["process"]["notes"]
assert any(note.startswith("MEMSTOW_CUDA_SPARE is not a size like") for note in notes), notes
