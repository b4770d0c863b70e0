"""Mappings of files are dropped, with the page cache, and never copied; what was written to a private one stays."""
import _moving

folder = _moving.real_disk()
status, output = _moving.execute([_moving.program("dropped"), folder / "model"], folder)
assert status == 0, f"exit status {status}\n{output}"
(folder / "model").unlink()
folder.rmdir()
