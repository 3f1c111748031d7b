"""Programs run one after the other, and what their runs took."""

import ctypes
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from statistics import median


class ProgramError(Exception):
    """A measured program that ended with an error; says which and why."""


class PeerError(ProgramError):
    """The same of another program than heed's: what needs it is left out."""


@dataclass
class Run:
    """One run of a program: its output as text, seconds of the processor (user and system) and of the wall clock, and
    the most memory it had in MB (10^6 bytes)."""

    output: str
    messages: str
    cpu: float
    wall: float
    peak_mb: float


PR_SET_CHILD_SUBREAPER = 36


def start_small(command, **streams):
    """Starts a command as the orphan of a shell; gives its process id. A process has at least the peak memory of the one
    that started it: a shell's is small, this one's is not. The command begins when the shell has ended, or the shell might
    collect what is left of it."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans become children of this process
    wait, go = os.pipe()
    try:
        with tempfile.TemporaryFile() as number:
            script = f'exec 3<&0; {{ read -r _ < /dev/fd/{wait}; exec "$@" <&3 3<&-; }} & echo $! > /dev/fd/{number.fileno()}'
            subprocess.run(["sh", "-c", script, "sh", *command], pass_fds=[wait, number.fileno()], check=True, **streams)
            number.seek(0)
            return int(number.read())
    finally:
        os.close(go)
        os.close(wait)


def run(command, source=None, target=None, environment=None, small=False):
    """Runs a command with the file `source` as its input; its output goes into the file `target`, else into the result.
    With `small` its peak of memory is right even where that is less than this process's own."""
    with (
        open(source or os.devnull, "rb") as standard_input,
        open(target, "wb") if target else tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as messages,
    ):
        command = [str(part) for part in command]
        streams = {"stdin": standard_input, "stdout": output, "stderr": messages, "env": {**os.environ, **(environment or {})}}
        start = time.perf_counter()
        if small:
            number = start_small(command, **streams)
        else:
            process = subprocess.Popen(command, **streams)
            number = process.pid
        try:
            _, status, usage = os.wait4(number, 0)
        except BaseException:
            os.kill(number, signal.SIGKILL)
            raise
        wall = time.perf_counter() - start
        code = os.waitstatus_to_exitcode(status)
        if not small:
            process.returncode = code
        messages.seek(0)
        said = messages.read().decode(errors="replace")
        if code != 0:
            last = (said.strip().splitlines() or ["no message"])[-1]
            raise ProgramError(f"{' '.join(os.path.basename(part) for part in command[:2])} ended with {code}: {last}")
        text = ""
        if not target:
            output.seek(0)
            text = output.read().decode(errors="replace")
        return Run(text, said, usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * 1024 / 1e6)


@dataclass
class Row:
    """A measurement of heed, beside one other program's where there is one."""

    section: str
    what: str
    unit: str
    more_is_better: bool
    heed: list
    peer: str = ""
    theirs: list = field(default_factory=list)
    share: float | None = None  # of the machine's peak in matrix products
    note: str = ""

    def best(self, values):
        return (max if self.more_is_better else min)(values)

    @property
    def ratio(self):
        """How many times better heed's median is than the peer's; None without a peer."""
        if not self.theirs or not self.heed:
            return None
        ours, theirs = median(self.heed), median(self.theirs)
        better, worse = (ours, theirs) if self.more_is_better else (theirs, ours)
        return better / worse if worse else None


def alternate(programs, repeat, enough):
    """Runs the programs {name: function giving a number} in turn, `repeat` times, or once and until enough() says so.

    Gives {name: numbers} and {name: why} of the ones that failed; the first of them (heed) must not.
    """
    values, failed = {name: [] for name in programs}, {}
    for turn in range(repeat):
        if turn > 0 and enough():
            break
        for at, (name, program) in enumerate(programs.items()):
            if name in failed:
                continue
            try:
                values[name].append(program())
            except ProgramError as error:
                if at == 0:
                    raise
                failed[name] = str(error)
    return values, failed
