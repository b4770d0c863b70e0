"""Ends ComfyUI in order. Without this, Ctrl-C during a workflow aborts ComfyUI ("terminate called without an active
exception"), because Python ends the worker's thread inside PyTorch. So the shutdown coordinator ends ComfyUI
(memstow_shutdown.py). Prompts that wait are dropped. The running one has ten seconds to finish, then it is
interrupted. A second Ctrl-C interrupts it at once. If the workflow still does not end, the process ends without
Python's last steps."""
import atexit
import os
import pathlib
import signal
import sys
import threading
import time
from . import beside, log
from .hooks import quietly
from .runs import Runs

DRAIN_SECONDS, CANCEL_SECONDS = 10.0, 8.0
LEFT_BEHIND = 1 # exit status


class Closing:
    def __init__(self, runs: Runs) -> None:
        import folder_paths
        self.runs = runs
        self.hurry = threading.Event()
        self.log = pathlib.Path(folder_paths.get_output_directory(), "memstow", "shutdown.log")

    def drop_waiting(self) -> None:
        waiting = self.runs.queue() if self.runs.queue is not None else None
        if waiting is not None:
            waiting.wipe_queue()

    def drain(self) -> None:
        """Waits for the worker. It has finished a run when it asks for the next one."""
        until = time.monotonic() + DRAIN_SECONDS
        while self.runs.is_busy():
            if self.hurry.is_set() or time.monotonic() > until:
                raise TimeoutError("a workflow runs")
            time.sleep(0.02)

    def cancel(self) -> None:
        import comfy.model_management
        log.info("the workflow that runs is interrupted: ComfyUI closes")
        until = time.monotonic() + CANCEL_SECONDS
        while self.runs.is_busy():
            comfy.model_management.interrupt_current_processing() # repeated, because a run that begins resets it
            if time.monotonic() > until:
                raise TimeoutError("the workflow goes on")
            time.sleep(0.05)

    @quietly
    def begin(self) -> None:
        """Runs first: from now on Ctrl-C interrupts the workflow that is waited for, and not the wait."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, lambda _number, _frame: self.hurry.set())

    def leave(self) -> None:
        """Runs last: if a thread is still inside PyTorch, ends the process without Python's last steps, which would
        abort."""
        if not self.runs.is_busy():
            return
        log.warning("the workflow that runs cannot be interrupted: ComfyUI ends without it")
        for stream in (sys.stdout, sys.stderr):
            quietly(stream.flush)()
        os._exit(LEFT_BEHIND)


def install(runs: Runs) -> None:
    shutdown = beside.module("memstow_shutdown")
    if shutdown is None or not hasattr(threading, "_register_atexit"):
        return
    closing = Closing(runs)
    shutdown.files(log=str(closing.log))
    shutdown.handler(closing.drop_waiting, "ComfyUI: waiting workflows", stage="stop")
    shutdown.handler(closing.drain, "ComfyUI: workflow", stage="drain", seconds=DRAIN_SECONDS + 1)
    shutdown.handler(closing.cancel, "ComfyUI: interrupt", stage="cancel", seconds=CANCEL_SECONDS + 1)
    atexit.register(closing.leave)
    shutdown.at_exit(reason="ComfyUI closes")
    threading._register_atexit(closing.begin)
