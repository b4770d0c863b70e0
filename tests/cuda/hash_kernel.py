#!/usr/bin/env python3
# needs: cc
"""The text of memstow's kernel (preload/copies/vram_hash_text.h) computes the hash that the simulated driver computes
in C (tests/simcuda/hash.h). No GPU executes the text. A test double interprets it: it knows the few instructions of the
text, and executes one thread after the other up to each barrier. The test real/ptxas shows that NVIDIA's assembler
accepts the text."""
import re, struct, subprocess

import support

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include "preload/copies/vram_hash_text.h"
#include "tests/simcuda/hash.h"
int main(int argc, char **argv) {
    if (argc < 2) return fputs(VRAM_HASH_TEXT, stdout) < 0;
    static unsigned char content[1 << 20];
    size_t bytes = fread(content, 1, sizeof content, stdin);
    struct hash_sums sums = {0, 0};
    hash_add(&sums, content, bytes, 0, strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
    printf("%llu %llu\n", (unsigned long long)sums.x, (unsigned long long)sums.y);
    return 0;
}
"""
M64 = (1 << 64) - 1
AT, SHEET = 0x7000_0000_0000, 0x10_0000


def load(text):
    """The instructions of the text, and the places of its labels."""
    body = text[text.index("{") + 1:text.rindex("}")]
    code, labels = [], {}
    for part in re.findall(r"\w+:|[^;:\n]+;", body):
        if part.endswith(":"):
            labels[part[:-1]] = len(code)
        elif not part.strip().startswith("."):
            code.append(part.strip().rstrip(";"))
    return code, labels


def operands(words):
    return [word.strip() for word in re.findall(r"\{[^}]*\}|\[[^]]*\]|[^,]+", words)]


class Thread:
    """One thread of a kernel. `memory` reads a 64-bit word of the device's memory, and `stored` has what was
    written."""

    def __init__(self, kernel, memory, shared, stored, special, parameters):
        self.code, self.labels = kernel
        self.memory, self.shared, self.stored = memory, shared, stored
        self.special, self.parameters = special, parameters
        self.registers = {}

    def value(self, word):
        if word in self.special:
            return self.special[word]
        return self.registers[word] if word.startswith("%") else int(word, 0)

    def place(self, word):
        base, _, offset = word.strip("[]").partition("+")
        return base, int(offset or 0)

    def run(self):
        """Yields at each barrier."""
        at = 0
        while at < len(self.code):
            line = self.code[at]
            at += 1
            if line.startswith("@%p "):
                if not self.registers["%p"]:
                    continue
                line = line[4:]
            name, _, rest = line.partition(" ")
            if name == "ret":
                return
            if name == "bar.sync":
                yield
            elif name == "bra":
                at = self.labels[rest]
            else:
                self.execute(name, operands(rest))

    def execute(self, name, words):
        kind = name.split(".")
        if kind[0] == "ld" and kind[1] == "param":
            self.registers[words[0]] = self.parameters[self.place(words[1])[0]]
        elif name == "ld.global.v2.u64":
            base, offset = self.place(words[1])
            for i, register in enumerate(operands(words[0].strip("{}"))):
                self.registers[register] = self.memory(self.registers[base] + offset + 8 * i)
        elif name == "ld.shared.u64":
            self.registers[words[0]] = self.shared[self.place(words[1])]
        elif name == "st.shared.u64":
            self.shared[self.place(words[0])] = self.value(words[1])
        elif name == "red.shared.add.u64":
            place = self.place(words[0])
            self.shared[place] = self.shared[place] + self.value(words[1]) & M64
        elif name == "st.global.u64":
            base, offset = self.place(words[0])
            assert self.registers[base] + offset not in self.stored, "two threads write to one place"
            self.stored[self.registers[base] + offset] = self.value(words[1])
        else:
            self.registers[words[0]] = self.compute(name, [self.value(word) for word in words[1:]])

    @staticmethod
    def compute(name, values):
        a, b = values[0], values[-1]
        wide = M64 if name.endswith("64") else (1 << 32) - 1
        return {"mov": lambda: a, "cvt": lambda: a, "cvta": lambda: a, "xor": lambda: a ^ b, "shr": lambda: a >> b,
                "shl": lambda: a << b & wide, "add": lambda: a + b & wide, "sub": lambda: a - b & wide,
                "mul": lambda: a * b if ".wide." in name else a * b & wide,
                "setp": lambda: a >= b if ".ge." in name else a != b}[name.split(".")[0]]()


def launch(kernel, content, blocks, threads, seeds):
    """Runs the kernel. Each block stores three numbers at SHEET. Returns the sum of each of the three over all blocks,
    as the library does."""
    words, stored = struct.unpack(f"<{len(content) // 8}Q", content), {}

    def memory(address):
        assert address % 8 == 0 and AT <= address < AT + len(content), "outside of the memory"
        return words[(address - AT) // 8]

    parameters = {"at": AT, "units": len(content) // 16, "seed1": seeds[0], "seed2": seeds[1], "sheet": SHEET}
    for block in range(blocks):
        shared = {}
        running = [Thread(kernel, memory, shared, stored, {"%tid.x": i, "%ntid.x": threads, "%ctaid.x": block,
                                                           "%nctaid.x": blocks}, parameters).run()
                   for i in range(threads)]
        while running:
            running = [thread for thread in running if next(thread, "over") != "over"]
    assert {(place - SHEET) % 32 for place in stored} == {0, 8, 16} and len(stored) == 3 * blocks, stored
    assert max(stored) < SHEET + 32 * blocks
    return [sum(value for place, value in stored.items() if (place - SHEET) % 32 == 8 * i) & M64 for i in range(3)]


program = support.compile(PROGRAM, name="hashes", flags=("-D_GNU_SOURCE", f"-I{support.ROOT}"))
text = support.run(program).stdout
kernel = load(text)
assert len(kernel[0]) > 60 and set(kernel[1]) == {"begin", "next", "sum", "over"}, kernel[1]


def reference(content, seeds):
    done = subprocess.run([program, *map(str, seeds)], input=content, capture_output=True, check=True)
    return [int(word) for word in done.stdout.split()]


def noise(bytes_, seed):
    state, out = seed, bytearray()
    while len(out) < bytes_:
        state = (state * 6364136223846793005 + 1442695040888963407) & M64
        out += struct.pack("<Q", state ^ state >> 33)
    return bytes(out[:bytes_])


SEEDS = (0x0123456789abcdef | 1, 0xfedcba9876543210)
for content, blocks, threads, seeds in ((noise(16, 1), 1, 1, SEEDS), (noise(4096, 2), 1, 32, SEEDS),
                                        (noise(4096, 3), 3, 5, SEEDS), (noise(16 * 77, 4), 4, 32, (1, 0)),
                                        (bytes(2048), 2, 16, SEEDS), (b"\xff" * 2048, 2, 16, (M64, M64))):
    *sums, units = launch(kernel, content, blocks, threads, seeds)
    assert units == len(content) // 16, units
    assert sums == reference(content, seeds), (blocks, threads, sums)

# One changed bit, exchanged words, or the same words at other places give another hash.
base, seen = bytearray(noise(512, 9)), set()
variants = [bytes(base)]
for bit in range(0, 4096, 37):
    changed = bytearray(base)
    changed[bit // 8] ^= 1 << bit % 8
    variants.append(bytes(changed))
variants += [bytes(base[8:] + base[:8]), bytes(base[16:] + base[:16]), bytes(base[256:] + base[:256]), bytes(512)]
variants += [bytes(base[8:16] + base[:8] + base[16:])]
for variant in variants:
    seen.add(tuple(reference(variant, SEEDS)))
assert len(seen) == len(variants)
# Half of the bits of both sums change with one bit of the content.
first = reference(variants[0], SEEDS)
for half in range(2):
    flipped = [bin(reference(variant, SEEDS)[half] ^ first[half]).count("1") for variant in variants[1:100]]
    assert 28 < sum(flipped) / len(flipped) < 36, flipped
print(f"{len(kernel[0])} instructions; {len(variants)} contents, as many hashes")
