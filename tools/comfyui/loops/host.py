"""Runs the prompts of loops in this ComfyUI, as ordinary prompts in its queue. In: prompts of memstow_loops. Out: the
outcome of each prompt. The prompts are not in the history. Of their outputs, only those that a later prompt can use
stay in the node caches. Never runs a node itself. Never makes ComfyUI's worker thread or the server's thread wait."""
import asyncio
import concurrent.futures
import inspect
import threading
import uuid
from typing import Any, Callable, Optional

from .. import caches
from ..hooks import quietly, wrap
from ..runs import Runs

QUEUED_SECONDS = 60 # seconds that the server has to check and queue a prompt
LOOK_SECONDS = 0.5  # seconds between two looks at the prompt's place in the queue
NO_WORKER = ("ComfyUI's worker thread has ended by an error, which is in ComfyUI's log: nothing runs until ComfyUI is "
             "started again")


class Waiting:
    """A prompt of a loop, from its queueing to its end."""

    def __init__(self, prompt: Any) -> None:
        self.prompt, self.over = prompt, threading.Event()
        self.messages: list = []
        self.succeeded = False


class Host:
    def __init__(self, runs: Runs, functions: Any) -> None:
        self.runs, self.functions = runs, functions
        self.waiting: dict[str, Waiting] = {}
        self.ended: dict[str, Waiting] = {}      # ended prompts whose outputs are still in the node cache
        # serial of a running loop → the cache keys of the outputs that all iterations of the loop use. The inner
        # dictionary serves as an ordered set
        self.constant: dict[str, dict] = {}

    # ---- hooks in ComfyUI

    def install(self) -> None:
        import execution
        wrap(execution.PromptQueue, "task_done", self._at_the_end)
        self.runs.after_prompt = self._tidy

    def _at_the_end(self, before: Callable) -> Callable:
        host = self

        def task_done(self: Any, item_id: Any, *arguments: Any, **options: Any) -> Any:
            with self.mutex:
                item = self.currently_running.get(item_id)
                found = before(self, item_id, *arguments, **options)
                waiting = host.waiting.pop(item[1], None) if item is not None else None
                if waiting is not None:
                    host.ended[item[1]] = waiting
                    quietly(host._note_end)(waiting, self.history.pop(item[1], None))
            if waiting is not None:
                waiting.over.set()
            return found
        return task_done

    def _note_end(self, waiting: Waiting, entry: Optional[dict]) -> None:
        status = (entry or {}).get("status") or {}
        waiting.messages = status.get("messages") or []
        waiting.succeeded = status.get("status_str") == "success"

    def _tidy(self, executor: Any, prompt_id: str) -> None:
        """Runs on the worker thread after a run. Drops the outputs of the prompt's `fresh` nodes from the node cache,
        because no later prompt may use them. Notes the outputs of its `constant` nodes, which end() drops."""
        waiting = self.ended.pop(prompt_id, None)
        if waiting is None:
            return
        caches.forget(executor.caches, caches.keys_of(executor.caches, waiting.prompt.fresh))
        if waiting.prompt.serial in self.constant:
            for key in caches.keys_of(executor.caches, waiting.prompt.constant):
                self.constant[waiting.prompt.serial][key] = None

    # ---- the functions that memstow_loops calls

    @property
    def classes(self) -> Any:
        import nodes
        return self.functions.ClassesHere(nodes.NODE_CLASS_MAPPINGS)

    def may_wait(self) -> str:
        """The reason why the calling thread must not wait for a loop, or "" if it may wait."""
        if threading.get_ident() == self.runs.worker:
            return "this thread runs the prompts of loops, and cannot wait for one: use start_loop()"
        return self.may_start()

    def may_start(self) -> str:
        """The reason why the calling thread must not start a loop, or "" if it may start one."""
        from server import PromptServer
        try:
            is_server = asyncio.get_running_loop() is PromptServer.instance.loop
        except RuntimeError:
            is_server = False
        words = "this thread is the server's, which checks the prompts of loops: use start_loop() on another thread"
        return words if is_server else ""

    def check(self, prompt: Any) -> None:
        self._on_server(self._check(prompt))

    def run(self, prompt: Any, cancelled: threading.Event) -> Any:
        outcome = self.functions.Outcome
        prompt_id, waiting = str(uuid.uuid4()), Waiting(prompt)
        if cancelled.is_set():
            return outcome("cancelled")
        self.constant.setdefault(prompt.serial, {})
        self.waiting[prompt_id] = waiting
        try:
            self._on_server(self._queue(prompt_id, prompt))
            if not self._wait(prompt_id, waiting, cancelled):
                words = "it was cancelled" if cancelled.is_set() else "its prompt was taken out of the queue"
                return outcome("cancelled", "", words)
        finally:
            self.waiting.pop(prompt_id, None)
        return self._outcome(waiting, cancelled)

    def end(self, serial: str) -> None:
        keys = self.constant.pop(serial, {})
        self.runs.call(lambda executor: caches.forget(executor.caches, keys) if executor is not None else None)

    # ---- a prompt in ComfyUI's queue

    def _on_server(self, work: Any) -> Any:
        from server import PromptServer
        asked = asyncio.run_coroutine_threadsafe(work, PromptServer.instance.loop)
        try:
            return asked.result(QUEUED_SECONDS)
        except concurrent.futures.TimeoutError:
            asked.cancel()
            raise self.functions.LoopError(
                f"ComfyUI's server has not checked the prompt within {QUEUED_SECONDS} s") from None

    async def _check(self, prompt: Any) -> tuple[Any, list]:
        """Lets ComfyUI check a prompt. Returns the graph, and the outputs to execute. Raises LoopError if ComfyUI finds
        any fault, even if the fault is in only one of several outputs."""
        import execution
        graph = prompt.graph
        known = [name for name in inspect.signature(execution.validate_prompt).parameters]
        given = {"prompt_id": "memstow", "prompt": graph, "partial_execution_list": None}
        valid = await execution.validate_prompt(*[given.get(name) for name in known])
        if not valid[0] or valid[3]:
            raise self.functions.LoopError(f"ComfyUI refuses it: {words_of(valid[1], valid[3])}")
        return graph, valid[2]

    async def _queue(self, prompt_id: str, prompt: Any) -> None:
        """Queues a prompt as the server does with a prompt that a client sends."""
        import execution
        from server import PromptServer
        server = PromptServer.instance
        prompt.graph = server.trigger_on_prompt({"prompt": prompt.graph, "extra_data": {}})["prompt"]
        graph, outputs = await self._check(prompt)
        number, server.number = server.number, server.number + 1
        sensitive: list[dict] = [{}] if hasattr(execution, "SENSITIVE_EXTRA_DATA_KEYS") else []
        server.prompt_queue.put((number, prompt_id, graph, {}, outputs, *sensitive))

    def _wait(self, prompt_id: str, waiting: Waiting, cancelled: threading.Event) -> bool:
        """Waits for the prompt. Returns whether it ran. Raises LoopError if nothing will run it."""
        while not waiting.over.wait(0.05 if cancelled.is_set() else LOOK_SECONDS):
            waiting.prompt.tell()
            is_lost = self.runs.has_lost_worker() and not waiting.over.is_set()
            place = self._place(prompt_id, is_lost or cancelled.is_set())
            if is_lost:
                raise self.functions.LoopError(NO_WORKER)
            if place == "gone" and not waiting.over.wait(1):
                return False
        return True

    def _place(self, prompt_id: str, is_to_end: bool) -> str:
        """Where a prompt is: "waiting", "running" or "gone". With `is_to_end`, a waiting prompt is taken out of the
        queue, and a running prompt is interrupted. Both happen under the queue's lock, so that no other prompt is
        interrupted instead."""
        import nodes
        from server import PromptServer
        queue = PromptServer.instance.prompt_queue
        with queue.mutex:
            if any(item[1] == prompt_id for item in queue.currently_running.values()):
                if is_to_end: # repeated, because a run that begins resets the interrupt
                    nodes.interrupt_processing()
                return "running"
            if any(item[1] == prompt_id for item in queue.queue):
                if not is_to_end:
                    return "waiting"
                queue.delete_queue_item(lambda item: item[1] == prompt_id)
        return "gone"

    def _outcome(self, waiting: Waiting, cancelled: threading.Event) -> Any:
        outcome = self.functions.Outcome
        for event, data in reversed(waiting.messages):
            if event == "execution_interrupted":
                words = "it was cancelled" if cancelled.is_set() else "it was interrupted"
                return outcome("cancelled", str(data.get("node_id", "")), words)
            if event == "execution_error":
                words = str(data.get("exception_message", "")).strip()
                kind = data.get("exception_type", "error")
                return outcome("failed", str(data.get("node_id", "")), f"{kind}: {words}")
        return outcome("ok") if waiting.succeeded else outcome("failed", "", "the run failed; see ComfyUI's log")


def words_of(error: Any, node_errors: Any) -> str:
    """ComfyUI's reasons for refusing a prompt: the reasons for single nodes if ComfyUI gives any, else the reason for
    the whole prompt."""
    found = [f"node {node} ({of.get('class_type')}): {one.get('message')}: {one.get('details')}"
             for node, of in (node_errors or {}).items() for one in of.get("errors", [])]
    if found:
        return "; ".join(found)
    return f"{error.get('message')} {error.get('details', '')}".strip() if isinstance(error, dict) else str(error)
