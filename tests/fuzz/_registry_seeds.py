"""Seeds for the reader of process registries."""
import json, pathlib

whole = {"format": "memstow-processes", "version": 1, "boot_id": "01234567-89ab-cdef-0123-456789abcdef",
         "parent": {"pid": 4711, "start_ticks": 12345, "name": "main"},
         "processes": [{"pid": 4712, "start_ticks": 12346, "name": "worker", "keep": False},
                       {"pid": 4713, "start_ticks": 12347, "name": "server", "number": 7, "keep": True}]}
seeds = {"whole": whole, "none": {**whole, "processes": []}, "version": {**whole, "version": 2},
         "pid": {**whole, "processes": [{"pid": 1, "start_ticks": 1}]}, "text": {**whole, "processes": "x"},
         "empty": {}, "boot": {**whole, "boot_id": "zz"}}
for name, seed in seeds.items():
    pathlib.Path(name).write_text(json.dumps(seed, indent=1))
