"""How ComfyUI ends. Closed by Ctrl-C while a workflow runs it aborts ("terminate called without an active exception"):
Python ends the worker's thread inside PyTorch. So it ends by the coordinator (memstow_shutdown.py): what waits is
dropped, what runs may come to its end for ten seconds, then it is interrupted; a second Ctrl-C interrupts it at once. A
workflow that does not end even then is left where it is, and the process ends without Python's last steps."""
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
        """Waits for the worker: it is through with a run when it has asked for the next one."""
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
            comfy.model_management.interrupt_current_processing() # again and again: a run that begins takes it back
            if time.monotonic() > until:
                raise TimeoutError("the workflow goes on")
            time.sleep(0.05)

    @quietly
    def begin(self) -> None:
        """Before all else: from now on Ctrl-C does not end the waiting, but what is waited for."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, lambda _number, _frame: self.hurry.set())

    def leave(self) -> None:
        """After all else: a thread that is still inside PyTorch would make of the end an abort."""
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
