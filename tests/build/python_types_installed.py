#!/usr/bin/env python3
# needs: pip:mypy==2.4.1
"""The types of the installed modules are seen by a user's type checker: mypy --strict passes a program that uses them
rightly, and finds the faults of one that uses them wrongly."""
import support

RIGHT = """import memstow
import memstow_loops
import memstow_serialize
import memstow_shutdown
import memstow_state

owner: memstow.Owner = memstow.owner("unet", keys=(1, 2), policy="stow")
size: int = owner.figures().live_bytes
with memstow.scope(owner), memstow.run("prompt"):
    shares: list[memstow.Share] = memstow.shares()
memstow.comfy.stow(owner)
with memstow_state.open("refine") as store:
    first: int = store.generation
    store.put("latent", memstow_serialize.serialize(7).type)
result: memstow_shutdown.Result = memstow_shutdown.run()
values: dict[str, object] = memstow_loops.run_sequential(["step"], {"x": 1}, iterations=20)
"""
WRONG = """import memstow
import memstow_loops
import memstow_serialize
import memstow_shutdown
import memstow_state

memstow.owner(7)
text: str = memstow.peak()
memstow.comfy.nothing()
memstow_state.open(7)
memstow_serialize.serialize()
memstow_shutdown.close(7, seconds="long")
memstow_loops.run_sequential(7)
"""
prefix, venv = support.HERE / "prefix", support.HERE / "venv"
support.run("cmake", "--install", support.BUILD, "--prefix", prefix)
support.run(support.PYTHON, "-m", "venv", "--without-pip", venv)
packages, = venv.glob("lib/python*/site-packages")
(packages / "memstow.pth").write_text(f"{prefix}/share/memstow/python\n") # how a user brings it into an environment


def mypy(text, status):
    program = support.HERE / f"program_{status}.py"
    program.write_text(text)
    return support.run(support.PYTHON, "-m", "mypy", "--strict", "--cache-dir=/dev/null", "--python-executable",
                       venv / "bin/python", program.name, status=status, env={"PATH": "/usr/bin:/bin"}).stdout


mypy(RIGHT, 0)
found = mypy(WRONG, 1)
assert [f"program_1.py:{line}: error:" in found for line in range(7, 14)] == [True] * 7, found
assert found.count("error:") == 7, found
