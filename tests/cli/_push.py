"""A recorder in the place of Pyroscope and Parca (a test double): it takes what `memstow push` sends, reads it by the
published protocol buffers, and answers as the test says."""
import base64, functools, gzip, http.server, pathlib, socket, subprocess, threading

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

from _pprof import decode
from support import ROOT

STRING, BYTES, BOOL, MESSAGE = 9, 12, 8, 11
# The fields of each message, as (name, number, type). They were published in github.com/grafana/pyroscope
# (api/push/v1/push.proto and api/types/v1/types.proto) and in github.com/parca-dev/parca
# (proto/parca/profilestore/v1alpha1/profilestore.proto).
PUBLISHED = {
    "push": {"LabelPair": [("name", 1, STRING), ("value", 2, STRING)],
             "RawSample": [("raw_profile", 1, BYTES), ("ID", 2, STRING)],
             "RawProfileSeries": [("labels", 1, "*LabelPair"), ("samples", 2, "*RawSample")],
             "PushRequest": [("series", 1, "*RawProfileSeries")]},
    "parca": {"Label": [("name", 1, STRING), ("value", 2, STRING)],
              "LabelSet": [("labels", 1, "*Label")],
              "RawSample": [("raw_profile", 1, BYTES)],
              "RawProfileSeries": [("labels", 1, "LabelSet"), ("samples", 2, "*RawSample")],
              "WriteRawRequest": [("tenant", 1, STRING), ("series", 2, "*RawProfileSeries"), ("normalized", 3, BOOL)]}}


def messages():
    pool = descriptor_pool.DescriptorPool()
    for package, those in PUBLISHED.items():
        file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
        for name, fields in those.items():
            message = file.message_type.add(name=name)
            for field, number, kind in fields:
                one = message.field.add(name=field, number=number, label=1, type=MESSAGE)
                if isinstance(kind, int):
                    one.type = kind
                else:
                    one.type_name, one.label = f".{package}.{kind.lstrip('*')}", 3 if kind[0] == "*" else 1
        pool.Add(file)
    return {"/push.v1.PusherService/Push": message_factory.GetMessageClass(
                pool.FindMessageTypeByName("push.PushRequest")),
            "/profiles/writeraw": message_factory.GetMessageClass(
                pool.FindMessageTypeByName("parca.WriteRawRequest"))}


MESSAGES = messages()


@functools.cache
def pprof_message():
    """Returns the class that decodes pprof's profiles. protoc runs once, to make this class. A run of protoc for each
    profile might be too slow for the rate at which profiles arrive."""
    subprocess.run(["protoc", f"-I{ROOT}/tools/export", "--descriptor_set_out=pprof.pb", "pprof.proto"], check=True)
    files = descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path("pprof.pb").read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("pprof.Profile"))


class Profile:
    """One profile that arrived: the labels of its series, and its samples as (values by type, labels)."""

    def __init__(self, path, body, headers):
        self.path, path = path, path.removeprefix("/below")
        message = json_format.Parse(body, MESSAGES[path]()) # an unknown field is an error
        assert len(message.series) == 1 and len(message.series[0].samples) == 1, message
        labels = message.series[0].labels
        pairs = labels.labels if path == "/profiles/writeraw" else labels
        self.labels = {pair.name: pair.value for pair in pairs}
        assert len(self.labels) == len(pairs), pairs
        self.headers, self.packed = headers, message.series[0].samples[0].raw_profile

    @functools.cached_property
    def raw(self): # decoded only when asked for: the sender need not wait, even if a profile is large
        return decode(self.packed)

    @functools.cached_property
    def message(self):
        return pprof_message().FromString(gzip.decompress(self.packed))

    @functools.cached_property
    def samples(self):
        strings = self.message.string_table
        types = [strings[one.type] for one in self.message.sample_type]
        return [(dict(zip(types, one.value)), {strings[label.key]: strings[label.str] for label in one.label})
                for one in self.message.sample]

    def sum(self, kind, **labels):
        return sum(values[kind] for values, those in self.samples if labels.items() <= those.items())


class Recorder:
    """A server that records the requests and profiles that come. Its answer is `answer`, a pair (status, text). If
    `answer` is None, the server does not answer."""

    def __init__(self, context=None, address="127.0.0.1"):
        self.answer, self.profiles, self.asked = (200, "{}"), [], []
        self.over = threading.Event()
        recorder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = recorder.answer
                recorder.asked.append((self.path, dict(self.headers), body))
                if answer is None:
                    recorder.over.wait(60)
                    return
                if answer[0] == 200:
                    recorder.profiles.append(Profile(self.path, body, dict(self.headers)))
                self.send_response(answer[0])
                self.end_headers()
                self.wfile.write(answer[1].encode())

            def log_message(self, *_words):
                pass

        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        server = type("Server", (http.server.ThreadingHTTPServer,), {"address_family": family})
        self.server = server((address, 0), Handler)
        self.server.daemon_threads = True
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        host = f"[{address}]" if ":" in address else address
        self.url = f"{'https' if context else 'http'}://{host}:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def basic(text):
    return "Basic " + base64.b64encode(text.encode()).decode()
