"""Serves the requests of `memstow leaks PID` to a program: collect all garbage, and find the holders of the blocks of
some call stacks. In: requests, from a thread that waits for them. Out: answers. Requests are served between two runs,
by the thread that ends a run, or at once while no run is on. A program that knows a better moment, as ComfyUI's node
pack does, can serve the requests itself. No run ever waits for a request."""
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
# seconds of processor time for a search. find: the user gave --holders to memstow leaks; offer: the user did not
SECONDS = {"find": 10.0, "offer": 3.0}
MANY_BLOCKS = 3                         # the time is multiplied by this if each Python object has a block of its own


class Looks:
    def __init__(
            self, request_of: Callable[..., Any], answer: Callable[..., None], holders_of: Callable[..., Any]) -> None:
        self.request_of, self.answer, self.holders_of = request_of, answer, holders_of
        self.handler: Optional[Callable[[Any], None]] = None
        self.waiting: collections.deque[Any] = collections.deque()
        self.asked: list[str] = []      # call stacks from the `more` messages of the request that is arriving
        self.patience = 1               # factor for the time of the next search
        self.runs_on = 0
        self.at_work = threading.Lock()
        self.pid = 0

    def begin(self) -> None:
        """Starts the thread that waits for requests, once in each process. A forked child needs a thread of its own,
        because it has its parent's memory, but not its parent's thread."""
        if self.pid != os.getpid():
            self.pid, self.runs_on, self.at_work = os.getpid(), 0, threading.Lock()
            threading.Thread(target=self._listen, name="memstow leaks", daemon=True).start()

    def _listen(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()) # signals are for the program's threads
        pid = self.pid
        while pid == self.pid:
            try:
                request = self.request_of(KINDS, FOR_EVER)
            except OSError: # no more requests can come
                return
            if request is not None:
                self._take(request)

    def _take(self, request: Any) -> None:
        if request.kind == "holders" and request.text.startswith("more"):
            self._answer(request, *self.look(request)) # at once, because the client waits with its next message
        elif self.handler is not None:
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
        """Serves the waiting requests if no run is on. Only one thread serves them at a time."""
        while self.waiting and not self.runs_on and self.at_work.acquire(blocking=False):
            try:
                request = self.waiting.popleft()
                self._answer(request, *self.look(request))
            except IndexError: # another thread has taken it
                pass
            finally:
                self.at_work.release()

    def _answer(self, request: Any, result: int, text: str) -> None:
        with contextlib.suppress(OSError): # the client is gone
            self.answer(request, result, text)

    # ---- serving one request

    def look(self, request: Any) -> tuple[int, str]:
        """Serves a request. Returns a number or -errno, and a line of text. Never raises."""
        try:
            return (gc.collect(), "") if request.kind == "collect" else self._holders(request.text)
        except Exception as error: # the client must get an answer, and the program must go on
            return -errno.EIO, f"{type(error).__name__}: {error}"

    def _holders(self, text: str) -> tuple[int, str]:
        """Serves a request for holders. Its text is WORD RUN PATH=STACK,STACK… If WORD is `more`, the function only
        notes the call stacks, because a request with more of them follows. If WORD is `offer` or `find`, the function
        searches for the holders of all noted call stacks. Blocks of runs after RUN do not count. Returns the number of
        call stacks that were searched, and a line of text."""
        word, run, *stacks = text.split()
        self.asked += stacks
        if word == "more":
            return 0, ""
        stacks, self.asked = self.asked, []
        begun = time.thread_time()
        apart = os.environ.get("PYTHONMALLOC", "").startswith("malloc")
        seconds = min(SECONDS[word] * self.patience, SECONDS["find"])
        found, is_cut = self.holders_of(stacks, int(run, 16), seconds * (MANY_BLOCKS if apart else 1),
                                        seconds < SECONDS["find"])
        self.patience = 2 * self.patience if is_cut else 1 # with the same time the next search would come no further
        count = len({stack.partition("=")[0] for stack in stacks})
        took = f"{found} of {count} call stacks, in {time.thread_time() - begun:.1f} s"
        return found, f"{took}: there was no time for all" if is_cut else took
