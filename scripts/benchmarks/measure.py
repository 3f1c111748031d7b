"""Runs programs one after the other and measures the runs."""

import ctypes
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from statistics import median


class ProgramError(Exception):
    """Raised when a measured program ends with an error; the text names the program and the error."""


class PeerError(ProgramError):
    """Raised when another program than heed's ends with an error. The rows that need the program are left out."""


@dataclass
class Run:
    """One run of a program: its output as text, the processor seconds (user and system), the wall-clock seconds, and
    the peak of its memory in MB (10^6 bytes)."""

    output: str
    messages: str
    cpu: float
    wall: float
    peak_mb: float


PR_SET_CHILD_SUBREAPER = 36


def start_small(command, **streams):
    """Starts a command as the orphan of a small shell and returns its process id. The system reports for a process
    at least the peak memory of the process that started it; a shell has little memory, this Python has much. The
    command begins after the shell has ended, because otherwise the shell might wait for the command's end itself."""
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
    """Runs a command with the file `source` as input. The output goes to the file `target`, or else into the result.
    With `small`, the peak memory is right even when it is less than this process's own."""
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
    """A measurement of heed, and of one other program if `peer` is set."""

    section: str
    what: str
    unit: str
    more_is_better: bool
    heed: list
    peer: str = ""
    theirs: list = field(default_factory=list)
    share: float | None = None  # share of the machine's peak of matrix products
    note: str = ""
    quote: tuple = ()  # (model, precision, way) of a measurement that the closing line may quote; see quote.py

    def best(self, values):
        return (max if self.more_is_better else min)(values)

    @property
    def ratio(self):
        """Returns how many times better heed's median is than the peer's, or None without a peer."""
        if not self.theirs or not self.heed:
            return None
        ours, theirs = median(self.heed), median(self.theirs)
        better, worse = (ours, theirs) if self.more_is_better else (theirs, ours)
        return better / worse if worse else None


def alternate(programs, repeat, enough):
    """Runs the programs {name: function that returns a number} in turn, `repeat` times; stops after a round when
    enough().

    Returns {name: numbers} and {name: reason} for the programs that failed. A failure of the first program (heed) is
    an error.
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
