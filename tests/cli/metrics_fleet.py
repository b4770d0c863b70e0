# needs: deb:prometheus
"""The files of examples/fleet. Prometheus's own tool accepts the configuration and the rules. Each alert is tested: it
fires for its fault, and not for a harmless case that looks similar. Each figure of memstow that the rules or the
dashboard name is one that `memstow metrics` writes."""
import json, re, shutil

import support
from support import ROOT, run

FLEET = ROOT / "examples/fleet"
shutil.copytree(FLEET, "fleet")
page = (ROOT / "docs/memstow-metrics.1").read_text()
written = set(re.findall(r"\bmemstow_[a-z_]+", page))
assert {"memstow_live_bytes", "memstow_leaks", "memstow_triggers_total"} <= written, written


def unknown(text):
    """The figures of memstow that the text names and that `memstow metrics` does not write."""
    return set(re.findall(r"\bmemstow_[a-z_]+", text)) - written


def rules_hold():
    return run("promtool", "test", "rules", "fleet/memstow.rules.test.yml", status=None).returncode == 0


run("promtool", "check", "config", "fleet/prometheus.yml")
assert rules_hold(), run("promtool", "test", "rules", "fleet/memstow.rules.test.yml", status=None)
rules = (FLEET / "memstow.rules.yml").read_text()
assert not unknown(re.sub(r"memstow\.rules\S*", "", rules)), unknown(rules)
alerts = re.findall(r"- alert: (\w+).*\n +expr: (?:[|]\n((?: {10}.+\n)+)|(.+)\n)", rules)
assert len(alerts) == rules.count("- alert: ") > 5, alerts
for name, several, one in alerts: # an alert that never fires is found, and so is one that always does
    for instead in ("vector(0) > 1", "vector(1)"):
        broken = rules.replace(f"|\n{several}" if several else f"expr: {one}\n",
                               f"{instead}\n" if several else f"expr: {instead}\n", 1)
        assert broken != rules
        (support.HERE / "fleet/memstow.rules.yml").write_text(broken)
        assert not rules_hold(), f"the test of {name} does not see {instead}"

dashboard = json.loads((FLEET / "dashboard.json").read_text())
panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
queries = [target["expr"] for panel in panels for target in panel["targets"]]
assert len(panels) > 5 and not unknown("\n".join(queries)), unknown("\n".join(queries))
assert all(panel["title"] and panel["fieldConfig"]["defaults"]["unit"] for panel in panels), panels
records = [f"  - {{record: 'panel:{number}', expr: {json.dumps(query.replace('$instance', '.*'))}}}\n"
           for number, query in enumerate(queries)]
(support.HERE / "queries.yml").write_text("groups:\n- name: dashboard\n  rules:\n" + "".join(records))
run("promtool", "check", "rules", "queries.yml")
