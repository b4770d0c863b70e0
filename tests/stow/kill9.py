# timeout: 300
"""If kill -9 ends a program at a random moment of a move, no file is left in the stow directory."""
import random, subprocess, time

import _moving, support


def main(times):
    program, folder = _moving.program("endless"), _moving.real_disk()
    for turn in range(times):
        process = subprocess.Popen([program], env=_moving.environment(folder), stdout=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        if line != "begun\n":
            process.kill()
            support.skip(line.strip() or "the program ended")
        time.sleep(random.random() * 0.3)
        process.kill()
        assert process.wait() == -9
        assert not list(folder.iterdir()), (turn, list(folder.iterdir()))
    folder.rmdir()


if __name__ == "__main__":
    main(8)
