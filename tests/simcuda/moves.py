# Models whose device memory memstow serves move out of the device and back, over the simulated driver (a test double): each
# case of _moves.c by itself, and what the report of it says.
import support
from _simcuda import BUILD, environment

program = BUILD / "moves"
names = support.run(program, env=environment()).stdout.split()
assert len(names) == 9, names
for name in names:
    wish = {} if name == "off" else {"MEMSTOW_CUDA_MOVES": "2M"}
    done = support.track(program, name, env=environment(SIMCUDA_CAPACITY="128M", **wish), file=f"{name}.mst", status=None)
    assert done.returncode == 0 and done.stdout == "ok\n", f"{name}: {done.returncode}\n{done.stdout}{done.stderr}"

# What was served is counted once, as what the program asked for; memstow's own buffers are not the program's.
for name in ("out_and_back", "off"):
    kinds = support.report(f"{name}.mst")["cuda"]["kinds"]
    found = {kind: (sums["live_bytes"], sums["live_blocks"]) for kind, sums in kinds.items() if sums["live_blocks"]}
    assert found == {"device": (17 << 20, 3), "pool": (6 << 20, 1)}, f"{name}: {found}"

lines = support.memstow("decisions", "out_and_back.mst", "--json").stdout
assert '"the owner is not declared idle"' in lines, lines
