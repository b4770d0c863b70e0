#!/usr/bin/env python3
# needs: comfyui deb:prometheus
# timeout: 400
"""GET /memstow/metrics answers with the output of `memstow metrics` about ComfyUI, in the form that the client reads.
promtool accepts the answer, and Prometheus itself scrapes it with the rules of examples/fleet. Many requests at once
run one command. Pages of other origins are refused. If the command fails, the answer says why, and ComfyUI goes on."""
import concurrent.futures, pathlib, subprocess, urllib.parse, urllib.request

import support
from _comfy import Comfy, mixed

OPEN = "application/openmetrics-text"
real = pathlib.Path(support.MEMSTOW)
command, calls = support.HERE / "memstow", support.HERE / "calls" # counts its calls, and waits or fails if told
command.write_text(f'#!/bin/sh\necho "$LD_PRELOAD" >>{calls}\n[ -e {support.HERE}/slow ] && sleep 2\n'
                   f'[ -e {support.HERE}/broken ] && {{ echo "memstow: on purpose" >&2; exit 3; }}\nexec {real} "$@"\n')
command.chmod(0o755)


def figures(text):
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(number) for name, _, number in lines}


def value(found, name, *labels):
    """The sum of the samples with these labels."""
    return sum(number for key, number in found.items()
               if key.partition("{")[0] == name and all(label in key for label in labels))


# `memstow run` puts its own path into MEMSTOW_COMMAND. So a pack of the test replaces it with the path of the command
# above.
instead = f"""import os
assert os.environ["MEMSTOW_COMMAND"] == {str(real)!r}
os.environ["MEMSTOW_COMMAND"] = {str(command)!r}
NODE_CLASS_MAPPINGS = {{}}
"""
with Comfy(under="memstow", env={"MEMSTOW_POLICY": "keep"}, before=[instead]) as comfy:

    def get(accept):
        request = urllib.request.Request(f"http://127.0.0.1:{comfy.port}/memstow/metrics", headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.headers["Content-Type"], answer.read().decode()

    comfy.run(mixed(1, None, None))
    kind, text = get(f"{OPEN};version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1") # as Prometheus asks
    assert kind == f"{OPEN}; version=1.0.0; charset=utf-8" and text.endswith("# EOF\n"), (kind, text[-99:])
    for accept in ("*/*", "text/plain", "x" * 4000):
        kind, text = get(accept)
        assert kind == "text/plain; version=0.0.4; charset=utf-8" and "# EOF" not in text, kind
        lint = support.run("promtool", "check", "metrics", input=text, status=None)
        assert lint.returncode == 0 and not lint.stdout and not lint.stderr, lint
    found = figures(text)
    direct = figures(support.memstow("metrics", comfy.pid()).stdout)
    for of in ("memstow_model_live_bytes", "memstow_runs", "memstow_triggers_total"):
        assert value(found, of) == value(direct, of) > 0, (of, found)
    assert value(found, "memstow_runs", 'outcome="ok"') == 1 == value(found, "memstow_triggers_total"), found
    assert value(found, "memstow_trigger_duration_seconds", 'reason="run_ended"') > 0, found
    owners = comfy.owners()
    for owner in owners.values():
        live = value(found, "memstow_model_live_bytes", f'model="{owner["name"]}"', f'origin="{owner["origin"]}"')
        assert live == owner["live_bytes"], (owner, found)
    assert len(owners) == 3, owners
    assert comfy.status_of("/memstow/metrics", None, {"Origin": "http://evil.example"}, "GET") == 403

    # Prometheus itself, at a short interval
    config = (support.ROOT / "examples/fleet/prometheus.yml").read_text()
    for instead, of in (("scrape_interval: 10s", "scrape_interval: 1m"), ("timeout: 10s", "timeout: 30s"),
                        ("evaluation_interval: 5s", "evaluation_interval: 1m"),
                        (f"127.0.0.1:{comfy.port}", "127.0.0.1:8188"),
                        (f"- {support.ROOT}/examples/fleet/memstow.rules.yml", "- memstow.rules.yml")):
        assert config.count(of) == 1, of
        config = config.replace(of, instead)
    pathlib.Path("prometheus.yml").write_text(config)
    port = support.free_port()
    with open("prometheus.log", "w") as log:
        prometheus = support.start("prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
                                   f"--web.listen-address=127.0.0.1:{port}", stdout=log, stderr=subprocess.STDOUT)

    def asked(query):
        """The values of a query, by model and origin. (Prometheus leaves out empty labels.)"""
        answer = support.http(port, f"/api/v1/query?query={urllib.parse.quote(query)}")
        result = answer["data"]["result"] if answer else []
        return {tuple(map(one["metric"].get, ("model", "origin"))): float(one["value"][1]) for one in result}

    try:
        support.wait_for(lambda: asked("memstow_model_live_bytes"), 120, "Prometheus's scrape")
        expected = {(one["name"], one["origin"] or None): one["live_bytes"] for one in owners.values()}
        assert asked("memstow_model_live_bytes") == expected, (asked("memstow_model_live_bytes"), expected)
        assert asked('up{job="memstow"}') == {(None, None): 1}
        support.wait_for(lambda: asked("memstow:resident_bytes"), 120, "the rules")
        assert list(asked("memstow:resident_bytes").values())[0] > 100e6
    except BaseException:
        print(pathlib.Path("prometheus.log").read_text()[-3000:])
        raise
    finally:
        prometheus.terminate()
        prometheus.wait(60)

    # Eight requests at once: a request that comes while another is answered gets the same answer.
    pathlib.Path("slow").touch()
    before = len(calls.read_text().splitlines())
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: get("*/*"), range(8)))
    assert len(calls.read_text().splitlines()) - before < 8 and all("memstow_runs" in body for _, body in answers)
    assert not calls.read_text().strip(), "the command was tracked, too"
    pathlib.Path("slow").unlink()

    pathlib.Path("broken").touch()
    assert comfy.status_of("/memstow/metrics", method="GET") == 503
    assert "no metrics: memstow: on purpose" in comfy.log()
    comfy.run(mixed(2, None, None)) # ComfyUI goes on
