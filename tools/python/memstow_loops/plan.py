"""The plan of a loop, checked before anything is queued. In: workflows, inputs and conditions. Out: a plan, and from it
the prompt of each workflow in each iteration. Never queues anything, and never reads a value from the store."""
from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from .conditions import Condition, Test, condition_of, conditions_of
from .convert import from_ui
from .graph import Classes, Graph, LoopError, checked, class_of, consumers, downstream, is_ui, name_of, types_meet
from .ports import INPUT, OURS, OUTPUT, PASSTHRU, PORT, VALUE, Port, Ports, find_ports
from .values import check_value

LOADER, SAVER = "MemstowLoopLoad", "MemstowLoopSave" # node classes that replace ports
MOST_ITERATIONS = 1_000_000
BY_REFERENCE = {"MODEL", "CLIP", "VAE", "CONTROL_NET", "CLIP_VISION", "STYLE_MODEL", "UPSCALE_MODEL", "GLIGEN"}


@dataclass
class Step:
    """One workflow of the loop."""
    name: str
    graph: Graph
    ports: Ports
    when: Optional[Test] = None

    @property
    def takes(self) -> dict[str, Port]:
        return self.ports.of(INPUT)

    def check(self, name: str, value: Any) -> None:
        """Raises LoopError if the workflow has an INPUT of this id that cannot take the value."""
        port = self.takes.get(name)
        if port is None:
            return
        try:
            check_value(port, value)
        except LoopError as error:
            raise LoopError(f"{self.name}: {name_of(port.node, self.graph[port.node])}: {error}") from None


@dataclass
class Prompt:
    """A prompt for one workflow in one iteration.
    - `fresh`: nodes whose outputs are dropped from the node caches after the run. Either these outputs depend on values
      of this iteration, so they are useless later. Or they are the unchanged value of an input, and a later node may
      have written into this value.
    - `constant`: other nodes, whose outputs depend on the inputs alone. These outputs are dropped when the loop
      ends."""
    graph: Graph
    fresh: set[str]
    constant: set[str]
    serial: str
    tell: Callable[[], None] = lambda: None # the host calls it again and again while it waits for the prompt


@dataclass
class Plan:
    steps: list[Step]
    inputs: dict[str, Any]
    iterations: int
    condition: Optional[Test] = None
    independent: bool = False
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.carried = {port for step in self.steps for port in step.ports.of(OUTPUT)} # ids with an OUTPUT
        self.taken = {port for step in self.steps for port in step.takes}

    def gives(self, step: Step) -> dict[str, Port]:
        """The ports of a workflow whose values the loop stores: outputs, and wires with an id that no output has."""
        wires = {name: port for name, port in step.ports.of(PASSTHRU).items() if name not in self.carried}
        return {**wires, **step.ports.of(OUTPUT)}

    def ids(self) -> list[str]:
        """The ids of all values that the loop stores."""
        return list(dict.fromkeys(port for step in self.steps for port in self.gives(step)))

    def place(self, port: str) -> str:
        """The key in the store for the value of an OUTPUT or a wire. It is the port's id, with one exception: if an
        INPUT has the id of a wire, and no OUTPUT has it, the wire's key is OURS and the id. Such an INPUT does not take
        the wire's value, so the two values need different keys."""
        return f"{OURS}{port}" if port in self.taken and port not in self.carried else port

    def prompt(self, step: Step, loop: str, serial: str, iteration: int, versions: Mapping[str, int]) -> Prompt:
        """The step's workflow, with a loader for each INPUT and a saver for each port whose value the loop stores. The
        node cache identifies a node by its inputs. So a loader has the version of its value as an input, and a saver
        has the iteration."""
        graph = copy.deepcopy(step.graph)
        fresh: set[str] = set()
        constant: set[str] = set()
        for port in step.takes.values():
            version = versions.get(port.id, 0)
            graph[port.node].update(class_type=LOADER, inputs={"loop": loop, "serial": serial, "port": port.id,
                                                               "generation": version})
            (fresh if version or self.independent else constant).add(port.node)
        for port in self.gives(step).values():
            graph[port.node].update(class_type=SAVER, inputs={
                "value": graph[port.node]["inputs"][VALUE], "loop": loop, "serial": serial, "port": port.id,
                "iteration": iteration})
            fresh.add(port.node)
        fresh = downstream(graph, fresh) | _passed_on(graph, constant)
        return Prompt(graph, fresh, downstream(graph, constant) - fresh, serial)


def _passed_on(graph: Graph, loaders: set[str]) -> set[str]:
    """These loaders, and the ports that pass their values on unchanged."""
    taking, found, queue = consumers(graph), set(loaders), list(loaders)
    while queue:
        for node_id, _name, _slot in taking[queue.pop()]:
            if node_id not in found and graph[node_id]["class_type"] == PORT:
                found.add(node_id)
                queue.append(node_id)
    return found


def _step(number: int, workflow: Any, names: Mapping[int, str], classes: Classes, when: Optional[Test]) -> Step:
    name = names.get(number) or f"workflow {number + 1}"
    try:
        graph = from_ui(workflow, classes) if is_ui(workflow) else checked(workflow)
        ports = find_ports(graph, classes)
        if not ports.shown() and not any(class_of(graph, node_id, classes).is_output for node_id in graph):
            raise LoopError("it has no output: neither an OUTPUT port nor an output node")
    except LoopError as error:
        raise LoopError(f"{name}: {error}") from None
    return Step(name, graph, ports, when)


def _check_iterations(iterations: Any) -> int:
    if isinstance(iterations, bool) or not isinstance(iterations, int) or not 1 <= iterations <= MOST_ITERATIONS:
        raise LoopError(f"iterations is a whole number from 1 to {MOST_ITERATIONS}: a loop without a bound is refused; "
                        f"not {iterations!r}")
    return iterations


def _check_source(plan: Plan, number: int, port: Port, known: Collection[str]) -> None:
    """Checks that an INPUT gets a value in the first iteration, and that all OUTPUT ports that feed it have its
    type."""
    step = plan.steps[number]
    where = f"{step.name}: {name_of(port.node, step.graph[port.node])}, port {port.id}"
    givers = plan.steps[:number] if plan.independent else plan.steps
    for giver in givers:
        given = giver.ports.of(OUTPUT).get(port.id)
        if given is not None and not types_meet(given.type, port.type):
            raise LoopError(f"{where} takes {port.type}, and {giver.name} gives {given.type} "
                            f"({name_of(given.node, giver.graph[given.node])})")
    if not any(port.id in giver.ports.of(OUTPUT) for giver in plan.steps[:number]) and port.id not in known:
        raise LoopError(
            f"{where} has no value: no earlier workflow gives it, no iteration has been committed, and inputs "
            f"has no {port.id!r}")


def _check_inputs(plan: Plan) -> None:
    for name, value in plan.inputs.items():
        if name not in plan.taken and name not in plan.ids():
            raise LoopError(f"inputs has {name!r}, and no workflow has a port of this id")
        for step in plan.steps:
            for element in value if plan.independent and isinstance(value, list) else [value]:
                step.check(name, element)


def _check_conditions(plan: Plan) -> None:
    known = {*plan.ids(), *plan.inputs}
    for test in (plan.condition, *(step.when for step in plan.steps)):
        if isinstance(test, Condition) and test.port not in known:
            raise LoopError(
                f"a condition looks at port {test.port}, but no workflow gives it and inputs does not have it")


def _check_references(plan: Plan, storage: str) -> None:
    for step in plan.steps if storage else []:
        for port in plan.gives(step).values():
            if port.type in BY_REFERENCE:
                raise LoopError(
                    f"{step.name}: {name_of(port.node, step.graph[port.node])}, port {port.id} gives {port.type}, "
                    f"which passes by reference in this process only: it cannot be kept with {storage}")


def _batch(inputs: Mapping[str, Any]) -> int:
    """The number of elements in the lists of a batch."""
    sizes = {name: len(value) for name, value in inputs.items() if isinstance(value, list)}
    if not sizes or 0 in sizes.values() or len(set(sizes.values())) > 1:
        raise LoopError("independent needs at least one list in inputs, and lists of one length; the lists here: "
                        + (", ".join(f"{name}: {size}" for name, size in sizes.items()) or "none"))
    return next(iter(sizes.values()))


def make_plan(workflows: Sequence[Any], inputs: Optional[Mapping[str, Any]], iterations: int, *, condition: Any = None,
              when: Any = None, independent: bool = False, classes: Classes, names: Optional[Mapping[int, str]] = None,
              known: Collection[str] = (), storage: str = "") -> Plan:
    """A plan that can be run. LoopError names what cannot be run. `known`: ids with a committed value. `storage`: the
    name of the option that keeps values outside this process; "" if no option does."""
    if not isinstance(workflows, (list, tuple)) or not workflows:
        raise LoopError("a loop needs a list of at least one workflow")
    if inputs is not None and not isinstance(inputs, Mapping):
        raise LoopError("inputs is an object: a value for each port id")
    found = dict(inputs or {})
    tests = conditions_of(when, len(workflows))
    steps = [_step(number, workflow, names or {}, classes, tests[number]) for number, workflow in enumerate(workflows)]
    bound = _check_iterations(iterations) # checked for a batch, too, although it has no effect there
    count = _batch(found) if independent else bound
    plan = Plan(steps, found, count, condition_of(condition), independent)
    for number, step in enumerate(steps):
        plan.warnings += [f"{step.name}: {warning}" for warning in step.ports.warnings]
        for port in step.takes.values():
            _check_source(plan, number, port, {*found, *(known if not independent else ())})
    _check_inputs(plan)
    _check_conditions(plan)
    _check_references(plan, storage)
    return plan
