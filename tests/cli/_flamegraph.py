"""Flame graphs that FlameGraph's own flamegraph.pl makes of folded stacks."""
import collections, pathlib, re, shutil, subprocess
import xml.etree.ElementTree as ET

from support import skip

DEBIAN = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl" # of libdevel-nytprof-perl
SVG = "{http://www.w3.org/2000/svg}"


class Graph:
    """total: the bytes of the whole; frames: [(name, bytes, colour)]; tags: the names of all elements; scripts: the
    texts of all scripts; handlers: the texts of all event attributes, such as onclick."""

    def __init__(self, folded, *options):
        script = shutil.which("flamegraph.pl") or DEBIAN
        if not pathlib.Path(script).exists() or not shutil.which("perl"):
            skip("needs flamegraph.pl")
        done = subprocess.run(["perl", script, "--countname=bytes", "--minwidth=0", *options], input=folded,
                              capture_output=True, check=True)
        assert not done.stderr, done.stderr
        self.svg = done.stdout
        root = ET.fromstring(self.svg)
        self.scripts = [one.text for one in root.iter(f"{SVG}script")]
        self.tags = {one.tag.removeprefix(SVG) for one in root.iter()}
        self.handlers = [value for one in root.iter() for name, value in one.attrib.items() if name.startswith("on")]
        self.total, self.frames = None, []
        for group in root.iter(f"{SVG}g"):
            title = group.find(f"{SVG}title").text
            name, size = re.fullmatch(r"(.*) \(([\d,]+) bytes, [\d.]+%(?:; [-+\d.]+%)?\)", title, re.S).groups()
            size = int(size.replace(",", ""))
            if name == "all" and title.endswith(" bytes, 100%)"):
                self.total = size
            else:
                self.frames.append((name, size, group.find(f"{SVG}rect").get("fill")))


def expected(stacks):
    """The frames that a graph of {stack: bytes} must have: {(name, bytes): how many}."""
    sums = collections.Counter()
    for stack, size in stacks.items():
        names = tuple(stack.replace("<", "(").replace(">", ")").split(";")) # as flamegraph.pl does
        for depth in range(len(names)):
            sums[names[:depth + 1]] += size
    return collections.Counter((path[-1], size) for path, size in sums.items() if size)
