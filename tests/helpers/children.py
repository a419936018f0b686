"""Processes that tests start: signals reach them, events are waited for, none is left over."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import psutil

#: Environment variable by which the processes of one run are found, orphans included.
MARK = "DLSIM_TEST_RUN"


def spawn(command, **options):
    """Start a process that an interrupt or hang-up ends, though this one may ignore them.

    A shell starts what runs in its background with SIGINT ignored, nohup with SIGHUP, and that
    is inherited; a handler is not, so that the child begins with the default.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    hang_up = signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        return subprocess.Popen(command, **options)
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGHUP, hang_up)


#: Imports once, then does what is asked under each name, in a process of its own.
_FORKS = """
import os, sys, traceback

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

code, *names = sys.argv[1:]
exec(code)
children = {}
for name in names:
    if not (pid := os.fork()):
        ended = 1
        try:
            ended = do(name) or 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(ended)
    children[pid] = name
    say(name, "is", pid)
for _ in names:
    pid, status = os.wait()
    say(children[pid], "ended", os.waitstatus_to_exitcode(status))
"""


@contextmanager
def forked(code, names, **options):
    """Start a process per name, each of which does ``do(name)`` of the code; kill what is left.

    What can be read are lines: of each name, its process ("is"), what it says, how it "ended".
    """
    command = [sys.executable, "-W", "ignore", "-c", _FORKS, code, *names]
    options |= {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with spawn(command, start_new_session=True, **options) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def until(event, process=None, within=300.0):
    """Wait for an event, and return it: what the function returns once that is true.

    A process that ends first ends the wait; `within` is for what hangs, not for what is slow.
    What takes long to look at is looked at less often: the process needs the machine more.
    """
    deadline = time.monotonic() + within
    while True:
        begun = time.process_time()
        if found := event():
            return found
        took = time.process_time() - begun
        if process is not None and process.poll() is not None:
            return event()
        assert time.monotonic() < deadline, f"nothing happened within {within:g} s"
        time.sleep(max(0.01, 4 * took))


def alive(value, name=MARK):
    """Return the processes that were started with this environment."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(name) == value and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def none_left(value):
    """Wait until none of the processes is left; return (and kill) those that stay."""
    deadline = time.monotonic() + 10
    while (left := alive(value)) and time.monotonic() < deadline:
        time.sleep(0.1)
    told = [f"{process.pid}: {' '.join(words_of(process))}" for process in left]
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    return told


def words_of(process):
    """Return the command line of a process that may be gone."""
    with suppress(psutil.Error):
        return process.cmdline()
    return ["gone"]


def marked(value, **more):
    """Return this process's environment with a mark by which `alive` finds children."""
    return os.environ | {MARK: value} | more
