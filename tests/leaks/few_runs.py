# timeout: 200
"""The smallest number of runs that can be judged. A program that does not leak, whose cache of seven results becomes
full in these runs, has no finding, with and without --python-objects. Each program that leaks has its own finding and
no other."""
import _plants
from _leaks import brief, functions, leaks, plant

RUNS = (9, 10)


def look(name, runs, options=()):
    program = plant(name, runs, options=options)
    program.wait_for("ready")
    document = leaks(program.pid(), status=0 if name == "clean" else 1)
    assert document["runs"]["judged"] == runs - 4, document["runs"]
    program.end()
    return document


for runs in RUNS:
    for options in ((), ("--python-objects",)):
        document = look("clean", runs, options)
        assert not document["found"], (runs, options, brief(document))
        assert document["not_leaks"]["plateau"]["sites"], document["not_leaks"]

for number, (name, (model, function, retired)) in enumerate(_plants.LEAKS.items()):
    document = look(name, RUNS[number % len(RUNS)], ("--python-objects",) if number % 4 >= 2 else ())
    assert document["leaks"], (name, document["not_leaks"])
    for leak in document["leaks"]:
        assert (leak["node"],
                leak["model"]) == ("Leaky", model) and leak["confidence"] == "low", (name, brief(document))
    assert any(function in functions(leak["stack"])[:4] for leak in document["leaks"]), (name, brief(document))
    assert any(one["leak"] for one in document["retired"]) == retired, (name, brief(document))
