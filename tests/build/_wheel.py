"""What an installed wheel must do beside other packages: the plugin of pytest, and a ComfyUI with the node pack."""
import json, os, pathlib, re, sys

import support

sys.path.insert(0, str(support.ROOT / "tests/comfyui"))
from _comfy import Comfy, mixed # noqa: E402

TESTS = """import pytest
kept = []
@pytest.mark.limit_leaks('1 MB')
def test_leak(): kept.append(bytearray(9 << 20))
def test_fine(): pass
"""


def check_plugin(run, folder):
    """Runs pytest in this folder. run(command…, status=…) runs a command where the wheel is installed."""
    (folder / "test_it.py").write_text(TESTS)
    for plugin in ([], ["-p", "pytest_memstow"]):
        said = run("memstow", "run", "--quiet", "-o", "out.mst", "--", "python", "-m", "pytest", *plugin, "--memstow",
                   "test_it.py", status=1).stdout
        assert "1 failed, 1 passed" in said and "left" in said, said


def check_comfyui(prefix, command, name="comfyui"):
    """Starts ComfyUI under this command, and runs a workflow. `prefix` is where the wheel is installed, as the started
    ComfyUI sees it; `name` is for ComfyUI's folder, log and ledger."""
    for variable in [variable for variable in os.environ if variable.startswith("MEMSTOW")]:
        del os.environ[variable] # the build of this tree must not be found
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    support.MEMSTOW, support.PYTHON = str(command), f"{prefix}/bin/python"
    with Comfy(under="memstow", pack=False, packs={"memstow": f"{prefix}/share/memstow/comfyui"}, name=name) as comfy:
        assert "memstow: models are registered" in comfy.log(), comfy.log()[-3000:]
        comfy.run(mixed(1, unet_policy="keep"))
        owners = comfy.owners()
        assert {"MODEL", "CLIP", "VAE"} <= set(owners) and owners["MODEL"]["live_bytes"] >= comfy.weights, owners
        mapped = pathlib.Path(f"/proc/{comfy.pid()}/maps").read_text()
        assert f"{prefix}/lib/libmemstow.so\n" in mapped and str(support.BUILD) not in mapped
        assert f"{prefix}/share/memstow/comfyui/" not in comfy.log(), comfy.log()[-6000:] # a traceback
    ledger = support.HERE / f"{name}.mst"
    owners = json.loads(support.run(command, "report", "--json", ledger).stdout)["owners"]
    live = {owner["name"].split()[0]: owner["live_bytes"] for owner in owners if owner["kind"] == "model"}
    named = support.run(command, "report", "--by=model", ledger).stdout
    for kind in ("MODEL", "CLIP", "VAE"):
        assert re.search(rf"^  {kind} \w+ \(tiny\.safetensors\) ", named, re.M) and kind in live, (kind, live, named)
    assert live["MODEL"] >= comfy.weights, live
