#!/usr/bin/env python3
# needs: comfyui comfyui-manager deb:chromium deb:chromium-driver
# needs: pip:selenium==4.51.0 pip:comfyui-frontend-package==1.32.9
# timeout: 600
# long
"""ComfyUI was started without memstow. The user sets "Start ComfyUI under memstow" in ComfyUI's settings, then presses
Restart in ComfyUI-Manager's page. Now the same process runs under memstow, and the tab, which was open all the time,
shows its memory. A second restart works, too: the pack does not start ComfyUI once more, and the library is not
preloaded twice."""
import sys

import _manager, support
from _comfy import AGAIN, HERE, Comfy, mixed
from _sidebar import PAGE, browse, rows, set_to, settle

sys.path.insert(0, str(support.ROOT / "tests/html"))
from _page import Browser # noqa: E402

_manager.need()
LISTENS = "To see the GUI go to"
MISSING = "memstow is installed, but ComfyUI does not run under it"
LEDGER = support.HERE / "comfyui.mst"
settings = settle("comfyui")
browser = Browser(1400, 1000)
browser.driver.set_script_timeout(60)


def restart(comfy):
    """Calls the function behind the button Restart of Manager's own page, and confirms. Waits until ComfyUI listens
    again."""
    before = comfy.log().count(LISTENS)
    browser.driver.execute_async_script("""
        const done = arguments[0];
        import('/extensions/comfyui-manager-legacy/common.js').then((common) => { common.rebootAPI(); done(); })""")
    confirm = "[...document.querySelectorAll('[role=dialog] button, [role=alertdialog] button')].find((one) => " \
              "one.textContent.trim() === 'Confirm')"
    browser.wait(confirm)
    browser.js(f"{confirm}.click()")
    support.wait_for(lambda: comfy.log().count(LISTENS) > before, 200, "the restart")
    support.wait_for(lambda: comfy.get("/system_stats"), 60, "ComfyUI answering")


def environment(comfy):
    """What tells the process to be tracked, and where."""
    found = support.environment_of(comfy.server.pid)
    return [found[name] for name in ("LD_PRELOAD", "MEMSTOW_OUT", "MEMSTOW_MAIN", "MEMSTOW_RUN")]


with Comfy(None, arguments=("--front-end-root", str(PAGE)), packs=_manager.PACK,
           env={"MEMSTOW_COMMAND": str(support.MEMSTOW), "MEMSTOW_POLICY": "keep",
                "MEMSTOW_OPTIONS": f"--follow=none -o '{LEDGER}'",
                "PYTHONPATH": f"{support.ROOT}/tests:{HERE}/_direct"}) as comfy:
    browse(browser, comfy)
    browser.wait(f"document.querySelector('.memstow-body').textContent.startsWith('{MISSING}')")
    set_to(browser, "memstow.start", True)
    support.wait_for(lambda: '"memstow.start": true' in settings.read_text(), what="the setting")
    seen = []
    for again in (1, 2):
        restart(comfy)
        browser.wait(f"document.querySelector('.memstow-none') && !document.querySelector('.memstow-body').textContent"
                     f".includes('{MISSING}')")
        comfy.run(mixed(again, None, None))
        browser.wait("document.querySelectorAll('.memstow-models > li').length === 3")
        assert {name.split()[0] for name in rows(browser)} == set(comfy.owners()), rows(browser)
        assert comfy.log().count(AGAIN) == 1 and not comfy.failed_hooks(), comfy.log().count(AGAIN)
        seen.append(environment(comfy))
        assert seen[-1][0] == str(support.LIBRARY), seen
    assert seen[0] == seen[1], seen
    report = support.report(LEDGER)
    assert report["process"]["pid"] == comfy.server.pid and report["totals"]["live_bytes"], report["process"]
