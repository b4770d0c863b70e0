"""What a run leaves in a folder: the names of the parts that are to be run; a line of JSON for each part, written when
the part has ended; a summary; and an archive of everything. In: outcomes. Out: files."""
import contextlib, json, os, pathlib, re, tarfile

FAILED = re.compile(r"not so: .*|error -?\d+ of CUDA: .*|\w*(?:Error|Exception|Expired)\b.*|no end after .*")
FIGURE = re.compile(r"figure (\S+) (-?[0-9.]+(?:e-?\d+)?|true|false)")
PLAN, LINES = "planned.json", "results.jsonl"
LARGEST = {".mst": 256 << 20} # bytes of a file in the archive, by the end of its name: ledgers are what is wanted
LARGEST_OTHER = 16 << 20


def figures(said):
    """{name: number} from the lines "figure NAME NUMBER" of a part."""
    return {name: json.loads(number) for name, number in FIGURE.findall(said)}


def expression(said):
    """What did not hold, in a failed part's own words."""
    found = [m[0] for line in said.split("\n") if (m := FAILED.search(line))]
    return found[-1] if found else said.strip().split("\n")[-1]


class Results:
    def __init__(self, folder):
        self.folder, self.lines = pathlib.Path(folder), []
        self.folder.mkdir(parents=True, exist_ok=True)

    def plan(self, parts):
        """Writes down which parts are to run, before the first part runs: the whole run may be killed."""
        (self.folder / PLAN).write_text(json.dumps(parts) + "\n")

    def place(self, part):
        """The folder in which a part runs."""
        place = self.folder / part
        place.mkdir()
        return place

    def note(self, **line):
        """Adds a line. It is on the disk when this returns."""
        self.lines.append(line)
        with open(self.folder / LINES, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def sum_up(self, **more):
        names = {}
        for line in self.lines:
            names.setdefault(line["outcome"], []).append(line["part"])
        summary = {**more, "outcomes": names, "figures": {line["part"]: line["figures"] for line in self.lines
                                                          if line["figures"]}}
        (self.folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")

    def pack(self):
        """Puts everything into one file beside the folder. Files that are too large are named, and left out."""
        archive = self.folder.with_name(self.folder.name + ".tar.gz")
        files = [p for p in sorted(self.folder.rglob("*")) if p.is_file() and not p.is_symlink()]
        large = [p for p in files if p.stat().st_size > LARGEST.get(p.suffix, LARGEST_OTHER)]
        (self.folder / "left_out.txt").write_text("".join(f"{p.relative_to(self.folder)}\n" for p in large))
        with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
            for path in sorted({*files, self.folder / "left_out.txt"} - set(large)):
                tar.add(path, f"{self.folder.name}/{path.relative_to(self.folder)}")
        return archive


def is_run(folder):
    return (folder / PLAN).is_file() or (folder / LINES).is_file()


def lines_of(folder):
    """The lines of an earlier run. A run that was killed may have left a part of a line."""
    path = folder / LINES
    for line in path.read_text().splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):
            yield json.loads(line)


def unsettled(folder):
    """The parts of an earlier run that failed, or of which nothing is known."""
    last = {line["part"]: line["outcome"] for line in lines_of(folder)}
    planned = json.loads((folder / PLAN).read_text()) if (folder / PLAN).exists() else []
    return [part for part in dict.fromkeys((*planned, *last)) if last.get(part) not in ("passed", "skipped")]
