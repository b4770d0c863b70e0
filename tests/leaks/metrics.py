# needs: deb:prometheus
"""`memstow metrics --leaks` counts the leaks that `memstow leaks` finds, and the bytes that they gain in a run. It says
nothing about leaks before there is a verdict, or without --leaks."""
import _plants
import support
from _leaks import leaks, plant


def figures(program, *options):
    """The samples about leaks, by name. promtool must accept all samples."""
    support.memstow("metrics", program.pid(), *options, "--textfile=.")
    with open("memstow.prom", encoding="utf-8") as file:
        text = file.read()
    lint = support.run("promtool", "check", "metrics", input=text, status=None)
    assert lint.returncode == 0 and not lint.stdout and not lint.stderr, lint
    lines = [line.rpartition(" ") for line in text.splitlines() if line.startswith("memstow_leak")]
    return {name.partition("{")[0]: float(number) for name, _, number in lines}


for name, runs in (("clean", 10), (next(iter(_plants.LEAKS)), 10), ("clean", 2)):
    program = plant(name, runs)
    program.wait_for("ready")
    document, found = leaks(program.pid(), "--timeout=0"), figures(program, "--leaks")
    assert figures(program) == {}, name
    if document["verdict"] == "cannot_tell":
        assert runs == 2 and found == {}, (name, found)
    else:
        growth = sum(leak["bytes_per_run"] for leak in document["leaks"])
        assert found["memstow_leaks"] == document["found"] == (name != "clean"), (name, found, document["found"])
        assert abs(found["memstow_leak_growth_bytes"] - growth) <= 1, (name, found, growth)
        assert bool(growth) == (name != "clean"), (name, growth)
    program.end()
