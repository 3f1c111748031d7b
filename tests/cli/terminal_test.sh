#!/usr/bin/env bash
# Tests the programs on a terminal. Status lines fit any width, also when the width changes, and leave nothing behind.
# The first Ctrl-C of a training is acknowledged.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1

head -n 200 "$HEED_SOURCE/data/train.en" >en
head -n 200 "$HEED_SOURCE/data/train.fr" >fr
"$HEED_BIN/build-vocab" -q --type bpe --merges 100 --language en,fr en fr >vocab || fail "build-vocab failed"
tiny=(--task transformer-tiny --enc-depth 1 --dec-depth 1 --dim-emb 32 --transformer-heads 2 --transformer-dim-ffn 64)
# The translations of an untrained model are long, so that translating takes a while.
"$HEED_BIN/train" -q -j 1 -t en fr -v vocab -m m.h5 "${tiny[@]}" --after 1u --learn-rate 1e-6 || fail "train failed"

command -v python3 >/dev/null || { echo "no python3: no pseudo terminals"; finish; }
cat >terminal.py <<'PYTHON'
import fcntl, os, pty, random, re, signal, struct, sys, termios, time

failures = 0


def fail(what):
    global failures
    failures += 1
    print("FAILED: " + what, file=sys.stderr)


STEP = 3  # number of status lines in each width


def run(command, widths, interrupt=0, out=None):
    """Runs a command on a terminal whose width changes after every STEP status lines. Sends Ctrl-C after `interrupt`
    status lines (0: never). Returns [(status line, greatest width that the line may have)], the whole output, and the
    exit status."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a background job would ignore SIGINT
        time.sleep(0.2)  # the parent sets the terminal's width first
        if out:
            os.dup2(os.open(out, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), 1)
        os.execvp(command[0], command)
    whole, shown, at = b"", [], 0
    current, before, changed = None, None, 0  # widths; number of status lines before the last change
    while True:
        if current is None or (at + 1 < len(widths) and len(shown) >= changed + STEP):
            at = 0 if current is None else at + 1
            before, current, changed = current or 0, widths[at], len(shown)
            fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, current, 0, 0))
        try:
            got = os.read(fd, 1 << 16)
        except OSError:
            break
        if not got:
            break
        whole += got
        for line in re.findall(rb"\r\x1b\[J([^\r\n\x1b]+)\r(?!\n)", whole)[len(shown):]:
            late = len(shown) <= changed + 1  # the program may have drawn this line before the change
            shown.append((line.decode(), (max(before, current) if late else current) - 1))
        if interrupt and len(shown) >= interrupt:
            os.write(fd, b"\x03")
            interrupt = 0
    return shown, whole, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def check(name, command, widths, must_show, interrupted=None, out=None):
    """Checks the status lines of a command. With `interrupted`, sends Ctrl-C after all widths and expects this exit
    status."""
    interrupt = 0 if interrupted is None else STEP * len(widths) + 1
    shown, whole, code = run(command, widths, interrupt, out)
    if code != (interrupted or 0):
        fail("%s: exit %d: %r" % (name, code, whole[-500:]))
    if len(shown) < (interrupt or 2):
        fail("%s: %d status lines" % (name, len(shown)))
    for line, width in shown:
        if len(line) > width:
            fail("%s: %d columns, and %d are free: %s" % (name, len(line), width, line))
    for text in must_show:
        if not any(text in line for line, _ in shown):
            fail("%s: no status line says '%s': %s" % (name, text, shown[:3]))
    return whole, shown


bin = os.environ["HEED_BIN"]
with open("many", "w") as many, open("endless", "w") as endless, open("en") as en:
    lines = en.readlines()
    many.writelines(lines * 19)  # 3,800 lines: fewer than the greatest look-ahead, --maxi-batch
    endless.writelines(lines * 1000)
translate = [bin + "/translate", "-j", "1", "-m", "m.h5", "-i"]
for width in (80, 40, 20):
    whole, shown = check("translate, %d columns" % width, translate + ["many"], [width], ["%", " left"], out="out")
    if not whole.endswith(b"\r\x1b[J"):
        fail("translate leaves its last status line: %r" % whole[-100:])
    shares = [int(re.search(r"(\d+)%", line).group(1)) for line, _ in shown]
    if shares != sorted(shares) or shares[0] == shares[-1]:
        fail("translate: the share does not rise: %s" % shares)
# Ctrl-C removes the status line.
whole, _ = check("translate, changing", translate + ["endless"], [80, 20, 40], ["translating [", " left"], -2, "none")
if not whole.endswith(b"\r\x1b[J"):
    fail("translate leaves its status line when interrupted: %r" % whole[-100:])

# With translations on the same terminal, only the translations stay.
whole, _ = check("translate, all on the terminal", translate + ["many"], [80], ["%"])
rest = re.sub(rb"\r\x1b\[J[^\r\n\x1b]*\r(?=\r\x1b\[J)", b"", whole).replace(b"\r\x1b[J", b"").replace(b"\r\n", b"\n")
with open("out", "rb") as out:
    if rest != out.read():
        fail("translate: status and translations are mixed: %r" % rest[:300])

_, whole, code = run(translate + ["many", "--quiet"], [80], out="out")
if whole or code != 0:
    fail("translate --quiet: exit %d: %r" % (code, whole))

# The other programs that read a file show how much of it is left, too.
inspect = [bin + "/inspect-attention", "-m", "m.h5", "--stats", "-i", "endless"]
check("inspect-attention", inspect, [80], ["inspecting [", "%", " left"], -2, "out")
regression = [bin + "/kernel-regression", "--make", "--points", "2000", "--steps", "300000"]
check("kernel-regression", regression, [80], ["predicting [", "%", " left"], -2, "out")
with open("numbers", "w") as numbers:
    numbers.write("1.5\n" * 300000)
check("kernel-regression --queries", regression[:4] + ["--queries", "numbers"], [80], ["predicting [", "%", " left"], -2, "out")
# bleu first reads the files, and then draws random trials.
random.seed(1)
with open("reference", "w") as reference, open("hypothesis", "w") as hypothesis:
    for i in range(40000):
        words = [str(random.randrange(5000)) for _ in range(30)]
        reference.write(" ".join(words) + "\n")
        hypothesis.write(" ".join(words[20:] + words[5:18] + words[:7]) + "\n")
os.link("reference", "other")
bleu = [bin + "/bleu", "reference", "-j", "1", "-i", "hypothesis"]
check("bleu", bleu + ["-m", "ter"], [80], ["scoring [", "%", " left"], -2, "out")
check("bleu -ci", bleu + ["-ci", "-cin", "100000"], [80], ["resampling [", "%", " left"], -2, "out")
check("bleu --paired-ar", bleu + ["other", "--paired-ar"], [80], ["resampling [", "%", " left"], -2, "out")

train = [bin + "/train", "-j", "1", "-t", "en", "fr", "-v", "vocab", "--task", "transformer-tiny", "--mini-batch", "10"]
train += ["--after", "100000e", "--disp-freq", "100000e"]
said = b"\r\x1b[Jtrain: interrupted: stopping as soon as the model is saved; Ctrl-C again stops without saving\r\n"
for widths in ([80], [40], [20], [80, 20, 40]):
    model = "t%s.h5" % "-".join(map(str, widths))
    whole, _ = check("train, %s columns" % widths, train + ["-m", model], widths, ["%"], 75)
    if whole.count(said) != 1 or not re.search(rb"train: interrupted; saved after update", whole[whole.index(said):]):
        fail("train, Ctrl-C: %r" % whole[-500:])

sys.exit(1 if failures else 0)
PYTHON
python3 terminal.py || fail "on a pseudo terminal"

finish
