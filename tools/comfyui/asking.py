"""Runs the command memstow on this process. In: a subcommand and its options. Out: the command's output. The command
reads the ledger, and ComfyUI's worker thread runs on meanwhile. A thread of asyncio's executor waits for the output, so
the server's thread can serve other requests. A question (a subcommand with its options) that is asked again while its
command runs gets the output of that command. Cancelling a question ends its command for all who wait for the output."""
import asyncio
import os
import subprocess
from typing import Any, Optional

from . import command

SECONDS = 120


class Failed(Exception):
    pass


def environment() -> dict:
    """This process's environment without LD_PRELOAD and memstow's variables, so that the command itself is not
    tracked."""
    return {key: value for key, value in os.environ.items() if key != "LD_PRELOAD" and not key.startswith("MEMSTOW")}


class Work:
    """One execution of the command. `before`: the arguments before the process id. `fine`: the exit codes with which
    the output is an answer."""

    def __init__(self, subcommand: str, before: tuple, options: tuple, fine: tuple) -> None:
        self.subcommand, self.before, self.options, self.fine = subcommand, before, options, fine
        self.process: Optional[subprocess.Popen] = None
        self.is_cancelled = False
        self.answer: Any = None # the future of run()

    def run(self) -> bytes:
        path = command.find()
        if path is None:
            raise Failed("the command memstow was not found: docs/install.md")
        words = [path, self.subcommand, *self.before, str(os.getpid()), *self.options]
        try:
            with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env=environment()) as self.process:
                said, complaint = self._said(self.process)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Failed(str(error)) from error
        if self.is_cancelled:
            raise Failed("it was cancelled")
        if self.process.returncode not in self.fine:
            raise Failed(complaint.decode(errors="replace").strip() or f"exit status {self.process.returncode}")
        return said

    def _said(self, process: subprocess.Popen) -> tuple[bytes, bytes]:
        try:
            if self.is_cancelled: # cancel() was called before the process existed
                process.kill()
            return process.communicate(timeout=SECONDS)
        except BaseException:
            process.kill()
            raise

    def cancel(self) -> None:
        self.is_cancelled = True
        if self.process is not None:
            self.process.kill()


class Asking:
    def __init__(self) -> None:
        self.at_work: dict[tuple, Work] = {} # the commands that run, by question

    async def get(self, subcommand: str, *options: str, before: tuple = (), fine: tuple = (0,)) -> bytes:
        """The command's output. Runs on the server's thread."""
        question = (subcommand, before, options, fine)
        if question not in self.at_work:
            work = self.at_work[question] = Work(*question)
            work.answer = asyncio.get_running_loop().run_in_executor(None, work.run)
            work.answer.add_done_callback(lambda _done: self.at_work.pop(question))
        return await asyncio.shield(self.at_work[question].answer) # a client that goes away ends only its own wait

    def cancel(self, subcommand: str, option: str) -> bool:
        """Ends the commands that run for this subcommand with this option. Returns whether there were any."""
        found = [work for work in self.at_work.values() if work.subcommand == subcommand and option in work.options]
        for work in found:
            work.cancel()
        return bool(found)
