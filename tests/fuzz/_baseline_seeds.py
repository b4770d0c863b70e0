"""Seeds for the baseline: a complete file, and parts of a file."""
import pathlib

lines = ["memstow-baseline 1", "# comment", "measure live", "runs 5", "floor 1024", "total 71200..73010 405..411",
         'owner 65536 1 model "UN\\xc9T \\"2\\"" "wan.safetensors"', 'owner 0..1 0 node "KSampler" ""',
         'site 4096 2 at "make@libx.so" "main@prog" of "model:UNET" "node:KSampler"',
         'site 18446744073709551615 18446744073709551615 at "?@?"']
origins = ["memstow-baseline 3", *lines[1:6], "cuda-total 1 1",
           'site 4096 2 at "make@libx.so" of "model:UNET" from "wan.safetensors" "node:KSampler"']
other_kind = [*origins[:-1], 'site 4096 2 at "f@m" of "other:a" from "b"']
for name, part in (("whole", lines), ("origins", origins), ("other_kind", other_kind),
                   ("peak", ["memstow-baseline 1", "measure peak", "total 0 0"]), ("twice", lines + lines[-1:]),
                   ("merge", lines[:3] + ["<<<<<<< HEAD"]), ("later", ["memstow-baseline 2"]), ("no_total", lines[:5])):
    pathlib.Path(name).write_text("\n".join(part) + "\n")
