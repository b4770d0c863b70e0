#!/usr/bin/env python3
# needs: cc deb:dpkg-dev deb:file
# long
"""Debian's package of this build has a copyright file in Debian's form, a changelog, and compressed man pages. The
copyright file names what is linked into the package's files. `whatis` can read the names of the man pages. If lintian
is installed, it finds no fault in the package. tests/build/release_long installs the package."""
import gzip, pathlib, re, shutil

import support

for module in ("python/memstow_loops", "comfyui"): # as after a test that imported the modules of this tree
    (support.ROOT / "tools" / module / "__pycache__").mkdir(exist_ok=True)
support.run("cpack", "-G", "DEB", "--config", support.BUILD / "CPackConfig.cmake", "-B", support.HERE / "made",
            timeout=300)
package, = support.HERE.glob("made/*.deb")
listed = [line.split()[5].removeprefix(".") for line in support.run("dpkg-deb", "-c", package).stdout.splitlines()]
caches = [name for name in listed if "__pycache__" in name]
assert not caches, caches
support.run("dpkg-deb", "-x", package, "root")
root = support.HERE / "root/usr"
documents = root / "share/doc/memstow"

# --- each file that `copyright` lists is in the package, and `copyright` has the text of each licence that it names
paragraphs = [dict(re.findall(r"^(\S+): ?(.*(?:\n .*)*)", one, re.M))
              for one in (documents / "copyright").read_text().split("\n\n")]
assert paragraphs[0]["Format"].endswith("/copyright-format/1.0/"), paragraphs[0]
texts = {one["License"].partition("\n")[0] for one in paragraphs if "Files" not in one and "License" in one}
of_files = {one["Files"]: one for one in paragraphs if "Files" in one}
for files, one in of_files.items():
    assert set(one["License"].split(" and ")) <= texts and one["Copyright"], (files, texts)
    assert files == "*" or f"/{files}" in listed, (files, listed)
names = lambda file: support.run("nm", file).stdout
inside = {"usr/lib/libmemstow.so": ("Microsoft", names(support.LIBRARY), "mi_malloc"),
          "usr/bin/memstow": ("Free Software Foundation", names(support.MEMSTOW), "cplus_demangle")}
for files, (holder, symbols, symbol) in inside.items():
    assert (symbol in symbols) <= (holder in of_files[files]["Copyright"]), files
assert "cplus_demangle" in inside["usr/bin/memstow"][1]
named = re.findall(r"/usr/share/common-licenses/[\w.-]*\w", (documents / "copyright").read_text())
assert named and all(pathlib.Path(one).is_file() for one in named), named

# --- changelog, man pages
version = re.search(r"^project\(memstow VERSION ([\d.]+)", (support.ROOT / "CMakeLists.txt").read_text(), re.M)[1]
assert gzip.open(documents / "changelog.gz", "rt").read().startswith(f"memstow ({version}) unstable; ")
assert b"## [Unreleased]" in gzip.open(documents / "CHANGELOG.md.gz").read()
pages = {path.name for path in (root / "share/man/man1").iterdir()}
assert pages == {f"{path.name}.gz" for path in (support.ROOT / "docs").glob("*.1")}, pages
for page in sorted(root.glob("share/man/man1/*.gz")): # also through links
    text = gzip.open(page, "rt").read()
    own = re.search(r"^\.Sh NAME\n((?:\.Nm .*\n)+)", text, re.M)[1]
    assert page.name.removesuffix(".1.gz") in re.findall(r"[\w-]+", own), (page.name, own)

if shutil.which("lintian"):
    found = support.run("lintian", "--allow-root", "--fail-on", "error,warning", package, status=None, timeout=300)
    assert found.returncode == 0 and not re.search(r"^[EW]: ", found.stdout, re.M), found.stdout
else:
    print("lintian is not here: it did not look at the package")
