"""What the command memstow says of this process. In: a subcommand and its options. Out: what it writes. The command
reads the ledger, so neither the worker nor the server's thread waits for it. While a question is being answered, all
who ask the same question get that answer."""
import asyncio
import os
import subprocess
from typing import Any

from . import command

SECONDS = 120


class Failed(Exception):
    pass


def environment() -> dict:
    """This process's environment, in which the command itself is not tracked."""
    return {key: value for key, value in os.environ.items() if key != "LD_PRELOAD" and not key.startswith("MEMSTOW")}


def ask(subcommand: str, options: tuple, fine: tuple) -> bytes:
    """Runs the command. `fine`: the exit codes with which it has an answer."""
    path = command.find()
    if path is None:
        raise Failed("the command memstow was not found: docs/install.md")
    words = [path, subcommand, str(os.getpid()), *options]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, env=environment(), timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed(str(error)) from error
    if done.returncode not in fine:
        raise Failed(done.stderr.decode(errors="replace").strip() or f"exit status {done.returncode}")
    return done.stdout


class Asking:
    def __init__(self) -> None:
        self.at_work: dict[tuple, Any] = {} # by question: the answer that is being made

    async def get(self, subcommand: str, *options: str, fine: tuple = (0,)) -> bytes:
        """The command's answer. Runs on the server's thread."""
        question = (subcommand, options, fine)
        if question not in self.at_work:
            self.at_work[question] = asyncio.get_running_loop().run_in_executor(None, ask, *question)
            self.at_work[question].add_done_callback(lambda _done: self.at_work.pop(question))
        return await asyncio.shield(self.at_work[question]) # a client that goes away ends only its own wait
