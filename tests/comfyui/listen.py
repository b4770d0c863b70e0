#!/usr/bin/env python3
# needs: comfyui deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:comfyui-frontend-package==1.32.9
# timeout: 600
"""A ComfyUI on --listen 0.0.0.0 tells a client that is not on this machine no more than ComfyUI itself tells it. The
pack takes no order from such a client: each route is refused but the one that says whether memstow is there. The files
of snapshots are refused, too. The tab "Memory" of such a client says why it is empty. (The client of this test is this
machine, by an address that is not on loopback.)"""
import json, socket, sys, urllib.error, urllib.request

import support
from _comfy import Comfy, mixed
from _sidebar import PAGE, browse, settle

sys.path.insert(0, str(support.ROOT / "tests/html"))
from _page import Browser # noqa: E402

ASKED = ("owners", "report", "report?format=text", "runs", "decisions", "metrics", "leaks", "page", "diff", "snapshot",
         "loops", "ticket?id=1", "%6fwners")
ORDERS = ("trigger", "model", "snapshot", "watch", "badges", "cancel", "restart", "loops")


def other_address():
    """An address of this machine that is not on loopback. A datagram socket sends nothing in connect()."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            any_socket.connect(("192.0.2.1", 9))
            address = any_socket.getsockname()[0]
        except OSError as error:
            support.skip(f"this machine has no address but loopback: {error}")
    return address if not address.startswith("127.") else support.skip("this machine has no address but loopback")


def ask(comfy, address, path, body=None, method=None):
    """The status and the text of an answer."""
    request = urllib.request.Request(f"http://{address}:{comfy.port}{path}", body, {"Content-Type": "application/json"},
                                     method=method)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")


def is_refused(comfy, path, body=None, method=None):
    status, text = ask(comfy, far, path, body, method)
    assert status == 403 and "only to clients on this machine" in text, (path, status, text[:300])


far, near = other_address(), "127.0.0.1"
settle("comfyui")
with Comfy(under="memstow", arguments=("--front-end-root", str(PAGE), "--listen", "0.0.0.0")) as comfy:
    comfy.run(mixed(1, None, None))
    file = json.loads(ask(comfy, near, "/memstow/snapshot", b"{}")[1])["file"].rpartition("/")[2]
    before = ask(comfy, near, "/memstow/snapshot")[1], ask(comfy, near, "/memstow/runs")[1]
    for prefix in ("", "/api"):
        for path in ASKED:
            is_refused(comfy, f"{prefix}/memstow/{path}")
        for path in ORDERS:
            is_refused(comfy, f"{prefix}/memstow/{path}", b"{}")
        is_refused(comfy, f"{prefix}/memstow/snapshot?file={file}", method="DELETE")
        for folder in ("memstow", "./memstow", "x/../memstow", "memstow%2f"):
            is_refused(comfy, f"{prefix}/view?filename={file}&subfolder={folder}")
        assert ask(comfy, far, f"{prefix}/system_stats")[0] == 200, "ComfyUI itself answers"
    status, text = ask(comfy, far, "/memstow/presence")
    assert status == 200 and set(json.loads(text)) == {"format", "version", "state"}, text
    assert before == (ask(comfy, near, "/memstow/snapshot")[1], ask(comfy, near, "/memstow/runs")[1])
    for path in ("owners", "decisions", "leaks", "metrics", "diff"):
        assert ask(comfy, near, f"/memstow/{path}")[0] == 200, path
    assert ask(comfy, near, f"/view?filename={file}&subfolder=memstow")[0] == 200

    browser = Browser(1400, 1000)
    browser.driver.set_script_timeout(60)
    browse(browser, comfy, far)
    browser.wait("document.querySelector('.memstow-body').textContent.includes('MEMSTOW_REMOTE=1')")
    assert not browser.all(".memstow-models"), browser.text(".memstow")
print(f"a client by {far} is told no more")
