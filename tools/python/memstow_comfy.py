"""Runs a workflow in a ComfyUI under memstow, and takes a snapshot after each run: the part of `memstow check --comfy`
that speaks to ComfyUI. `memstow check` starts this program, and reads the snapshots. The program needs only the
standard library. It runs beside ComfyUI, not in it.

The program starts ComfyUI's command under `memstow run`, and waits until ComfyUI's server answers. Then, for each run,
it queues the workflow through POST /prompt, and waits for the end in GET /history. If memstow's node pack is there, it
also waits until policies have been applied. After each run except those of the warm-up, it has `memstow snapshot` take
a snapshot. Each run has other seeds, because ComfyUI does not compute again what is in its cache.

Exit status: 0 success; 2 wrong usage or workflow; 4 ComfyUI did not start, or ended too early, or the workflow failed;
128 + N ended by signal N."""
import argparse
import http.client
import json
import os
import pathlib
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

Nodes = dict[str, Any] # a workflow: its nodes by id
SEEDS = ("seed", "noise_seed")
START_SECONDS, RUN_SECONDS, END_SECONDS = 300, 3600, 20
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# asks without a proxy, because the variable http_proxy must not apply to servers on this machine
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Failure(Exception):
    """An exit status and its message."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--memstow", required=True, help="the memstow command")
    parser.add_argument("--folder", required=True, type=pathlib.Path, help="where the snapshots go: run-0001.mst, ...")
    parser.add_argument("--workflow", required=True, type=pathlib.Path, help="as ComfyUI's 'Export (API)' saves it")
    parser.add_argument("--runs", required=True, type=int)
    parser.add_argument("--warm-up", required=True, type=int)
    parser.add_argument("--stacks", default="full")
    parser.add_argument("--follow", default="all")
    parser.add_argument("command", nargs="+", help="what starts ComfyUI")
    return parser.parse_args()


def is_node(value: Any) -> bool:
    return isinstance(value, dict) and "class_type" in value and isinstance(value.get("inputs") or {}, dict)


def read_regular(path: pathlib.Path) -> bytes:
    """The content of a file. A device or a FIFO is refused, because reading it may never end."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise Failure(2, f"{path}: not a regular file")
        return file.read()


def read_workflow(path: pathlib.Path) -> Nodes:
    """The nodes by their ids. ComfyUI's user interface saves another format by default, which is refused."""
    try:
        document = json.loads(read_regular(path))
    except OSError as error:
        raise Failure(2, f"{path}: {error.strerror}") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise Failure(2, f"{path}: {error}") from None
    except ValueError:
        raise Failure(2, f"{path}: a number with too many digits") from None
    except RecursionError:
        raise Failure(2, f"{path}: nested too deep") from None
    nodes = document.get("prompt", document) if isinstance(document, dict) else None
    if not isinstance(nodes, dict) or not nodes or not all(map(is_node, nodes.values())):
        raise Failure(2, f"{path}: not a workflow in ComfyUI's API format (Workflow > Export (API))")
    return nodes


def with_seed(nodes: Nodes, number: int) -> tuple[Nodes, int]:
    """A copy of the workflow in which each seed is `number`, and the number of seeds."""
    copy, changed = json.loads(json.dumps(nodes)), 0
    for node in copy.values():
        for name, value in (node.get("inputs") or {}).items():
            if name in SEEDS and isinstance(value, int): # a number; a link to another node is a list
                node["inputs"][name] = number
                changed += 1
    return copy, changed


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def port_of(command: list[str]) -> tuple[int, list[str]]:
    """The port that the command names, and the command. If the command names no port, a free port is added to it."""
    for at, word in enumerate(command):
        value = word[7:] if word.startswith("--port=") else command[
            at + 1] if word == "--port" and at + 1 < len(command) else ""
        if value.isdigit():
            return int(value), command
    port = free_port()
    return port, [*command, "--port", str(port)]


class Server:
    """A ComfyUI under memstow."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.port, command = port_of(options.command)
        ledger = options.folder / "comfyui.mst"
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS) # a signal during the start must not leave the process behind
        self.process = subprocess.Popen([options.memstow, "run", "--quiet", f"--stacks={options.stacks}",
                                         f"--follow={options.follow}", "-o", str(ledger), "--", *command],
                                        stdin=subprocess.DEVNULL, start_new_session=True,
                                        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS))

    def ask(self, path: str, document: Any = None) -> Any:
        """The JSON answer to a GET, or to a POST of a document. None if nothing answers, or the path does not exist."""
        data = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data,
                                         {"Content-Type": "application/json"})
        try:
            with DIRECT.open(request, timeout=30) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            if path == "/prompt":
                raise Failure(4, f"ComfyUI refused the workflow: {error.read(2000).decode(errors='replace')}") from None
            return None
        except (OSError, ValueError, http.client.HTTPException): # HTTPException: ComfyUI ended within its answer
            return None

    def wait_for(self, condition: Callable[[], Any], seconds: float, what: str) -> Any:
        end = time.monotonic() + seconds
        while not (value := condition()):
            if told_to_end:
                raise told_to_end[0]
            if self.process.poll() is not None:
                raise Failure(4, f"ComfyUI ended with {self.process.returncode} before {what}")
            if time.monotonic() > end:
                raise Failure(4, f"{what} did not come within {seconds} s")
            time.sleep(0.05)
        return value

    def start(self) -> None:
        self.wait_for(lambda: self.ask("/system_stats"), START_SECONDS, "its server answered")
        self.pid = self.find_pid()
        self.has_pack = self.ask("/memstow/owners") is not None

    def find_pid(self) -> int:
        """The pid of the process that listens at the port. The process that this check started may be a script that in
        turn started ComfyUI."""
        tables = [pathlib.Path(f"/proc/net/{name}") for name in ("tcp", "tcp6")] # a kernel may be without IPv6
        sockets = {f"socket:[{line.split()[9]}]" for table in tables if table.exists()
                   for line in table.read_text().split("\n")[1:-1]
                   if line.split()[3] == "0A" and int(line.split()[1].rsplit(":", 1)[1], 16) == self.port}
        for pid in self.descendants(self.process.pid):
            for file in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
                try:
                    if os.readlink(file) in sockets:
                        return pid
                except OSError:
                    continue
        raise Failure(4, f"the process that answers at port {self.port} was not started by this check")

    def descendants(self, pid: int) -> Iterator[int]:
        yield pid
        try:
            children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            children = []
        for child in children:
            yield from self.descendants(int(child))

    def run(self, nodes: Nodes) -> None:
        """Runs the workflow, and waits until the work after the run is done."""
        answer = self.ask("/prompt", {"prompt": nodes, "client_id": "memstow"})
        if not answer or "prompt_id" not in answer:
            raise Failure(4, f"ComfyUI did not take the workflow: {answer}")
        prompt = answer["prompt_id"]
        done = self.wait_for(lambda: (self.ask(f"/history/{prompt}") or {}).get(prompt), RUN_SECONDS,
                             "the end of the workflow")
        if done["status"]["status_str"] != "success":
            raise Failure(4, f"the workflow failed: {json.dumps(done['status'].get('messages', []))[-2000:]}")
        if self.has_pack:
            self.wait_for(lambda: (self.ask("/memstow/report") or {}).get("prompt") == prompt, 60, "the end of the run")

    def snapshot(self, path: pathlib.Path) -> None:
        done = subprocess.run([self.options.memstow, "snapshot", str(self.pid), "-o", str(path)],
                              stdout=subprocess.DEVNULL)
        if done.returncode:
            raise Failure(4, f"no snapshot could be taken: memstow snapshot exited with {done.returncode}")

    def stop(self) -> None:
        """Asks the server to end, then kills it and all that it started. Signals are ignored from here on, so that none
        of them leaves the server alive."""
        ignore_signals()
        for sent in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, sent)
                self.process.wait(END_SECONDS)
                if sent == signal.SIGTERM:
                    continue # SIGKILL follows, for processes that stayed in the group
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
        self.process.wait()


def check(options: argparse.Namespace) -> None:
    nodes = read_workflow(options.workflow)
    if not with_seed(nodes, 0)[1]:
        print(f"memstow: {options.workflow} has no input {' or '.join(SEEDS)}: ComfyUI may answer from its cache",
              file=sys.stderr)
    server = Server(options)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        server.start()
        if not server.has_pack:
            print("memstow: the node pack is not in this ComfyUI: models have no names (docs/comfyui.md)",
                  file=sys.stderr)
        for number in range(options.warm_up + options.runs):
            server.run(with_seed(nodes, 1 + number)[0])
            if number >= options.warm_up:
                server.snapshot(options.folder / f"run-{1 + number - options.warm_up:04}.mst")
    finally:
        server.stop()


# The Failure of a signal is kept here, because Python drops the exception if the signal arrives while a finalizer runs.
told_to_end: list[Failure] = []


def ignore_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def interrupted(number: int, _frame: Any) -> None:
    """Handles the first signal only: a second signal must not stop the end of the server."""
    ignore_signals()
    told_to_end.append(Failure(128 + number, f"ended by signal {number}"))
    raise told_to_end[0]


def main() -> int:
    for number in SIGNALS:
        signal.signal(number, interrupted)
    try:
        check(arguments())
    except Failure as failure:
        print(f"memstow: {failure}", file=sys.stderr)
        return failure.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
