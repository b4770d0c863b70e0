#!/usr/bin/env python3
# timeout: 300
"""A C program uses the store. Each case runs by itself, and _store.c has its checks. This file checks that the program
ends well, leaves no file, and has a correct ledger."""
import _state, support

program, folder = _state.program(), _state.real_disk()
for case in support.run(program).stdout.split():
    done = support.track(program, case, file=f"{case}.mst", env=_state.environment(folder))
    print(case, done.stdout.strip())
    assert not list(folder.iterdir()), f"{case} left {list(folder.iterdir())}"
    report = support.report(f"{case}.mst")
    assert report["totals"]["live_bytes"] == sum(site["live_bytes"] for site in report["sites"]), case

# A closed loop has no live bytes. In the loop "limit", which was still open at the end, the owner of "a" counts two
# copies: the committed value, and the one of the present iteration. The other owners count one.
states = {owner["name"]: owner for owner in support.report("generations.mst")["owners"] if owner["kind"] == "state"}
assert all(owner["live_bytes"] == 0 for owner in states.values()), states
owners = {owner["name"]: owner for owner in support.report("ram_limit.mst")["owners"] if owner["kind"] == "state"}
sizes = {name: owner["live_bytes"] for name, owner in owners.items()}
assert sizes == {"state:limit/a": (2 << 20) + 8192, "state:limit/b": (1 << 19) + 4096,
                 "state:limit/c": (1 << 20) + 4096}, sizes
assert owners["state:limit/c"]["stowed_bytes"] == sizes["state:limit/c"], owners
assert owners["state:limit/b"]["stowed_bytes"] == 0, owners
assert "state:limit/a" in support.memstow("report", "--by=model", "ram_limit.mst").stdout
owners = [owner["name"] for owner in support.report("failed_puts.mst")["owners"] if owner["kind"] == "state"]
assert owners == ["state:failed/kept"], owners
folder.rmdir()
