"""Profiles in the form of pprof, as protoc reads them."""
import gzip, subprocess

from support import ROOT


def decode(packed):
    """Decodes a profile with protoc. Returns {field: [value…]}. A message within the profile is such a value, too."""
    text = subprocess.run(["protoc", f"-I{ROOT}/tools/export", "--decode=pprof.Profile",
                           f"{ROOT}/tools/export/pprof.proto"], input=gzip.decompress(packed), capture_output=True,
                          check=True).stdout.decode()
    open_messages = [{}]
    for row in map(str.strip, text.splitlines()):
        if row == "}":
            open_messages.pop()
        elif row.endswith("{"):
            open_messages.append({})
            open_messages[-2].setdefault(row[:-2], []).append(open_messages[-1])
        else:
            name, value = row.split(": ", 1)
            open_messages[-1].setdefault(name, []).append(value[1:-1] if value[0] == '"' else value)
    return open_messages[0]
