# timeout: 300
"""A process that is killed at a random moment leaves a file that can be read. The file differs from the program's own
record by no more than the operations in flight."""
import os, pathlib, random, signal, sys, time

import _churn, support


def has_memory(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/maps").read_text() != ""
    except OSError: # it is gone
        return False


def kill_once(program, number):
    folder = support.HERE / f"run{number}"
    folder.mkdir()
    truth, file = folder / "truth", folder / "out.mst"
    run = support.start(support.MEMSTOW, "run", "--quiet", "-o", file, "--", program, truth, 3, 3, 30,
                        start_new_session=True)
    support.wait_for(lambda: truth.exists() and truth.stat().st_size and _churn.read(truth), what="the start")
    time.sleep(random.uniform(0.0, 1.2))
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    support.wait_for(lambda: not any(has_memory(p["pid"]) for p in _churn.read(truth)), what="the end of all")
    return check(program, folder, truth, file)


def check(program, folder, truth, file):
    wrong, operations = [], 0
    for i, process in enumerate(_churn.read(truth)):
        path = pathlib.Path(f"{file}.{process['pid']}") if i else file
        if i and not path.exists() and not process["operations"] + process["inherited_freed"]:
            continue # killed before its first event
        report = support.report(path)
        operations += process["operations"]
        wrong += [f"{path.name}: {line}" for line in _churn.compare(report, program, process)]
        if i and report["process"]["inherited"]:
            freed = report["process"]["inherited"]["freed_bytes"]
            if abs(freed - process["inherited_freed"]) > process["heap_flight"]:
                wrong.append(f"{path.name}: inherited freed {freed}, truth {process['inherited_freed']}")
    for path in folder.glob("*.mst*"): # also those of processes that the program's record does not have
        support.report(path)
    return wrong, operations


def main(rounds):
    program = _churn.program()
    wrong, operations = [], 0
    for number in range(rounds):
        found, done = kill_once(program, number)
        wrong += [f"run {number}: {line}" for line in found]
        operations += done
    print(f"{rounds} kills, {operations} operations")
    assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
