"""lifecycle obeys the keys of a scenario for the folder, variables, a port of its own and repetitions, and the steps
`file`, `run`, `says` and `input`."""
import os, pathlib, stat

from support import free_port, memstow

port = free_port()
pathlib.Path("inside").mkdir()
pathlib.Path("program").write_text("""#!/bin/sh
pwd >where; echo "$COLOUR, $1" >told; touch up
read line; echo "read $line"
read line
""")
os.chmod("program", stat.S_IRWXU)
pathlib.Path("x.scenario").write_text(f"""# keys
program: {{here}}/program "{{port}}"
folder: {{here}}/inside
set: COLOUR=red of {{port}}
port: {port}
repeat: 2
observe: 20s
ready: file inside/up within 30s
load: run echo "$PID $PORT" >>ran; test -d /proc/$PID
load: input it
load: says read it within 30s
queue: run exit 5
close: input over
""")
text = memstow("lifecycle", "--untracked", "--test=T2", "x.scenario").stdout
assert "2 passed, 0 with a warning, 0 failed; 0 tests skipped" in text, text
flowing = " ".join(text.split()) # where the text is wrapped depends on the number of digits in the seconds
assert " at the end 0 B; at most 1 process, 1 thread " in flowing and max(map(len, text.split("\n"))) <= 80, text
assert pathlib.Path("inside/where").read_text() == f"{pathlib.Path.cwd()}/inside\n"
assert pathlib.Path("inside/told").read_text() == f"red of {port}, {port}\n"
ran = pathlib.Path("ran").read_text().splitlines()
assert len(ran) == 2 and ran[0] != ran[1] and all(line.endswith(f" {port}") for line in ran), ran
text = memstow("lifecycle", "--untracked", "--test=T3", "--repeat=1", "x.scenario", status=4).stdout
assert "queue: run exit 5: the command failed with 5" in text, text
