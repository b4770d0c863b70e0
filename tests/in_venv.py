"""For scripts that are started by hand and drive a browser: importing this starts the script again with the Python of
build/venv, where there is one. Then the modules of tests/html can be imported, too, and the command is that of
build/dev, unless MEMSTOW_BUILD names another build."""
import os, pathlib, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / "build/venv"
if (VENV / "bin/python").exists() and pathlib.Path(sys.prefix).resolve() != VENV.resolve() \
        and "IN_VENV" not in os.environ:
    python = VENV / "bin/python"
    os.execve(python, [python, *sys.argv], dict(os.environ, IN_VENV="1"))
os.environ.setdefault("MEMSTOW_BUILD", str(ROOT / "build/dev"))
os.environ.setdefault("MEMSTOW", os.environ["MEMSTOW_BUILD"] + "/memstow")
sys.path.insert(0, str(ROOT / "tests/html"))
