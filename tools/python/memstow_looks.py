"""What `memstow leaks PID` asks of a program: to look at all its garbage, and to say what holds the blocks of some call
stacks. In: requests, from a thread that waits for them. Out: answers. It is done between two runs: by the thread that
ends a run, or at once while none is on. Whoever has a better moment for it (ComfyUI's node pack) takes the requests
over. No run ever waits for it."""
import collections
import contextlib
import errno
import gc
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, Optional

COLLECT, HOLDERS = 7, 8                 # MEMSTOW_ASK_COLLECT, MEMSTOW_ASK_HOLDERS
KINDS = 1 << COLLECT | 1 << HOLDERS
FOR_EVER = 2**32 - 1                    # milliseconds
# of the processor: what a person asks for, and what comes with another question;
SECONDS = {"find": 10.0, "offer": 3.0}
MANY_BLOCKS = 3                         # so many times as long where each Python object has a block of its own


class Looks:
    def __init__(
            self, request_of: Callable[..., Any], answer: Callable[..., None], holders_of: Callable[..., Any]) -> None:
        self.request_of, self.answer, self.holders_of = request_of, answer, holders_of
        self.handler: Optional[Callable[[Any], None]] = None
        self.waiting: collections.deque[Any] = collections.deque()
        self.asked: list[str] = []      # call stacks of requests that more was to follow
        self.runs_on = 0
        self.at_work = threading.Lock()
        self.pid = 0

    def begin(self) -> None:
        """Listens from now on. A forked child has the memory of its parent's thread, and not the thread."""
        if self.pid != os.getpid():
            self.pid, self.runs_on, self.at_work = os.getpid(), 0, threading.Lock()
            threading.Thread(target=self._listen, name="memstow leaks", daemon=True).start()

    def _listen(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()) # they are for the program's threads
        pid = self.pid
        while pid == self.pid:
            try:
                request = self.request_of(KINDS, FOR_EVER)
            except OSError: # none can come any more
                return
            if request is not None:
                self._take(request)

    def _take(self, request: Any) -> None:
        if self.handler is not None:
            self.handler(request)
        elif request.kind == "holders" and request.text.startswith("offer"):
            self._answer(request, -errno.EAGAIN, "the program looks for holders only where it is asked to")
        else:
            self.waiting.append(request)
            self.serve()

    # ---- the moment between two runs

    def run_begins(self) -> None:
        self.runs_on += 1

    def run_ends(self) -> None:
        self.runs_on = max(0, self.runs_on - 1)
        self.serve()

    def serve(self) -> None:
        """Answers what waits, if no run is on. One thread does."""
        while self.waiting and not self.runs_on and self.at_work.acquire(blocking=False):
            try:
                request = self.waiting.popleft()
                self._answer(request, *self.look(request))
            except IndexError: # another thread has it
                pass
            finally:
                self.at_work.release()

    def _answer(self, request: Any, result: int, text: str) -> None:
        with contextlib.suppress(OSError): # who asked is gone
            self.answer(request, result, text)

    # ---- what is asked for

    def look(self, request: Any) -> tuple[int, str]:
        """Does it, and says what came of it: a number, or -errno, and a line of text. Never raises."""
        try:
            return (gc.collect(), "") if request.kind == "collect" else self._holders(request.text)
        except Exception as error: # who asked must hear of it, and the program go on
            return -errno.EIO, f"{type(error).__name__}: {error}"

    def _holders(self, text: str) -> tuple[int, str]:
        """WORD RUN PATH=STACK,STACK…: `more` follows; `offer`, and `find`, are the last. RUN: blocks of later runs do
        not count."""
        word, run, *stacks = text.split()
        self.asked += stacks
        if word == "more":
            return 0, ""
        stacks, self.asked = self.asked, []
        begun = time.thread_time()
        apart = os.environ.get("PYTHONMALLOC", "").startswith("malloc")
        found, is_cut = self.holders_of(stacks, int(run, 16), SECONDS[word] * (MANY_BLOCKS if apart else 1))
        took = f"{found} of {len(stacks)} call stacks, in {time.thread_time() - begun:.1f} s"
        return found, f"{took}: there was no time for all" if is_cut else took
