"""A client that is not on loopback, of a ComfyUI on --listen 0.0.0.0: this machine, by its other address."""
import json, re, socket, urllib.error, urllib.request

OWN = ("/system_stats", "/history", "/object_info", "/queue", "/internal/logs", "/extensions", "/models", "/features",
       "/internal/folder_paths") # what ComfyUI itself tells each client
OURS = ("owners", "report", "report?format=text", "runs", "decisions", "metrics", "leaks", "snapshot", "presence",
        "loops", "ticket?id=1") # and POST requests answer with figures, tickets and names of files, as these do
PATH = re.compile(r"(?<![\w.])/(?:[\w.+-]+/)+[\w.+-]+")


def other_address():
    """An address of this machine that is not on loopback; None: there is none. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            any_socket.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = any_socket.getsockname()[0]
        return None if address.startswith("127.") else address


def ask(comfy, address, path, headers=None, body=None):
    """The status and the text of an answer."""
    request = urllib.request.Request(f"http://{address}:{comfy.port}{path}", body,
                                     {"Content-Type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")


def tells_no_more(comfy, secret):
    """A client on another machine gets figures and names. It gets no path that ComfyUI itself does not tell it, no
    value of the environment, no page with call stacks, and no snapshot."""
    far = other_address()
    if far is None:
        return print("this machine has no address but loopback: --listen was not tried")
    own = "".join(ask(comfy, far, path)[1] for path in OWN)
    for path in OURS:
        status, text = ask(comfy, far, f"/memstow/{path}")
        assert status == 200, (path, status, text)
        told = {one for one in PATH.findall(text) if one not in own and not one.startswith(
            ("/site-packages/", "/dist-packages/", "/lib/python3", "/custom_nodes/"))}
        assert not told and secret not in text, (path, told)
    assert "/" in "".join(PATH.findall(ask(comfy, "127.0.0.1", "/memstow/leaks")[1])), "it would find a path"
    file = json.loads(ask(comfy, far, "/memstow/snapshot", body=b"{}")[1])["file"].rpartition("/")[2]
    views = [f"{view}?filename={file}&subfolder={folder}" for view in ("/view", "/api/view")
             for folder in ("memstow", "./memstow", "x/../memstow", "memstow%2f")]
    for path in ("/memstow/page", "/memstow/diff", *views):
        status, text = ask(comfy, far, path)
        assert status == 403 and "only for clients on this machine" in text, (path, status, text[:300])
    assert ask(comfy, "127.0.0.1", views[0])[0] == 200 == ask(comfy, "127.0.0.1", "/memstow/diff")[0]
    for header in ("X-Forwarded-For", "Forwarded"): # a proxy on this machine, of another client
        assert ask(comfy, "127.0.0.1", "/memstow/page", {header: "198.51.100.7"})[0] == 403
    print(f"a client by {far} is told no more")
