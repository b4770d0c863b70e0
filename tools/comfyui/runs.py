"""The work after every run: apply the policies, drop the models to be freed, report. The end of a run is recorded in a
finally clause around ComfyUI's execute_async(). All work on Python objects is done on ComfyUI's worker thread after
task_done, in PromptQueue.get_flags. A thread of this pack waits for requests from outside and queues them; the worker
thread serves and answers them."""
import collections
import contextlib
import dataclasses
import errno
import functools
import gc
import itertools
import queue
import threading
import time
import weakref
from typing import Any, Callable, Optional

from . import caches, log, memstow, report, unload
from .checkpoints import siblings
from .flags import lineage
from .held import Held, holders_of
from .hooks import Watch, quietly, resident, wrap
from .leftovers import Leftovers
from .policy_node import NODE
from .points import Points
from .registry import Identity, Registry, Setting, for_one_run, patchers_in

PATIENCE = 60 # seconds that a client may wait for the answer to its ticket
TICKETS = 64  # the results of so many latest tickets can be asked for
FOLLOW_UP_SECONDS = 10
NOT_FOLLOWED_UP = ("memstow: a run has ended and no policy was applied: this program runs workflows without ComfyUI's "
                   "worker. Call memstow.comfy.run_ended() after each run (docs/comfyui.md)")
REPORTS = 32  # the reports of so many latest runs can be asked for


@dataclasses.dataclass(frozen=True)
class Order(memstow.Request):
    """A request of the tab in ComfyUI's page. A policy without a priority leaves the priority as it is."""
    priority: Optional[int] = None


class Ticket:
    """A request that waits for the worker thread."""

    def __init__(self, asked: memstow.Request, answer: Optional[Callable[[int, str], None]] = None) -> None:
        self.asked, self._answer = asked, answer
        self.done = threading.Event()
        self._begun = threading.Lock()
        self.number = 0
        self.result: Optional[int] = None
        self.words = ""

    def begin(self) -> bool:
        """Takes the ticket, to serve it or to withdraw it. Only the first caller gets True."""
        return self._begun.acquire(blocking=False)

    def answer(self, result: int, words: str) -> None:
        self.result, self.words = result, words
        self.done.set()
        if self._answer is not None:
            self._answer(result, words)


class Runs:
    def __init__(self, registry: Registry, watch: Watch, button: unload.Button, points: Points) -> None:
        self.registry, self.watch, self.button, self.points = registry, watch, button, points
        self.executor: Optional[weakref.ref] = None
        self.queue: Optional[weakref.ref] = None
        self.worker: Optional[int] = None
        # the current run; or a run that has ended, until the work after it begins
        self.run: Optional[dict] = None
        self.number = 0
        self.tickets: "queue.SimpleQueue[Ticket]" = queue.SimpleQueue()
        self.numbers = itertools.count(1)
        self.asked: dict[int, Ticket] = {}    # the latest TICKETS tickets, by number
        self.last: Optional[dict] = None      # the latest report: of a run, or of a trigger outside of runs
        self.reports: collections.deque = collections.deque(maxlen=REPORTS) # the reports of the latest runs
        self.cleanup: Optional[str] = None
        self.at_work: Optional[threading.Thread] = None # the worker thread, while it does not wait for a prompt
        self.draining = threading.RLock()
        self.has_complained = False
        # owner's id → why its model is in memory: the result of the latest trigger, or of a later _why()
        self.whys: dict[int, str] = {}
        self.held = Held(registry)
        # called after a prompt, before its policies are applied
        self.after_prompt: Callable[[Any, str], None] = lambda executor, prompt_id: None
        # work for the worker thread between two runs
        self.todo: "queue.SimpleQueue[Callable[[Any], None]]" = queue.SimpleQueue()
        self.on_report: Callable[[dict], None] = lambda found: None # called with the report of each run
        self.leftovers = Leftovers(registry.trace)
        self.orders: dict[str, Callable] = {"free": self._free, "policy": self._settle, "why": self._why}
        registry.on_gone = self.leftovers.add

    # ---- the beginning and the end of a run

    @quietly
    def begins(self, executor: Any, prompt: Any, prompt_id: Any, extra: Any) -> None:
        self.executor, self.worker = weakref.ref(executor), threading.get_ident()
        if self.run is not None and not self.run["ended"]:
            return # a prompt inside a prompt: its memory belongs to the outer run
        if self.run is not None:
            self.complain()
        self.number += 1
        self.registry.phase = "a run"
        self.registry.this_run = for_one_run((extra or {}).get("memstow"))
        self.button.pressed = False
        for identity in self.registry.all():
            identity.kept = identity.held is not None # ComfyUI may drop all other models from now on
            identity.set_idle(False)
        for identity in self.registry.all():
            quietly(caches.put_back)(executor.caches, identity.outputs)
        self.watch.meter.begin()
        self.watch.prompt, self.watch.nodes, self.watch.peak = dict(prompt or {}), [], 0
        self.run = {"number": self.number, "prompt_id": str(prompt_id), "prompt": self.watch.prompt, "ended": False,
                    "outcome": None, "reason": "run_ended", "rss": resident(),
                    "handle": memstow.Run(f"run {self.number}")}
        self.watch.running = True
        self.run["handle"].begin()
        self.watch.meter.names[self.run["handle"].id] = self.run["handle"].name

    @quietly
    def ended(self, executor: Any, prompt_id: Any, outcome: Optional[str] = None) -> None:
        """Records the end of a run. A second call does nothing."""
        run = self.run
        if run is None or run["ended"] or run["prompt_id"] != str(prompt_id):
            return
        run["outcome"], run["ended_at"] = outcome or outcome_of(executor), time.monotonic()
        run["ended"] = True
        self.watch.running = False
        self.registry.phase = "after the run"
        if run["handle"].id:
            run["handle"].end(run["outcome"])
        self.watch.meter.look()

    def is_busy(self) -> bool:
        """Whether the worker runs a workflow, or does the work after one."""
        worker = self.at_work
        return worker is not None and worker.is_alive()

    def has_lost_worker(self) -> bool:
        """Whether ComfyUI's worker thread has ended, for example by an error while it handled the error of a node."""
        worker = self.at_work
        return worker is not None and not worker.is_alive()

    # ---- the work between two runs, on the worker thread

    def drain(self) -> None:
        """Does the work between two runs."""
        with self.draining: # a program without ComfyUI's worker may call drain() from several threads
            run = self.run
            if run is not None and run["ended"]:
                self.run = None
                self.after_run(run)
            while not self.todo.empty():
                quietly(self.todo.get())(self.executor() if self.executor is not None else None)
            while not self.tickets.empty():
                self.serve(self.tickets.get())

    def follow_up(self, outcome: Optional[str]) -> bool:
        """For memstow.comfy.run_ended(): does the work after a run that ComfyUI's worker does not notice, or that
        another executor ran. Inside a run it does nothing, and returns False."""
        with self.draining:
            if self.run is not None and not self.run["ended"]:
                return False
            if self.run is None:
                self.trigger("run_ended", f"another executor's run {outcome or 'ok'}")
                self.leftovers.look()
            self.drain()
        return True

    def complain(self) -> None:
        """Warns once that a run has ended and nobody asked for the work after it."""
        if not self.has_complained:
            self.has_complained = True
            log.warning(NOT_FOLLOWED_UP)

    def look_for_worker(self) -> None:
        run = self.run
        if run is not None and run["ended"] and not self.is_busy() and not self.has_lost_worker():
            if time.monotonic() - run["ended_at"] > FOLLOW_UP_SECONDS:
                self.complain()

    @quietly
    def after_run(self, run: dict) -> None:
        executor = self.executor() if self.executor is not None else None
        if executor is not None:
            quietly(self.after_prompt)(executor, run["prompt_id"])
            self.watch.adopt_orphans(lambda node_id: caches.output_of(executor.caches, node_id))
            self.settle_policies(run["prompt"], executor)
        for identity in self.registry.all():
            if identity.changed:
                self.watch.assign(identity)
        self.trigger("run_ended", f"run {run['number']} {run['outcome']}", run)
        self.leftovers.look()
        self.button.parts.age()
        self.registry.this_run = {}
        self.watch.prompt = {}

    def settle_policies(self, prompt: dict, executor: Any) -> None:
        """Sets the policies of the policy nodes in the prompt. Running the nodes is not enough: a node with a cached
        output does not run again, and a removed node gives no notice."""
        # id of a policy node in the prompt → the id of the model in the node's output; None: the output has no model
        present: dict[str, Optional[int]] = {}
        named: set[tuple[int, str]] = set()
        for node_id, node in prompt.items():
            if node.get("class_type") != NODE:
                continue
            present[str(node_id)] = None
            inputs = node.get("inputs", {})
            for values in caches.output_of(executor.caches, node_id):
                for value in values:
                    for patcher, model in patchers_in(value):
                        if isinstance(inputs.get("policy"), str) and isinstance(inputs.get("priority", 0), int):
                            setting = Setting(inputs["policy"], inputs.get("priority", 0), str(node_id))
                            self.registry.set(model, patcher, setting)
                        named.add((id(model), str(node_id)))
                        present[str(node_id)] = id(model)
        for identity in self.registry.all():
            sources = {s.source for p in list(identity.patchers) if (s := self.registry.settings.get(p))}
            sources |= {identity.setting.source} if identity.setting else set()
            for source in sources - {None}:
                if source in present:
                    moved_on = present[source] is not None and (identity.key, source) not in named
                else: # this prompt lacks the node; that counts as its removal only if the prompt used the model
                    moved_on = any(caches.reaches(caches.output_of(executor.caches, node_id), identity.ids())
                                   for node_id in prompt)
                if moved_on:
                    self.registry.clear(identity, source)

    # ---- a trigger: policies are applied

    @quietly
    def trigger(self, reason: str, text: str, run: Optional[dict] = None, needed: int = 0) -> int:
        """Applies the policies. Returns the number of bytes given back; None if an exception ended it."""
        begun = time.monotonic()
        executor = self.executor() if self.executor is not None else None
        notes: list = []
        if run is None:
            self.watch.meter.begin()
        run = run or {"number": self.number, "prompt_id": None, "outcome": None, "reason": reason, "rss": resident()}
        self._let_go()
        self.registry.note_flags()
        rulings = self._read(executor, notes)
        befores = {number: report.figures_of(identity.owner)
                   for number, (identity, _ruling, _policy) in rulings.items()}
        decisions = memstow.decide(reason, text, needed)
        try:
            actions = {decision.owner: decision.action for decision in decisions}
            gone, alive = self._drop([rulings[number][0] for number, action in actions.items()
                                      if action == "free" and number in rulings], executor)
            self._hold(rulings, actions, executor)
        finally:
            given = memstow.finish()
        owners: list[dict] = []
        freed: list[dict] = []
        loaded = {id(patcher.model) for patcher in unload.loaded()}
        self.whys = {}
        for number, (identity, ruling, policy) in rulings.items():
            figures = report.figures_of(identity.owner)
            action = actions.get(number, "keep")
            self.points.note(identity, figures)
            in_caches, holding = alive.get(number, ([], []))
            why = [] if number in gone else report.why_here(
                identity, action, in_caches, holding, identity.key in loaded)
            line = {**report.owner_line(identity, figures, befores[number], ruling, action, why),
                    **self.watch.meter.of_model(number)}
            self.watch.meter.names[number], self.watch.meter.origins[number] = identity.owner.name, identity.origin
            (freed if number in gone else owners).append(line)
            self.whys[number] = "; ".join(report.why_of(line, number in gone))
            identity.kept = number not in gone and action != "free"
        self._note_vbars([identity for identity, _ruling, _policy in rulings.values()])
        found = report.document(run, self.watch, owners, freed, given, time.monotonic() - begun, notes)
        if owners or freed: # the line goes to the log first, so that a reader of the report finds it there
            log.info("%s", report.line(found))
        if run["outcome"]: # before self.last is set, so that the badges go out before a client can get the report
            self.reports.append(found)
            quietly(self.on_report)(found)
        self.last = found
        return given

    def _note_vbars(self, identities: list[Identity]) -> None:
        """comfy-aimdo has memory for models. For each model, notes which part of this memory is resident."""
        for identity in identities:
            held = getattr(identity.model(), "dynamic_vbars", None)
            for vbar in list(held.values()) if isinstance(held, dict) else []:
                quietly(identity.owner.assign)(vbar)
        quietly(memstow.note_vbars)()

    def _let_go(self) -> None:
        """Lets go of models that are not to be kept any more. Then, if any model was let go or is to be freed, collects
        garbage. This must come before the decisions: a collection after them could remove a model that was reported as
        kept."""
        if self._is_any_free():
            gc.collect()

    def _is_any_free(self) -> bool:
        patchers, is_any_free = unload.loaded(), False
        for identity in self.registry.all():
            ruling = self.registry.ruling(identity, self.registry.found(identity, patchers))
            is_any_free |= ruling.policy == "free"
            if identity.held is not None and ruling.policy not in ("keep", "stow"):
                identity.let_go()
                is_any_free = True
        return is_any_free

    def _read(self, executor: Any, notes: list) -> dict[int, tuple]:
        """Looks up each model's policy, passes it on to memstow, and writes to the trace the rule that led to it."""
        patchers, found = unload.loaded(), {}
        unknown = caches.unknown_classes(executor.caches) if executor is not None else []
        for identity in self.registry.all():
            patcher = self.registry.found(identity, patchers)
            ruling = self.registry.ruling(identity, patcher)
            policy, instead = ruling.policy, {}
            if policy == "free" and (because := self._why_not_free(identity, unknown, patchers)):
                policy, instead = "stow", {"instead": "stow", "because": because}
                notes.append(f"{report.label(identity.owner.name, identity.origin)} is stowed, not freed: {because}")
            pushed = (policy, ruling.priority)
            if pushed != identity.pushed and (policy is not None or identity.pushed):
                identity.owner.set_policy(policy, ruling.priority)
                identity.pushed = pushed
            if policy == "stow":
                identity.set_idle(True) # between two runs it is not in use
            self.registry.trace("READ", owner=identity.owner.id, patcher=id(patcher) if patcher is not None else 0,
                                parents=parents_of(patcher), inner=identity.key, rule=ruling.rule,
                                policy=ruling.effective, **(ruling.flag.members() if ruling.flag else {}), **instead)
            found[identity.owner.id] = (identity, ruling, policy)
        return found

    def _why_not_free(self, identity: Identity, unknown: list, patchers: list) -> str:
        """The reason why a model that should be freed must be stowed instead; "" if it can be freed."""
        if unknown:
            return f"unknown cache class {unknown[0]}"
        # Freeing the model also drops the output of its loader, so the loader would have to load the other models in
        # that output again.
        if identity.checkpoint is None:
            for other in siblings(identity):
                if self.registry.ruling(other, self.registry.found(other, patchers)).policy != "free":
                    return f"its loader made {report.label(other.owner.name, other.origin)} with it, which stays"
        return ""

    def _drop(self, identities: list, executor: Any) -> tuple[set, dict]:
        """Drops the models to be freed. Returns the ids of the owners whose models are gone. For each owner whose
        model is still there, also returns the holders of this model: classes of nodes, and Python objects."""
        if not identities:
            return set(), {}
        keys = {identity.owner.id: identity for identity in identities}
        targets = set().union(*(identity.ids() for identity in identities))
        for identity in self.registry.all(): # an output that leads to another model may lead to this one, too
            identity.outputs = {key: entry for key,
                                entry in identity.outputs.items() if not caches.reaches(entry, targets)}
        self.button.parts.keep(identities)
        unload.drop(identities, executor)
        gc.collect() # models are often parts of cycles, and so are data such as a tokenizer's, which take megabytes
        gone = {number for number, identity in keys.items() if identity.model() is None}
        still = [identity for number, identity in keys.items() if number not in gone]
        cached = caches.holding(executor.caches, {i.owner.id: i.ids() for i in still}) if executor is not None else {}
        held = self.held.look(still)
        return gone, {number: (cached.get(number, []), held[number]) for number in keys if number not in gone}

    def _hold(self, rulings: dict, actions: dict, executor: Any) -> None:
        """Makes strong references to the models that are to be kept, and to the cached outputs that lead to them.
        ComfyUI itself refers to a patcher only from its node cache. So without these references, a model could die when
        this cache drops an output."""
        patchers = unload.loaded()
        for number, (identity, ruling, _policy) in rulings.items():
            if ruling.policy not in ("keep", "stow") or actions.get(number) == "free":
                identity.let_go()
                continue
            identity.held = self.registry.found(identity, patchers) or identity.model()
            of_now = caches.of_models(executor.caches, identity.ids(),
                                      of_this_prompt=True) if executor is not None else {}
            identity.outputs = of_now or identity.outputs # outputs of the last prompt that used the model

    # ---- requests from outside, and orders of the page

    def ask(self, ticket: Ticket) -> Ticket:
        """Queues a request for the worker thread, and wakes that thread."""
        ticket.number = next(self.numbers)
        self.asked[ticket.number] = ticket
        self.asked.pop(ticket.number - TICKETS, None)
        self.tickets.put(ticket)
        self.wake()
        return ticket

    def call(self, function: Callable[[Any], None]) -> None:
        """Lets the worker thread call the function between two runs. The function's argument is the executor, or None
        if there is no executor."""
        self.todo.put(function)
        self.wake()

    def wake(self) -> None:
        """If the worker thread waits for a prompt, wakes it, so that it serves the requests."""
        waiting = self.queue() if self.queue is not None else None
        if waiting is not None:
            waiting.set_flag("memstow", True)

    def withdraw(self, owner: int) -> tuple[bool, Optional[Ticket]]:
        """Withdraws the page's orders for a model, except orders that have begun. Returns whether any order was
        withdrawn, and an order that has begun but is not done, or None if there is no such order."""
        is_any, begun = False, None
        for ticket in list(self.asked.values()):
            if isinstance(ticket.asked, Order) and ticket.asked.owner == owner and not ticket.done.is_set():
                if ticket.begin():
                    ticket.answer(-errno.ECANCELED, "cancelled before it began")
                    is_any = True
                else:
                    begun = ticket
        return is_any, begun

    def serve(self, ticket: Ticket) -> None:
        if not ticket.begin():
            return
        try:
            ticket.answer(*self._done(ticket.asked))
        except OSError as error:
            ticket.answer(-(error.errno or 5), str(error))
        except Exception as error: # the caller must get an answer
            log.warning("%s: %s", ticket.asked.kind, error, exc_info=True)
            ticket.answer(-5, f"{type(error).__name__}: {error}")

    def _done(self, asked: memstow.Request) -> tuple[int, str]:
        if asked.kind in ("collect", "holders"): # requests of memstow leaks
            return memstow.look(asked)
        if asked.kind == "trigger":
            given = self.trigger(asked.reason, asked.text, needed=asked.needed)
            if given is None or self.last is None:
                return -5, "the trigger failed; see ComfyUI's log"
            return given, report.line(self.last)
        if isinstance(asked, Order) and asked.kind in self.orders:
            identity = self.registry.by_owner(asked.owner)
            return self.orders[asked.kind](identity, asked) if identity is not None else (-2, "the model is gone")
        call = {"stow": memstow.stow, "restore": memstow.restore, "release": memstow.release}[asked.kind]
        identities = self.registry.all() if not asked.owner else [self.registry.by_owner(asked.owner)]
        total = 0
        for identity in identities:
            number = identity.owner.id if identity is not None else asked.owner
            if asked.kind == "stow" and identity is not None:
                identity.set_idle(True)
            total += call(number)
            if identity is not None:
                self.points.note(identity, report.figures_of(number))
        return total, ""

    def _free(self, identity: Identity, _asked: Any) -> tuple[int, str]:
        """Frees one model, by a trigger. Returns the number of bytes given back (-5 if the trigger failed), and a text.
        If the model is still there, the text says why."""
        identity.free_now = True
        try:
            given = self.trigger("request", f"free {report.label(identity.owner.name, identity.origin)}")
        finally:
            identity.free_now = False
        if given is None or self.last is None:
            return -5, "the trigger failed; see ComfyUI's log"
        return given, report.line(self.last)

    def _why(self, identity: Identity, _asked: Any) -> tuple[int, str]:
        """Looks for everything that holds a model, whatever its policy. Returns 0, and what was found, as text."""
        patchers, executor = unload.loaded(), self.executor() if self.executor is not None else None
        policy = self.registry.ruling(identity, self.registry.found(identity, patchers)).policy
        is_loaded = any(patcher.model is identity.model() for patcher in patchers)
        cached = caches.holding(executor.caches, {0: identity.ids()})[0] if executor is not None else []
        holders, is_cut = holders_of(identity, memstow.referrers().Deadline())
        words = [*self.held.loops_of([identity])[identity.owner.id],
                 *dict.fromkeys(holder.words for holder in holders)]
        found = report.why_here(identity, policy or "free", cached, words, is_loaded)
        self.whys[identity.owner.id] = "; ".join(found) or f"nothing was found{' in a second' if is_cut else ''}"
        return 0, self.whys[identity.owner.id]

    def _settle(self, identity: Identity, asked: Any) -> tuple[int, str]:
        """Sets the policy that the user has chosen. A policy node in a later workflow overrides it. Returns 0, and a
        text."""
        priority = asked.priority
        if priority is None:
            priority = self.registry.ruling(identity, self.registry.found(identity, unload.loaded())).priority
        setting = None if asked.text == "none" else Setting(asked.text, priority, chosen=True)
        self.registry.settle(identity, setting)
        return 0, f"{report.label(identity.owner.name, identity.origin)}: {asked.text}"

    def listen(self) -> None:
        """Waits for requests from outside and queues them. Runs on a thread of its own."""
        while True:
            try:
                request = memstow.next_request(1.0)
            except OSError as error:
                log.debug("no requests from outside: %s", error)
                return
            if request is not None:
                self.ask(Ticket(request, functools.partial(tell, request)))
            self.look_for_worker()

    def full_cleanup(self, reason: str) -> None:
        """Serves memstow.full_cleanup(). When the current run has ended, ComfyUI does what it does when the user
        presses "Free model and node cache"."""
        self.cleanup = reason
        self.wake()

    # ---- hooks in ComfyUI

    def install(self) -> None:
        import execution
        wrap(execution.PromptExecutor, "execute_async", self._around_runs)
        wrap(execution.PromptQueue, "get_flags", self._between_runs)
        wrap(execution.PromptQueue, "get", self._before_waiting)
        wrap(execution.PromptQueue, "__init__", self._with_queue)

    def start(self) -> None:
        """Starts what the hooks do not cover: the existing queue, ComfyUI's own notices, and requests from outside."""
        server: Any = getattr(__import__("server").PromptServer, "instance", None)
        if getattr(server, "prompt_queue", None) is not None:
            self.queue = weakref.ref(server.prompt_queue)
        listen_to_prompts(self)
        memstow.on_full_cleanup(self.full_cleanup)
        memstow.on_look(lambda asked: self.ask(Ticket(asked, functools.partial(tell, asked))))
        threading.Thread(target=self.listen, name="memstow requests", daemon=True).start()

    def _around_runs(self, before: Callable) -> Callable:
        runs = self

        async def execute_async(self: Any, *arguments: Any, **options: Any) -> Any:
            prompt, prompt_id, extra = (arguments[i] if i < len(arguments) else options.get(name)
                                        for i, name in enumerate(("prompt", "prompt_id", "extra_data")))
            runs.begins(self, prompt, prompt_id, extra)
            outcome = None
            try:
                quietly(memstow.follow_tasks)()
                return await memstow.follow(before(self, *arguments, **options))
            except BaseException as error:
                outcome = memstow.outcome_of(error)
                raise
            finally:
                runs.ended(self, prompt_id, outcome)
        return execute_async

    def _between_runs(self, before: Callable) -> Callable:
        """Wraps get_flags, so that the work between two runs is done in it. The worker calls get_flags after every run,
        and when a flag was set."""
        runs = self

        def get_flags(self: Any, *arguments: Any, **options: Any) -> Any:
            is_reset = (arguments[0] if arguments else options.get("reset", True))
            if not is_reset or runs.worker not in (None, threading.get_ident()):
                return before(self, *arguments, **options)
            runs.queue = weakref.ref(self)
            runs.worker = threading.get_ident()
            quietly(runs.drain)()
            if runs.cleanup is not None:
                log.info("full cleanup: %s", runs.cleanup)
                runs.cleanup = None
                self.set_flag("unload_models", True)
                self.set_flag("free_memory", True)
            found = before(self, *arguments, **options)
            found.pop("memstow", None)
            runs.button.pressed = bool(found.get("unload_models") or found.get("free_memory"))
            if runs.button.pressed:
                runs.registry.phase = "the button Free"
            return found
        return get_flags

    def _before_waiting(self, before: Callable) -> Callable:
        """Wraps the wait for a prompt. If a flag is set while the worker is busy, the flag does not end the worker's
        next wait, and would stay unseen for minutes. So the wrapper looks at the flags, under the queue's lock, before
        the worker waits."""
        runs = self

        def get(self: Any, timeout: Any = None) -> Any:
            with getattr(self, "mutex", None) or contextlib.nullcontext():
                if timeout is not None and (
                        runs.cleanup is not None or not runs.tickets.empty() or not runs.todo.empty()
                        or getattr(self, "flags", None)):
                    return None
                runs.at_work = None
                try:
                    return before(self, timeout=timeout)
                # Sets at_work before the lock is released. So if other code empties the queue under this lock and then
                # reads at_work, it sees that a worker which has already taken a prompt is busy.
                finally:
                    runs.at_work = threading.current_thread()
        return get

    def _with_queue(self, before: Callable) -> Callable:
        runs = self

        def __init__(self: Any, *arguments: Any, **options: Any) -> None:
            before(self, *arguments, **options)
            runs.queue = weakref.ref(self)
        return __init__


def tell(request: memstow.Request, result: int, words: str) -> None:
    """Answers a request from outside."""
    try:
        memstow.answer(request, result, words.removeprefix("memstow: "))
    except OSError as error: # the request was cancelled in the meantime
        log.debug("nobody waits for %s any more: %s", request.kind, error)


def parents_of(patcher: Any) -> list[int]:
    return [id(ancestor) for ancestor in lineage(patcher)][1:51] # a line of the trace has space for 50


def outcome_of(executor: Any) -> str:
    """The outcome of a run. It is read from the executor's messages, because a failed node or an interrupt ends a run
    without an exception."""
    for event, data in reversed(getattr(executor, "status_messages", None) or []):
        if event == "execution_success":
            return "ok"
        if event == "execution_interrupted":
            return "cancelled"
        if event == "execution_error":
            words = f"{data.get('exception_type', '')} {data.get('exception_message', '')}"
            return "out-of-memory" if "OutOfMemory" in words or "MemoryError" in words else "failed"
    return "failed"


def listen_to_prompts(runs: Runs) -> None:
    """Uses ComfyUI's own notice of a prompt's end, too, if this ComfyUI gives one. The notice and the hook both call
    ended(); the first call counts."""
    try:
        from comfy_execution.cache_provider import CacheProvider, register_cache_provider
    except ImportError:
        return

    class Listener(CacheProvider):
        async def on_lookup(self, context: Any) -> None:
            return None

        async def on_store(self, context: Any, value: Any) -> None:
            return None

        def should_cache(self, context: Any, value: Any = None) -> bool:
            return False

        def on_prompt_end(self, prompt_id: str) -> None:
            executor = runs.executor() if runs.executor is not None else None
            if executor is not None:
                runs.ended(executor, prompt_id)

    register_cache_provider(Listener())
