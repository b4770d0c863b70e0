"""If kill -9 ends memstow while it drives or checks a program, the program is unharmed, and goes on to its own end."""
import os, pathlib, subprocess

from support import MEMSTOW, start, wait_for

os.mkdir("ledgers")
pathlib.Path("x.scenario").write_text("program: sh program lifecycle\nready: says never\n")
pathlib.Path("program").write_text("""echo begun >$1.begun
until [ -e $1.killed ]; do sleep 0.1; done
echo a line; echo over >$1.over
""")
for words in (("lifecycle", "--test=T1", "x.scenario"),
              ("check", "--baseline=x", "--update-baseline", "--", "sh", "program", "check")):
    process = start(MEMSTOW, *words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    env={**os.environ, "TMPDIR": os.path.abspath("ledgers")})
    wait_for(lambda: pathlib.Path(f"{words[0]}.begun").exists(), 60)
    process.kill()
    process.wait()
    pathlib.Path(f"{words[0]}.killed").touch()
    wait_for(lambda: pathlib.Path(f"{words[0]}.over").exists(), 20)
