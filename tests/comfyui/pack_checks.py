#!/usr/bin/env python3
# needs: comfy-cli deb:git
"""comfy-cli prepares the node pack for ComfyUI's registry. The checks of comfy-cli pass without a warning, its reader
finds what the pack declares, and its archive has each file of the pack with the file's content. No file of the pack is
a link, because a link would lead nowhere in the archive. The test does not use the network, so it does not show what
the registry says to an upload."""
import json, os, shutil, zipfile

import support

CLI = support.ROOT / "build/comfy-cli/bin"
if not (CLI / "comfy").is_file():
    support.skip("comfy-cli is not there: tests/check installs it where it can")
READS = """import dataclasses, json
from comfy_cli.registry.config_parser import extract_node_configuration
print(json.dumps(dataclasses.asdict(extract_node_configuration("pyproject.toml"))))"""

folder = support.HERE / "pack"
shutil.copytree(support.ROOT / "tools/comfyui", folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
links = [path for path in folder.rglob("*") if path.is_symlink()]
assert not links, links
files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
environment = {"PATH": f"{CLI}:{os.environ['PATH']}", "HOME": str(support.HERE), "DO_NOT_TRACK": "1",
               "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"} # no network
support.run("git", "init", "-q", cwd=folder)
support.run("git", "add", "-A", cwd=folder)


def comfy(*words, status=0):
    done = support.run(CLI / "comfy", "--skip-prompt", "--no-enable-telemetry", *words, cwd=folder, env=environment,
                       status=status)
    return done.stdout + done.stderr


said = comfy("node", "validate")
assert "All validation checks passed" in said and "arning" not in said, said
found = support.run(CLI / "python", "-c", READS, cwd=folder, env=environment).stdout
assert len(found.splitlines()) == 1, found # a warning would be another line
read = json.loads(found)
project, tool = read["project"], read["tool_comfy"]
assert project["name"] == "memstow" and project["license"]["text"] == "Apache-2.0", project
assert project["supported_os"] == ["POSIX :: Linux"], project
assert project["supported_accelerators"] == ["GPU :: NVIDIA CUDA"], project
assert project["supported_comfyui_version"] == ">=0.3.64", project
assert project["dependencies"] == (folder / "requirements.txt").read_text().split(), project
assert tool["publisher_id"] == tool["display_name"] == "memstow", tool
assert not tool["icon"], tool # it must be an address in the web; the checks above accept that there is none

comfy("node", "pack")
with zipfile.ZipFile(folder / "node.zip") as archive:
    packed = {name: archive.read(name) for name in archive.namelist()}
assert packed == files, (sorted(packed), packed.keys() ^ files.keys())
for name in ("__init__.py", "prestartup_script.py", "requirements.txt", "icon.svg", "web/memstow.js",
             "web/docs/MemstowPolicy.md", "web/docs/MemstowPolicy/fr.md", "locales/fr/nodeDefs.json",
             "example_workflows/refine.json", "example_workflows/make_models.py"):
    assert name in packed, (name, sorted(packed))

(folder / "pyproject.toml").write_text((folder / "pyproject.toml").read_text().replace('version = "0.1.0"', ""))
assert "version is empty" in comfy("node", "validate", status=1)
