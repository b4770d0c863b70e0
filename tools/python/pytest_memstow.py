"""Measures the memory of each test, for pytest: the bytes that it left behind, and the most that it had at once.

    memstow run --python-objects -- python3 -m pytest -p pytest_memstow --memstow

With `--memstow`, the plugin measures. It is then an error (exit status 4) if memstow did not start the process, or if a
limit makes no sense: without this error, a check that measures nothing would pass. Without `--memstow`, nothing is
measured, and limits are ignored. The markers have the names and the meaning of pytest-memray's markers:

    @pytest.mark.limit_memory("24 MB")   fails when the test has more than 24 MB at once, above what was live before
    @pytest.mark.limit_leaks("1 MB", filter_fn=None, warmups=0)
                                         fails when one call stack leaves more than 1 MB behind. filter_fn(stack) says
                                         whether the stack counts. warmups: runs of the test before the one that counts

docs/gate.md is the guide. Only pytest and the standard library are needed; memstow.py lies beside this file."""
from __future__ import annotations

import collections
import gc
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any, NamedTuple, Optional

import pytest

PEAK, LEFT = "memstow_peak_bytes", "memstow_left_bytes"
SHOWN, FRAMES = 5, 8
START = "memstow run --python-objects -- python3 -m pytest -p pytest_memstow --memstow"


class StackFrame(NamedTuple):
    function: str
    filename: str
    lineno: int


class Stack(NamedTuple):
    """The argument of filter_fn: frames, innermost first."""
    frames: tuple[StackFrame, ...]
    python: tuple[bool, ...] = () # which frames are Python's

    def lines(self) -> list[str]:
        """The frames for a report: the innermost two, and then those of Python."""
        shown = [f for at, f in enumerate(self.frames) if at < 2 or self.python[at]]
        more = [f"      ... {len(self.frames) - len(shown)} other frames"] if len(shown) < len(self.frames) else []
        return [f"      {f.function}  {f.filename}:{f.lineno}" for f in shown[:FRAMES]] + more


def _load_memstow() -> Any:
    loaded = sys.modules.get("memstow")
    if hasattr(loaded, "ABI_MAJOR"):
        return loaded
    path = pathlib.Path(__file__).resolve().with_name("memstow.py")
    spec = importlib.util.spec_from_file_location("memstow", path)
    assert spec and spec.loader # not None, because the path ends in .py
    module = sys.modules["memstow"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


memstow = _load_memstow()


def parse_size(text: str) -> int:
    """Parses a size such as "24 MB". As in pytest-memray, the units are powers of 1024."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgtp]?)i?b\s*", text,
                         re.IGNORECASE) if isinstance(text, str) else None
    if not found:
        raise pytest.UsageError(f"memstow: {text!r} is not a size like '24 MB'")
    return int(float(found[1]) * 1024 ** " kmgtp".index(found[2].lower() or " "))


def show_size(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


# ---- the limits in the markers of a test

class Limits:
    """What the markers of a test ask for; None: no limit. Raises pytest.UsageError if a limit makes no sense."""

    def __init__(self, item: pytest.Item) -> None:
        self.memory: Optional[int] = None
        self.leaks: Optional[int] = None
        self.filter_fn, self.warmups = None, 0
        for name in ("limit_memory", "limit_leaks"):
            marker = item.get_closest_marker(name)
            if not marker:
                continue
            try:
                getattr(self, f"take_{name}")(*marker.args, **marker.kwargs)
            except TypeError as error: # arguments that the marker does not have
                raise pytest.UsageError(
                    f"memstow: {name}: {str(error).rpartition('take_' + name + '() ')[2]}") from None

    def take_limit_memory(self, memory_limit: str, current_thread_only: bool = False) -> None:
        self.refuse(current_thread_only)
        self.memory = parse_size(memory_limit)

    def take_limit_leaks(self, location_limit: str, filter_fn: Any = None, warmups: int = 0,
                         current_thread_only: bool = False) -> None:
        self.refuse(current_thread_only)
        if filter_fn is not None and not callable(filter_fn):
            raise pytest.UsageError(f"memstow: filter_fn={filter_fn!r} is not a function")
        if not isinstance(warmups, int) or warmups < 0:
            raise pytest.UsageError(f"memstow: warmups={warmups!r} is not how often a test can be run")
        self.leaks, self.filter_fn, self.warmups = parse_size(location_limit), filter_fn, warmups

    @staticmethod
    def refuse(current_thread_only: bool) -> None:
        if current_thread_only:
            raise pytest.UsageError("memstow: current_thread_only is pytest-memray's: memstow counts all threads")


# ---- measuring a test

class Measured(NamedTuple):
    peak: int
    left: int
    sites: tuple[tuple[int, Stack], ...] = () # (bytes, Stack) of each call stack over a limit, the largest first


def live_now() -> int:
    memstow.peak(anew=True)
    return int(memstow.peak())


def sites_of(run_name: str) -> list[tuple[int, Stack]]:
    """The memory that the run left behind, by call stack, from a snapshot of this process."""
    command = os.environ.get("MEMSTOW_COMMAND", "memstow")
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    with tempfile.TemporaryDirectory(prefix="memstow-") as folder:
        path = os.path.join(folder, "test.mst")
        memstow.snapshot(path)
        done = subprocess.run([command, "report", path, "--json", "--by=site"], stdout=subprocess.PIPE, check=True,
                              env=environment)
    found: dict[Stack, int] = collections.Counter()
    for site in json.loads(done.stdout)["sites"]:
        if site["run"] == run_name and site["live_bytes"] > 0:
            frames = tuple(StackFrame(f["function"] or "?", f["file"] or f["module"] or "?", f["line"] or 0)
                           for f in site["stack"])
            found[Stack(frames, tuple(f["kind"] == "python" for f in site["stack"]))] += site["live_bytes"]
    return sorted(((size, stack) for stack, size in found.items()), key=lambda one: -one[0])


class Plugin:
    """The plugin. It is registered if --memstow was given and memstow keeps a ledger."""

    def __init__(self) -> None:
        self.number = 0
        self.verdicts: dict[str, str] = {}
        self.figures: list[tuple[str, int, int]] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Raises pytest.UsageError if a selected test has a limit that makes no sense, so that no test runs."""
        wrong = []
        for item in items:
            try:
                Limits(item)
            except pytest.UsageError as error:
                wrong.append(f"{item.nodeid}: {error}")
        if wrong:
            raise pytest.UsageError(*wrong)

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        try:
            limits = Limits(item)
        # A fixture has added a marker with a wrong limit. A traceback would show this file, not the fixture, so none is
        # printed.
        except pytest.UsageError as error:
            pytest.fail(str(error), pytrace=False)
        if limits.leaks is not None:
            for _ in range(limits.warmups):
                item.runtest()
        gc.collect()
        run = self.begin_run(item) if limits.leaks is not None else None
        before = live_now()
        outcome = yield
        peak = memstow.peak() - before
        failed = outcome.excinfo is not None # the traceback of a failed test holds memory, so leaks are not judged
        if run:
            run.end("failed" if failed else "ok")
        gc.collect()
        measured = Measured(max(peak, 0), live_now() - before)
        if run and not failed:
            measured = self.look_at_leaks(run, limits, measured)
        item.user_properties += [(PEAK, measured.peak), (LEFT, measured.left)]
        if not failed and (text := self.judge(limits, measured)):
            self.verdicts[item.nodeid] = text

    def begin_run(self, item: pytest.Item) -> Any:
        """Begins a run of memstow's, which has the allocations of all threads. Its name is unique."""
        self.number += 1
        return memstow.run(f"{item.nodeid} #{self.number}").begin()

    @staticmethod
    def look_at_leaks(run: Any, limits: Limits, measured: Measured) -> Measured:
        """Adds to `measured` the call stacks that left more than the limit. If all call stacks together left no more
        than the limit, there are no such call stacks, and no search is needed."""
        left, limit = memstow.figures(run.id).live_bytes, limits.leaks or 0
        sites = sites_of(run.name) if left > limit else []
        over = [(size, stack) for size, stack in sites
                if size > limit and (limits.filter_fn is None or limits.filter_fn(stack))]
        return measured._replace(left=left, sites=tuple(over))

    @staticmethod
    def judge(limits: Limits, measured: Measured) -> str:
        text = ""
        if limits.memory is not None and measured.peak > limits.memory:
            text += (f"Test is limited to {show_size(limits.memory)} and had {show_size(measured.peak)} at once, "
                     "beyond what was live before it\n")
        if measured.sites:
            text += (f"Test is allowed to leave {show_size(limits.leaks or 0)} behind at each call stack, "
                     "and left more at:\n")
        for size, stack in measured.sites[:SHOWN]:
            text += "\n".join([f"  {show_size(size)}", *stack.lines(), ""])
        if len(measured.sites) > SHOWN:
            text += f"  and {len(measured.sites) - SHOWN} more\n"
        return text

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> Any:
        outcome = yield
        report = outcome.get_result()
        text = self.verdicts.pop(item.nodeid, "") if call.when == "call" else ""
        if text and report.passed:
            report.outcome, report.longrepr = "failed", text

    def pytest_runtest_logreport(self, report: Any) -> None:
        figures = dict(report.user_properties)
        if report.when == "call" and PEAK in figures:
            self.figures.append((report.nodeid, figures[PEAK], figures[LEFT]))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.figures:
            return
        terminalreporter.write_sep("=", f"memstow: what tests had at most, and left behind ({len(self.figures)})")
        for nodeid, peak, left in sorted(self.figures, key=lambda f: -f[1])[:SHOWN]:
            terminalreporter.write_line(f"{show_size(peak):>12} {show_size(left):>12}  {nodeid}")


# ---- functions that pytest calls

def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("memstow").addoption("--memstow", action="store_true",
                                         help="measure the memory of each test; start: " + START)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers",
                            "limit_memory(memory_limit): with --memstow, the most that the test may have at once")
    config.addinivalue_line(
        "markers", "limit_leaks(location_limit, filter_fn=None, warmups=0): with --memstow, the most that one "
        "call stack of the test may leave behind")
    if not config.getoption("--memstow") or config.getoption("help", False):
        return
    if not memstow.active():
        raise pytest.UsageError(
            f"--memstow: memstow did not start this process, so nothing can be measured; start: {START}")
    config.pluginmanager.register(Plugin(), "memstow-plugin")


def pytest_report_header(config: pytest.Config) -> Optional[str]:
    if not config.getoption("--memstow"):
        return None
    objects = "" if os.environ.get(
        "PYTHONMALLOC") == "malloc" else "; small Python objects are seen with memstow run --python-objects"
    return f"memstow: measures each test{objects}"
