#!/usr/bin/env python3
# needs: cc
"""All that `cmake --install` installs works where it is installed: the command, the library, the header, pkg-config,
the man pages and the completion of bash, zsh and fish."""
import pathlib

import support

prefix = support.HERE / "prefix"
support.run("cmake", "--install", support.BUILD, "--prefix", prefix)
for name in ("bin/memstow", "lib/libmemstow.so", "include/memstow.h", "lib/pkgconfig/memstow.pc"):
    assert (prefix / name).is_file(), f"{name} is not installed"
pages = {p.name for p in (prefix / "share/man/man1").glob("*.1")}
assert pages == {p.name for p in (support.ROOT / "docs").glob("*.1")} and pages, f"man pages installed: {pages}"
# --- completion of words, as the shells look for it
COMPLETION = {"bash-completion/completions/memstow": "memstow.bash", "zsh/site-functions/_memstow": "_memstow",
              "fish/vendor_completions.d/memstow.fish": "memstow.fish"}
for name, source in COMPLETION.items():
    assert (prefix / "share" / name).read_bytes() == (support.ROOT / "tools/completion" / source).read_bytes(), name

version = (support.ROOT / "CMakeLists.txt").read_text().partition("project(memstow VERSION ")[2].split()[0]
pack = (prefix / "share/memstow/comfyui/pyproject.toml").read_text()
for name in ("icon.svg", "locales/fr/nodeDefs.json", "web/memstow.js", "example_workflows/refine.json",
             "example_workflows/make_models.py"):
    assert (prefix / "share/memstow/comfyui" / name).is_file(), f"the node pack has no {name}"
assert f'\nversion = "{version}"\n' in pack, "the node pack has another version"

moved = prefix.rename(support.HERE / "elsewhere") # no file may contain the first place
support.run(moved / "bin/memstow", "run", "--quiet", "-o", "out.mst", "--", "true")
support.run(moved / "bin/memstow", "report", "out.mst")

flags = support.run("pkg-config", "--cflags", "--libs", "memstow",
                    env={"PKG_CONFIG_PATH": str(moved / "lib/pkgconfig"), "PATH": "/usr/bin:/bin"}).stdout.split()
pathlib.Path("includes.c").write_text("#include <memstow.h>\nint main(void) { return 0; }\n")
support.run("cc", "-std=c11", "-Wall", "-Werror", "includes.c", *flags, "-o", "includes")
