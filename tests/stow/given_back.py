# needs: root
# timeout: 200
# alone
"""Stowed memory is given back. The control group's memory and RSS fall by at least 95 % of the stowed bytes, chunk by
chunk during the move and not only at the end. The first move writes all of the memory. The second move writes nothing,
because the program has only read the memory since the first."""
import _moving, support

group = support.MemoryGroup.make() or support.skip("cannot make a control group with the memory controller")
folder = _moving.real_disk()
status, output = _moving.execute([_moving.program("given_back"), group.file], folder, preexec_fn=group.join)
assert status == 0, f"exit status {status}\n{output}"
moves = [[int(word) for word in line.split()] for line in output.split("\n")[:2]]
assert all(charged >= 486 and resident >= 486 for charged, resident, _ in moves), output
assert moves[0][2] >= 512 and moves[1][2] == 0, output
beside, samples = (int(word) for word in output.split("\n")[2].split())
assert samples > 0 and beside <= 2 * 64, output # a chunk in the page cache, and one that was copied
print(output)
folder.rmdir()
