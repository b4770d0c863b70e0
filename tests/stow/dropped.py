"""Pages of mapped files are dropped, also from the page cache, and never copied. In a private mapping, the pages that
were written to are kept."""
import _moving

folder = _moving.real_disk()
status, output = _moving.execute([_moving.program("dropped"), folder / "model"], folder)
assert status == 0, f"exit status {status}\n{output}"
(folder / "model").unlink()
folder.rmdir()
