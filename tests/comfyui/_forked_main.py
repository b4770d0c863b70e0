"""Runs ComfyUI's main.py (argument 1: its folder) many times. Each run is a whole ComfyUI in a fork of this process,
which has already imported the modules that take long to import.

In: lines on standard input, each with the path of a log. Out: for each path, a line with the pid of the process that
writes this log."""
import os, runpy, signal, sys

import torchvision_operators

torchvision_operators.ensure()
folder = sys.argv.pop(1)
sys.argv[0] = os.path.join(folder, "main.py")
sys.path[0] = folder
os.chdir(folder)

import comfy.options # ComfyUI's own

comfy.options.enable_args_parsing()
import folder_paths, utils.extra_config, execution, nodes, server # noqa: E402, F401

signal.signal(signal.SIGCHLD, signal.SIG_IGN) # nobody waits for the forks
for line in sys.stdin:
    if child := os.fork():
        print(child, flush=True)
        continue
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(line.strip(), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for number in (1, 2):
        os.dup2(log, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    runpy.run_path(sys.argv[0], run_name="__main__")
    break
