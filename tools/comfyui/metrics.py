"""ComfyUI's figures for Prometheus. In: what a scraper accepts. Out: what `memstow metrics` writes of this process. The
command reads the ledger, so neither the worker nor the server's thread waits for it. For each form at most one command
runs at a time: those that ask meanwhile get its answer."""
import asyncio
import os
import subprocess
from typing import Any, Optional

from . import command

OPEN = "application/openmetrics-text"
FORMS = {"openmetrics": f"{OPEN}; version=1.0.0; charset=utf-8",
         "prometheus": "text/plain; version=0.0.4; charset=utf-8"}
MODELS, SECONDS = 20, 60


class Failed(Exception):
    pass


def form_of(accept: str) -> str:
    """The form for a scraper that accepts this. Prometheus names OpenMetrics if it reads it."""
    return "openmetrics" if OPEN in accept.lower() else "prometheus"


def environment() -> dict:
    """This process's environment, in which the command itself is not tracked."""
    return {key: value for key, value in os.environ.items() if key != "LD_PRELOAD" and not key.startswith("MEMSTOW")}


def ask(form: str) -> bytes:
    """Runs the command."""
    path = command.find()
    if path is None:
        raise Failed("the command memstow was not found: docs/install.md")
    words = [path, "metrics", str(os.getpid()), "--leaks", f"--models={MODELS}", f"--format={form}"]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, env=environment(), timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed(str(error)) from error
    if done.returncode:
        raise Failed(done.stderr.decode(errors="replace").strip() or f"exit status {done.returncode}")
    return done.stdout


class Metrics:
    def __init__(self) -> None:
        self.at_work: dict[str, Any] = {} # by form: the answer that is being made

    async def get(self, accept: Optional[str]) -> tuple[bytes, str]:
        """The figures, and their content type. Runs on the server's thread."""
        form = form_of(accept or "")
        if form not in self.at_work:
            self.at_work[form] = asyncio.get_running_loop().run_in_executor(None, ask, form)
            self.at_work[form].add_done_callback(lambda _done: self.at_work.pop(form))
        return await asyncio.shield(self.at_work[form]), FORMS[form] # a client that goes away ends only its own wait
