#!/usr/bin/env python3
# needs: comfyui
# timeout: 600
# long
"""The nodes beside loops. The loader of a folder gives images in the order that people expect, makes mixed sizes equal
by the chosen rule or groups them, names damaged files, and reads a changed folder again. It copes with turned pictures,
animations, a single pixel, entries that are no regular files, and ten thousand files. The describer sends its requests
to a local server that speaks OpenAI's chat API: the test checks its requests, whether and when it tries again after a
failure, the time limit, an interrupt, and answers without a description. The key is in no log, no history and no
message."""
import base64, hashlib, http.server, io, json, os, struct, threading, time, zlib

import support
from _comfy import link
from _loops import Loops, node

KEY = "sk-of-the-test-9f3b"


class Endpoint(http.server.BaseHTTPRequestHandler):
    asked, answers, times = [], [], []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, self.headers.get("Authorization"), body))
        self.times.append(time.monotonic())
        status, text, *more = self.answers.pop(0) if self.answers else (200, f"picture {len(self.asked)}")
        if status == "slow":
            time.sleep(20)
            return
        if status == "slow head": # a header that comes byte by byte, and never ends
            self.send_response(200)
            self.wfile.write(b"".join(self._headers_buffer) + b"X-Long: ")
            for _ in range(100):
                self.wfile.write(b"x")
                time.sleep(0.3)
            return
        if status == "html":
            status, answer = 200, b"<!DOCTYPE html><title>It works!</title>"
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
            return
        if status == "drip":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            for _ in range(100):
                self.wfile.write(b" ")
                time.sleep(0.3)
            return
        answer = (json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()
                  if status == 200 else text.encode())
        self.send_response(status)
        if status == 302:
            self.send_header("Location", text or f"http://127.0.0.1:{self.server.server_port}/elsewhere")
        for name, value in more:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
URL = f"http://127.0.0.1:{server.server_port}/v1"

import numpy
import torch
from PIL import Image

folder = support.HERE / "pictures"
folder.mkdir()
for name, size, colour in (("img10.png", (8, 8), (10, 20, 30)), ("img2.png", (8, 8), (255, 0, 0)),
                           ("IMG3.jpg", (8, 8), (0, 255, 0)), ("img1.webp", (8, 8), (0, 0, 255))):
    Image.new("RGB", size, colour).save(folder / name, quality=100)
(folder / "notes.txt").write_text("no image")


def load(rule="refuse", path=folder, **more):
    return {"load": node("DiscomfortFolderImageLoader", folder_path=str(path), mixed_sizes=rule, **more),
            "images": node("Fingerprint", value=link("load")), "count": node("Fingerprint", value=link("load", 1)),
            "names": node("Fingerprint", value=link("load", 2))}


with Loops(env={"MEMSTOW_DESCRIBER_KEY": KEY + "\r"}) as comfy: # "\r": the key was a line of a file from Windows
    def shown(workflow, status="success"):
        done = comfy.run(workflow, status)
        return {name: of.get("digest") for name, of in done["outputs"].items()}

    def shapes(found):
        return [digest[digest.index("["):digest.index("]") + 1] for digest in found["images"]]

    def fails(workflow, *words):
        """Runs a workflow that fails with these words. Returns the texts of its exceptions."""
        messages = comfy.run(workflow, "error")["status"]["messages"]
        text = json.dumps(messages, ensure_ascii=False)
        assert all(word in text for word in words), (text, words)
        return [data["exception_message"] for event, data in messages if event == "execution_error"]

    found = shown(load())
    assert (eval(found["names"][0]) == "img1.webp\nimg2.png\nIMG3.jpg\nimg10.png" and found["count"] == ["4"]
            and shapes(found) == ["[4, 8, 8, 3]"]), found
    assert eval(shown(load(first=1, count=2))["names"][0]) == "img2.png\nIMG3.jpg"
    Image.new("RGB", (16, 4), (1, 2, 3)).save(folder / "img4.png")
    fails(load(), "differ in size", "img1.webp is 8×8", "img4.png is 16×4", "group")
    for rule, expected in (("group", ["[4, 8, 8, 3]", "[1, 4, 16, 3]"]), ("resize to first", ["[5, 8, 8, 3]"]),
                           ("resize to largest", ["[5, 8, 8, 3]"]), ("crop to first", ["[5, 8, 8, 3]"])):
        found = shown(load(rule))
        assert shapes(found) == expected and found["count"] == ["5"], (rule, found)
    assert len({json.dumps(shown(load(rule))["images"])
                for rule in ("resize to first", "crop to first")}) == 1, "one colour, stretched or cut"
    (folder / "img5.png").write_bytes((folder / "img4.png").read_bytes()[:40])
    (folder / "img6.gif").write_bytes(b"no image at all")
    before = shown(load("group"))
    assert before["count"] == ["5"], before
    ramp = support.HERE / "ramp"
    ramp.mkdir()
    values = numpy.array([[0, 257, 32768, 65535]], dtype=numpy.uint16)
    Image.fromarray(values).save(ramp / "grey.png") # 16 bits
    grey = torch.from_numpy(values.astype(numpy.float32) / 65535.0)[None, :, :, None].repeat(1, 1, 1, 3)
    expected = hashlib.sha256(grey.numpy().tobytes()).hexdigest() + "[1, 1, 4, 3]torch.float32"
    assert shown(load(path=ramp))["images"] == [expected], "grey with 16 bits"
    bomb = bytearray((ramp / "grey.png").read_bytes())
    bomb[16:24] = struct.pack(">II", 60000, 60000)
    bomb[29:33] = struct.pack(">I", zlib.crc32(bomb[12:29]))
    (ramp / "huge.png").write_bytes(bomb)
    assert shown(load(path=ramp))["count"] == ["1"] and "huge.png (" in comfy.log(), "it stops nothing"
    assert "cannot be read: img5.png (" in comfy.log() and "img6.gif (" in comfy.log()
    Image.new("RGB", (8, 8), (9, 9, 9)).save(folder / "img2.png")
    assert shown(load("group"))["images"] != before["images"], "a changed folder is read again"
    empty = support.HERE / "empty"
    empty.mkdir()
    fails(load(path=empty), "no image here")
    (empty / "a.png").write_bytes(b"x")
    fails(load(path=empty), "a.png", "no image that can be read")
    fails(load(path="/nobody/knows"), "there is no folder")
    fails(load(first=100), "after the first 100")
    # Entries of the folder that only look like images are left out. Unusual images are loaded.
    odd = support.HERE / "odd"
    odd.mkdir()
    os.mkfifo(odd / "fifo.png")
    (odd / "folder.png").mkdir()
    (odd / "zeros.png").symlink_to("/dev/zero")
    (odd / "nowhere.png").symlink_to("nobody")
    (odd / "itself.png").symlink_to("itself.png")
    fails(load(path=odd), "no image here")
    Image.new("RGB", (1, 1), (255, 0, 0)).save(odd / "pixel.png")
    found = shown(load(path=odd))
    assert shapes(found) == ["[1, 1, 1, 3]"] and found["names"] == ["'pixel.png'"], found
    turned, exif = Image.new("RGB", (16, 4), (0, 255, 0)), Image.Exif()
    exif[0x0112] = 6 # to be turned by a quarter
    turned.save(odd / "turned.jpg", exif=exif)
    (odd / "pixel.png").unlink()
    assert shapes(shown(load(path=odd))) == ["[1, 16, 4, 3]"], "the picture is turned as its metadata say"
    (odd / "turned.jpg").unlink()
    frames = [Image.new("RGB", (8, 8), colour) for colour in ((255, 0, 0), (0, 0, 255))]
    first_frame = torch.tensor([1.0, 0.0, 0.0]).expand(1, 8, 8, 3).contiguous()
    expected = hashlib.sha256(first_frame.numpy().tobytes()).hexdigest() + "[1, 8, 8, 3]torch.float32"
    for name, options in (("moves.gif", {}), ("moves.png", {}), ("moves.webp", {"lossless": True})):
        frames[0].save(odd / name, save_all=True, append_images=frames[1:], **options)
        found = shown(load(path=odd))
        assert found["images"] == [expected], (name, found)
        (odd / name).unlink()
    # a name that contains a line break becomes one line in file_names and in the log
    lines = support.HERE / "two\nmemstow: lines"
    lines.mkdir()
    Image.new("RGB", (1, 1)).save(lines / "a\nb.png")
    Image.new("RGB", (1, 1)).save(lines / "c.png")
    (lines / "d\nmemstow: planted.png").write_bytes(b"x")
    found = shown(load(path=lines))
    assert eval(found["names"][0]).split("\n") == ["a b.png", "c.png"] and found["count"] == ["2"], found
    # names that are not UTF-8
    os.rename(lines / "a\nb.png", os.fsencode(lines) + b"/b\xff.png")
    os.rename(lines / "d\nmemstow: planted.png", os.fsencode(lines) + b"/d\xfe.png")
    found = shown(load(path=lines))
    assert eval(found["names"][0]).split("\n") == ["b\\udcff.png", "c.png"], found
    assert "images cannot be read: d\\udcfe.png (" in comfy.log() and "Logging error" not in comfy.log()
    line = next(line for line in comfy.log().splitlines() if "planted.png (" in line)
    assert "two memstow: lines: these images cannot be read: d memstow: planted.png (" in line, line
    many = support.HERE / "many"
    many.mkdir()
    Image.new("RGB", (1, 1)).save(many / "img0.png")
    for number in range(1, 10_000):
        os.link(many / "img0.png", many / f"img{number}.png")
    found = shown(load(path=many))
    assert (found["count"] == ["10000"] and shapes(found) == ["[10000, 1, 1, 3]"]
            and eval(found["names"][0]).split("\n") == [f"img{number}.png" for number in range(10_000)]), found
    assert shown(load(path=many, first=9_997))["names"] == [repr("img9997.png\nimg9998.png\nimg9999.png")]

    # the describer
    def describe(number, images="image", **more):
        return {"image": node("NewImage", seed=number, size=8),
                "two": node("ImageBatch", image1=link("image"), image2=link("image")),
                "say": node("DiscomfortImageDescriber",
                            **{"images": link(images), "api_url": URL, "api_key": "", "prompt": f"say {number}",
                               **more}), "text": node("Fingerprint", value=link("say"))}

    assert shown(describe(1))["text"] == ["'picture 1'"]
    path, authorization, body = Endpoint.asked[0]
    assert path == "/v1/chat/completions" and authorization == f"Bearer {KEY}" and body["model"] == "gpt-4o-mini"
    text, image = body["messages"][0]["content"]
    assert text == {"type": "text", "text": "say 1"} and image["image_url"]["url"].startswith("data:image/png;base64,")
    assert Image.open(io.BytesIO(base64.b64decode(image["image_url"]["url"].split(",")[1]))).size == (8, 8)
    assert shown(describe(2, "two"))["text"] == ["'picture 2\\npicture 3'"]
    Endpoint.answers[:] = [(503, "busy"), (429, "later"), (200, "at last")]
    assert shown(describe(3))["text"] == ["'at last'"]
    Endpoint.answers[:] = [(503, "busy")] * 3
    fails(describe(4), "status 503", URL)
    assert not Endpoint.answers, "three tries"
    Endpoint.answers[:] = [(401, f"no such key {KEY}")]
    fails(describe(5), "status 401")
    Endpoint.answers[:] = [(302, "")]
    asked = len(Endpoint.asked)
    fails(describe(6), "status 302")
    assert len(Endpoint.asked) == asked + 1, "nobody follows to where the key has no business"
    Endpoint.answers[:] = [("slow", "")] * 3
    begun = time.monotonic()
    fails(describe(7, seconds=1.0), "gave no description")
    assert time.monotonic() - begun < 15 and len(Endpoint.answers) == 2, "the time is for all tries together"
    Endpoint.answers[:] = [("drip", "")]
    begun = time.monotonic()
    fails(describe(12, seconds=1.0, tries=1), "in time")
    assert time.monotonic() - begun < 15, "an answer that comes byte by byte does not hold the node"
    Endpoint.answers[:] = [("slow head", "")]
    begun = time.monotonic()
    fails(describe(15, seconds=1.0, tries=1), "in time")
    assert time.monotonic() - begun < 15, "nor do headers that come byte by byte"
    Endpoint.answers[:] = [(200, 7)]
    fails(describe(8), "has no text")
    Endpoint.answers[:] = [("html", "")]
    fails(describe(16), "the answer is not one of OpenAI's chat API", f"{URL}/chat/completions")
    Endpoint.answers[:] = [(302, "file:///etc/passwd")]
    fails(describe(17), "status 302")
    # when it asks again
    Endpoint.answers[:] = [(429, "later", ("Retry-After", "2")), (200, "then")]
    assert shown(describe(18))["text"] == ["'then'"]
    assert Endpoint.times[-1] - Endpoint.times[-2] >= 1.9, "it asks again before it may"
    for odd_time in ("nan", "-5", "soon", "Fri, 31 Dec 1999 23:59:59 GMT"):
        Endpoint.answers[:] = [(429, "later", ("Retry-After", odd_time)), (200, "then")]
        assert shown(describe(19, prompt=odd_time))["text"] == ["'then'"], odd_time
    Endpoint.answers[:] = [(429, "later", ("Retry-After", "1e400"))]
    fails(describe(20, seconds=1.0), "status 429")
    # the user interrupts a node that waits for an answer
    Endpoint.answers[:] = [("slow", "")]
    asked = len(Endpoint.asked)
    waiting = comfy.queue(describe(21))
    support.wait_for(lambda: len(Endpoint.asked) > asked, 60, "the request")
    begun = time.monotonic()
    assert comfy.status_of("/interrupt", b"{}") == 200
    done = comfy.wait(waiting, 60)
    assert "execution_interrupted" in json.dumps(done["status"]) and time.monotonic() - begun < 15, done["status"]
    fails(describe(13, api_key="sk-other\nsk-other"), "the key has a character that a key cannot have")
    fails(describe(14, api_url="http://127.0.0.1:pass/v1"), "is not a number")
    assert "sk-other" not in comfy.log(), "the key is in the log"
    Endpoint.answers.clear()
    fails(describe(9, api_url=""), "MEMSTOW_DESCRIBER_URL")
    fails(describe(10, api_url="ftp://x/y"), "api_url")
    closed = support.free_port()
    fails(describe(11, api_url=f"http://user:{KEY}@127.0.0.1:{closed}/v1?key={KEY}", tries=2),
          "has a user or password in it")
    words = fails(describe(22, api_url=f"http://127.0.0.1:{closed}/v1?key={KEY}", tries=2), "gave no description",
                  f"127.0.0.1:{closed}/v1/chat/completions")
    assert len(words) == 1 and "refused" in words[0] and KEY not in words[0], words
    assert KEY not in comfy.log_file.read_text(), "the key is in the log"
    everything = json.dumps([entry["status"] for entry in comfy.get("/history").values()])
    given = everything.count(f"key={KEY}") + everything.count(f"user:{KEY}@")
    assert everything.count(KEY) == given, "the key is in a message"
