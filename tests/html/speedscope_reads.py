# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:jsonschema==4.26.0
"""--speedscope, read by speedscope itself in a browser: it has each profile, and its table has the bytes and blocks of
each function. Names are plain text. The files are valid by speedscope's published schema, which lies in the folder of
its application. SPEEDSCOPE names this folder. Without it, only cli/export_speedscope checks files, by rules of its
own."""
import copy, json, pathlib

import jsonschema
import support
from _page import Browser # puts tests/cli on sys.path, too
from _speedscope import Application, next_profile, profile_name, sandwich, totals

import _hostile
from _ledger import Ledger

application = Application()
schema = jsonschema.Draft7Validator(application.schema())
made = Ledger(total_peak=9000, host_peak=9000, picture=(9000, 8000, 2 * 10**9))
lib = made.module("/opt/libx.so")
main = made.python("<module>", "/app.py", 3)
for live, peak, name in ((700, 900, "load"), (250, 60, "<lambda>")):
    stack = made.node([made.frame(0x10, lib), main, made.python(name, "/app.py", 12)])
    made.count(made.site(lib, stack=stack, peak=peak), alloc=(live * 2, 4), free=(live, 2))
made.count(made.site(lib, peak=20), alloc=(30, 1))
made.save("x.mst")


def write(file, *options):
    """Writes the profiles of a ledger to a file, which must fit the schema. Returns its name."""
    name = f"{file}.speedscope.json"
    with open(name, "w") as out:
        out.write(support.memstow("report", file, "--speedscope", *options).stdout)
    schema.validate(json.loads(pathlib.Path(name).read_text()))
    return name


# The schema refuses what is wrong.
wrong = json.loads(pathlib.Path(write("x.mst")).read_text())
assert schema.is_valid(wrong)
for change in (lambda profile: profile.pop("weights"), lambda profile: profile.update(unit="MiB"),
               lambda profile: profile.update(samples=["main"])):
    changed = copy.deepcopy(wrong)
    change(changed["profiles"][0])
    assert not schema.is_valid(changed), changed["profiles"][0]

browser = Browser()
application.open(browser, write("x.mst"), "sandwich")
assert totals(browser) == {"live bytes": "980 B", "bytes at the peak": "980 B", "live blocks": "5",
                           "allocated bytes": "1.88 KB"}, totals(browser)
found = {}
for number in range(1, 5):
    found[profile_name(browser).replace(f" ({number}/4)", "")] = sandwich(browser)
    if number < 4:
        next_profile(browser)
MEASURES = {"live bytes": ("0 B", "700 B", "250 B", "950 B", "30 B"),
            "bytes at the peak": ("0 B", "900 B", "60 B", "960 B", "20 B"), "live blocks": ("0", "2", "2", "4", "1"),
            "allocated bytes": ("0 B", "1.37 KB", "500 B", "1.86 KB", "30 B")}
expected = {measure: {(load, load, "py:load"), (anonymous, anonymous, "py:<lambda>"), (both, none, "py:<module>"),
                      (both, none, "libx.so+0x10"), (bare, bare, "libx.so")}
            for measure, (none, load, anonymous, both, bare) in MEASURES.items()}
assert found == expected, found

# ---- names: the table shows names of functions in the file, as plain text

_hostile.save("hostile.mst")
profiles = write("hostile.mst", "--min=0")
shared = json.loads(pathlib.Path(profiles).read_text())["shared"]["frames"]
application.open(browser, profiles, "sandwich")
names = [name for _, _, name in sandwich(browser)]
assert names and set(names) <= {frame["name"] for frame in shared} and "py:" + _hostile.SCRIPT in names, names
assert browser.js("return [window.hit === undefined, document.images.length]") == [True, 0]
for view in ("left-heavy", "time-ordered"):
    application.open(browser, profiles, view)
assert browser.js("return window.hit === undefined")
