#!/usr/bin/env python3
"""Prints the tables of tests/unit/python_tables.h, as the Python that runs this script makes them. For each code object
of a sample there are its location table, and the lines that Python reports for its code units. Python 3.13 and later
publish the layout of their own data, so for these versions the layout is printed, too. Each Python prints its own part:

    for p in python3.11 python3.12 python3.13; do $p tests/unit/_python_tables.py; done |
        clang-format --assume-filename=x.h > tests/unit/python_tables.h
"""
import ctypes, sys

SOURCE = '''

def spread(a,
           b=[1,
              2]):
    with open(
        a
    ) as f, open(b):
        try:
            return [x
                    for x in f
                    if x]
        except (ValueError,
                TypeError) as e:
            raise KeyError from e
        finally:
            f.close()''' + "\n" * 300 + '''
    match a:
        case {"k": [1, *rest]} if rest:
            return (a +
                    b(
                        rest, *a, **b
                    ))
        case _: pass
    return lambda: (yield
                    a)
async def far(a):
    async with a as b:
        async for c in b: await c''' + "\n" * 70000 + '''
    del b; return b''' + "; b = 1" * 60 + '''
class Empty: pass
def one(): pass
'''


def codes(code):
    yield code
    for const in code.co_consts:
        if hasattr(const, "co_code"):
            yield from codes(const)


def runs(code):
    """Returns [count, line] for each group of code units: `count` units in a row have this line. Line 0 means none."""
    lines = [position[0] or 0 for position in code.co_positions()]
    out = []
    for line in lines:
        if out and out[-1][1] == line:
            out[-1][0] += 1
        else:
            out.append([1, line])
    return out


def c_bytes(data):
    return ", ".join(str(b) for b in data)


version = "%d%d" % sys.version_info[:2]
names = []
for number, code in enumerate(codes(compile(SOURCE, "spread.py", "exec"))):
    name = f"{version}_{number}"
    names.append((name, code))
    print(f"static const uint8_t lines_{name}[] = {{{c_bytes(code.co_linetable)}}};")
    print(f"static const uint32_t runs_{name}[] = {{{', '.join(f'{n}, {line}' for n, line in runs(code))}}};")
print(f"static const struct recorded recorded_{version}[] = {{")
for name, code in names:
    print(f"    {{\"{version} {code.co_name}\", {code.co_firstlineno}, lines_{name}, sizeof lines_{name}, "
          f"runs_{name}, sizeof runs_{name} / sizeof *runs_{name}}},")
print("};")
if sys.version_info >= (3, 13):
    words = (ctypes.c_uint64 * 81).in_dll(ctypes.pythonapi, "_PyRuntime")
    print(f"static const uint64_t offsets_{version}[81] = {{{', '.join(hex(w) for w in words)}}};")
