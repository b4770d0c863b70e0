"""If /proc is missing, or has the processes of another PID namespace, watch does not say that everything is gone, and
ends no process."""
import os, pathlib, subprocess

import support

pathlib.Path("stays.scenario").write_text("""program: sh -c "trap '' TERM; sleep 8"
ready: wait 500ms
close: signal TERM
observe: 1s
""")

for options, before in (("-m", "umount -l /proc && "), ("-pf", "")):
    if subprocess.run(["unshare", *options.split(), "true"], capture_output=True).returncode:
        print("namespaces cannot be made here")
        raise SystemExit(77)
    for strict, status in (("--strict", 1), ("--end", 0)):
        command = f"{before} $MEMSTOW watch --quiet --stacks=none --grace=1s {strict} -- sh -c 'sleep 8 & sleep 0.1'"
        done = subprocess.run(["unshare", options, "sh", "-c", command], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "MEMSTOW": support.MEMSTOW, "MEMSTOW_LIBRARY": str(support.LIBRARY)})
        if "LeakSanitizer has encountered a fatal error" in done.stderr:  # it needs /proc, even for its options
            status = done.returncode
        assert done.returncode == status, (options, strict, done)
        assert "something is left, but /proc cannot be read" in done.stderr, (options, strict, done)
    command = f"{before} $MEMSTOW lifecycle --test=T1 --repeat=1 --stacks=none stays.scenario"
    done = subprocess.run(["unshare", options, "sh", "-c", command], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "MEMSTOW": support.MEMSTOW, "MEMSTOW_LIBRARY": str(support.LIBRARY)})
    if "LeakSanitizer has encountered a fatal error" not in done.stderr:
        assert (done.returncode == 1 and "1 process left after" in done.stdout
                and "it is not known what it is" in done.stdout), done
