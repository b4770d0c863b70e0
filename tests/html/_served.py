"""Web applications of other tools, over HTTP on this machine, with the files that they are to show."""
import functools, http.server, pathlib, shutil, threading


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Served:
    """Serves a copy of a folder, with the files that are put into it.

    address: where its page is, without a slash at the end."""

    def __init__(self, folder, name):
        self.folder = pathlib.Path(name).resolve()
        shutil.copytree(folder, self.folder)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=self.folder))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def put(self, file):
        """Puts a file into the folder. Returns its address."""
        shutil.copy(file, self.folder)
        return f"{self.address}/{pathlib.Path(file).name}"
