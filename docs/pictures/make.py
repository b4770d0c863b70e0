#!/usr/bin/env python3
"""docs/pictures/make.py: makes the pictures of README.md and docs/html.md. They show the page of examples/gallery.py.

Needs the packages chromium and chromium-driver, and selenium in build/venv, which tests/check html installs; and the
command in build/dev."""
import os, pathlib, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import in_venv # noqa: E402, F401
import support # noqa: E402
from _page import Browser, report # noqa: E402

PICTURES = {"curve.png": ("", "section.card.wide"), "flame.png": ("#flame", ".flame-view, .flame-parts")}
SIZE_MOST = 100_000 # bytes

os.chdir(tempfile.mkdtemp(prefix="memstow-pictures-"))
support.memstow("run", "--quiet", "-o", "gallery.mst", "--", sys.executable, str(ROOT / "examples/gallery.py"))
page = report("gallery.mst")
browser = Browser(width=1000, height=470)
for name, (fragment, selector) in PICTURES.items():
    browser.open(page, fragment)
    if not fragment:
        browser.wait("document.querySelector('.timeline').dataset.drawn")
    picture = browser.one(selector).screenshot_as_png
    assert len(picture) < SIZE_MOST, (name, len(picture))
    (HERE / name).write_bytes(picture)
    print(name, len(picture), "bytes")
