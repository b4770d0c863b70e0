"""The expectations of a program under test about its report.

A program prints "ok", or lines "expect PATH OP VALUE". They are checked against its JSON report: `expect
totals.live_bytes >= 4096`. OP is one of == != <= >= < >. PATH consists of names, [index], .length, and [path=pattern],
which selects elements; numbers of selected elements are added up: sites[stack[0].module=*libm*].live_bytes. `expect@PID
…` uses the report of the child with that pid. All other output must be the same with and without memstow.

"expect stack SIZE inner<caller<main" is about call stacks. There must be sites whose live blocks have SIZE bytes each,
and their stacks must have these functions, innermost first. Outer callers may be omitted. A name has no C++
parameters; "*" in it stands for any characters. name{N} stands for N such functions in a row, "..." for any number of
functions, "." for the end of the stack. Behind "?" a stack may end anywhere: it is incomplete, but not wrong."""
import fnmatch, json, operator, pathlib, re, subprocess

OPERATORS = {"==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt,
             ">": operator.gt}


def unmet(lines, memstow, file, env=None):
    """Returns the faults: a text for each line whose expectation the report of the ledger does not meet."""
    reports = {}
    return [wrong for line in lines if (wrong := check_line(line, memstow, file, env, reports))]


def check_line(line, memstow, file, env, reports):
    """The fault of a line, or None."""
    parts = re.fullmatch(r"expect(?:@(\d+))? (\S+) (==|!=|<=|>=|<|>|\d+) (.*)", line)
    if not parts or parts[3].isdigit() != (parts[2] == "stack"):
        return f"{line}: not an expectation"
    pid, path, op, text = parts.groups()
    target = pathlib.Path(f"{file}.{pid}") if pid and pathlib.Path(f"{file}.{pid}").exists() else file
    if target not in reports:
        done = subprocess.run([memstow, "report", target, "--json"], env=env, timeout=60, capture_output=True,
                              text=True, errors="replace")
        if done.returncode != 0:
            return f"memstow report {target.name} --json: exit status {done.returncode}\n{done.stderr}"
        reports[target] = json.loads(done.stdout)
    if path == "stack":
        return check_stack(reports[target]["sites"], int(op), text)
    try:
        found = look_up(reports[target], path)
    except (KeyError, IndexError, TypeError) as error:
        return f"{line}: the report has no such thing ({error!r})"
    wanted = parse_value(text)
    try:
        right = OPERATORS[op](found, wanted)
    except TypeError:
        right = False
    return None if right else f"{line}: it is {found!r}"


def check_stack(sites, size, chain):
    """The fault in the stacks of sites whose live blocks have that size, or None."""
    stacks = [s["stack"] for s in sites if s["live_blocks"] and s["live_bytes"] == size * s["live_blocks"]]
    names = ["".join(name_of(frame) + "\n" for frame in stack) for stack in stacks]
    wrong = [n for n in names if not re.match(stack_pattern(chain), n)]
    if wrong:
        return f"expect stack {size} {chain}: it is {abbreviate(wrong[0])}"
    return None if names else f"expect stack {size} {chain}: no site has blocks of that size"


def name_of(frame):
    """A function without its parameters."""
    return re.sub(r"(?<=.)\(.*", "", frame.get("function") or "?")


def abbreviate(names):
    """Names of functions, a line each, as a chain."""
    chain = names.rstrip("\n").replace("\n", "<") + "<"
    return re.sub(r"([^<]+<)\1{3,}", lambda run: f"{run[1][:-1]}{{{len(run[0]) // len(run[1])}}}<", chain)[:-1]


def stack_pattern(chain):
    """Makes a regular expression from the chain. It matches texts in which each line is the name of a function of a
    stack."""
    pattern, may_end = "", False
    for element in re.split(r"(?<!operator)<", chain):
        name, times = re.fullmatch(r"(.*?)(?:\{(\d+)\})?", element).groups()
        line = "".join("[^\n]*" if c == "*" else re.escape(c) for c in name) + "\n"
        line = {"...": r"(?:[^\n]*\n)*?", ".": r"\Z"}.get(element, f"(?:{line})")
        if element == "?":
            may_end = True
        elif may_end:
            pattern += (r"(?:\Z|" + line) * int(times or 1)
        else:
            pattern += line + (f"{{{times}}}" if times else "")
    return pattern + ")" * pattern.count(r"(?:\Z|")


def parse_value(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


class Selected(list):
    """The elements that [path=pattern] selected. A name is looked up in each element; numbers are added up at the
    end."""


def look_up(document, path):
    value = document
    for name, bracket in split_path(path):
        value = step(value, name, bracket)
    if isinstance(value, Selected) and all(isinstance(v, (int, float)) for v in value):
        return sum(value)
    return value


def split_path(path):
    """Yields (name, None) and (None, text in brackets)."""
    i = 0
    while i < len(path):
        if path[i] == ".":
            i += 1
        elif path[i] == "[":
            end, depth = i + 1, 1
            while depth:
                depth += {"[": 1, "]": -1}.get(path[end], 0)
                end += 1
            yield None, path[i + 1:end - 1]
            i = end
        else:
            name = re.match(r"[^.\[]+", path[i:])[0]
            yield name, None
            i += len(name)


def step(value, name, bracket):
    if name == "length" and isinstance(value, list):
        return len(value)
    if isinstance(value, Selected):
        return Selected(step(v, name, bracket) for v in value)
    if name is not None:
        return value[name]
    if "=" not in bracket:
        return value[int(bracket)]
    key, pattern = bracket.split("=", 1)
    return Selected(v for v in value if has(v, key, pattern))


def has(value, key, pattern):
    try:
        return fnmatch.fnmatchcase(str(look_up(value, key)), pattern)
    except (KeyError, IndexError, TypeError):
        return False
