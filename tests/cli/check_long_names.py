#!/usr/bin/env python3
# needs: cc
"""Long function names of C++ are cut in a baseline. Two names with the same beginning stay two call sites."""
import pathlib, re

import support

LONG = "a_name_as_long_as_those_of_templates_" * 5
SOURCE = f"""
#include <stdlib.h>
#include <string.h>
static void *kept[2];
__attribute__((noinline)) void *{LONG}one(size_t n) {{ return memset(malloc(n), 1, n); }}
__attribute__((noinline)) void *{LONG}two(size_t n) {{ return memset(malloc(n), 2, n); }}
int main(int argc, char **argv) {{
    kept[0] = {LONG}one(10000);
    kept[1] = {LONG}two((size_t)atoi(argv[1]));
    return 0;
}}
"""
program = support.compile(SOURCE)
once = ("--baseline=base.txt", "--runs=1", "--warm-up=0")
support.memstow("check", *once, "--update-baseline", "--", program, 20000)
sites = re.findall(r'^site (\d+) 1 at "(\w+~[0-9a-f]{8})@\(program\)" "main@\(program\)"$',
                   pathlib.Path("base.txt").read_text(), re.M)
assert sorted(size for size, _ in sites) == ["10000", "20000"], sites
assert len({name for _, name in sites}) == 2 and all(LONG.startswith(name[:-9]) for _, name in sites), sites
support.memstow("check", *once, "--fail-over=site:0", "--", program, 20000)
grown = support.memstow("check", *once, "--fail-over=site:0", "--", program, 30000, status=1)
assert "+9.8 KiB" in grown.stdout and grown.stdout.count("over the limit of site:0") == 1, grown.stdout
