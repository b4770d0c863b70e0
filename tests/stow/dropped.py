"""Pages of mapped files are dropped, from the page cache, too, and never copied. Pages of a private mapping that were
written to stay."""
import _moving

folder = _moving.real_disk()
status, output = _moving.execute([_moving.program("dropped"), folder / "model"], folder)
assert status == 0, f"exit status {status}\n{output}"
(folder / "model").unlink()
folder.rmdir()
