"""Ends ComfyUI in order. Without this, Ctrl-C during a workflow aborts ComfyUI ("terminate called without an active
exception"), because Python ends the worker's thread inside PyTorch. So the shutdown coordinator (memstow_shutdown.py)
ends ComfyUI. Waiting prompts are dropped. The running prompt has ten seconds to finish, then it is interrupted. A
second Ctrl-C interrupts it at once. If the workflow still does not end, the process ends without Python's last
steps."""
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
        """Waits until the worker has finished its run. The worker then waits for the next prompt."""
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
            # repeated, because a run that begins resets the interrupt
            comfy.model_management.interrupt_current_processing()
            if time.monotonic() > until:
                raise TimeoutError("the workflow goes on")
            time.sleep(0.05)

    @quietly
    def begin(self) -> None:
        """Runs as the first step of the shutdown. From now on Ctrl-C makes drain() give up its wait, so that the
        workflow is interrupted. Ctrl-C does not interrupt the shutdown itself."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, lambda _number, _frame: self.hurry.set())

    def leave(self) -> None:
        """Runs as the last step: if the worker is still in a workflow, ends the process without Python's last steps,
        because these steps would abort the process while a thread is inside PyTorch."""
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
