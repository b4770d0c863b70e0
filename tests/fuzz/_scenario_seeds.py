"""Seeds for the reader of scenarios."""
import pathlib

whole = """# a server
program: python3 server.py --port {port}
folder: {here}
set: NAME=VALUE
port: 8188
repeat: 5
observe: 20s
exit: 0 130, 1
ready: http GET /system_stats within 90s
load: prompt load.json
load: finished within 2m
queue: http POST /queue body.json
behind: prompt load.json
behind: waiting
finish: says done within 500ms
cancel: running
cancel: interrupt
child: run ./child &
child: file child.pid
close: input quit
close: wait 1s
close: signal INT
"""
pathlib.Path("whole").write_text(whole)
for number, line in enumerate(whole.splitlines()):
    pathlib.Path(f"line{number}").write_text(f"program: x\n{line}\n")
pathlib.Path("bytes").write_bytes(b"program: \xff\n")
pathlib.Path("within").write_text("program: x\nready: says stay within reach within 1s\n")
