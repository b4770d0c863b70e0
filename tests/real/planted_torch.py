#!/usr/bin/env python3
# needs: torch
# timeout: 60
"""Tensors that a PyTorch program plants, and the model that it loads, are found at their Python line and at the C++
operator that allocated them, while it runs and afterwards."""
import pathlib, subprocess

import support
from _planted import check_planted, largest, line_of

SCRIPT = pathlib.Path(__file__).with_name("_planted_torch.py")
WEIGHTS, PLANTED = 7_000_003, 30_000_019


def at(function, mark):
    file, line = line_of(SCRIPT, f"# LINE {mark}")
    return f"py {function} {file}:{line}"


def check(sites):
    check_planted(sites, PLANTED, ["c10::alloc_cpu", "at::native::empty_cpu", "at::_ops::empty_memory_format::call",
                                   at("plant", "plant"), "py main *"])
    check_planted(sites, 2 * PLANTED, ["c10::alloc_cpu", "at::_ops::cat::call", at("work", "work"), "py main *"])
    check_planted(sites, 8 * WEIGHTS, ["c10::alloc_cpu", "caffe2::serialize::PyTorchStreamReader::getRecord",
                                       "py load */torch/serialization.py:*", at("load_model", "load"), "py main *"])
    check_planted(sites, 4 * WEIGHTS, ["c10::alloc_cpu", "at::_ops::empty_memory_format::call",
                                       at("Small.__init__", "model"), "py load_model *", "py main *"])


process = support.start(support.MEMSTOW, "run", "--quiet", "-o", "out.mst", "--", support.PYTHON, SCRIPT,
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert process.stdout.readline() == b"planted\n"
running = largest("out.mst")
process.stdin.close()
support.expect_exit(process, seconds=20)
check(running)
check(largest("out.mst"))
