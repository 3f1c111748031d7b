"""Describes the machine and the programs at the head of a report."""

import os
import platform
import re
import shutil
import subprocess


def processors():
    """Returns the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def cpu_fields():
    """Returns what Linux says about a processor, by the names of /proc/cpuinfo."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return dict(re.findall(r"^(\S.*?)\s*: (.*)$", file.read(), re.M))


def cpu_name(fields):
    """Returns the name of a processor without trademark signs. Some virtual machines report a name without a number;
    family and model then follow the name. ARM's processors report numbers in place of a name."""
    if "model name" not in fields and "CPU part" in fields:
        return f"{platform.machine()} (implementer {fields.get('CPU implementer', '-')}, part {fields['CPU part']})"
    name = " ".join(re.sub(r"\((R|TM)\)", "", fields.get("model name", platform.machine()), flags=re.I).split())
    if re.search(r"\d", name) or "cpu family" not in fields:
        return name
    return f"{name} (family {fields['cpu family']}, model {fields['model']})"


def vector_instructions():
    """Returns the instruction sets that the processor has, by heed's names. Whether heed uses one, heed itself
    reports."""
    flags = cpu_fields().get("flags", "").split()
    levels = [("AMX", "amx_bf16"), ("AVX-512 BF16", "avx512_bf16"), ("AVX-512 VNNI", "avx512_vnni"), ("AVX-512", "avx512f"), ("AVX2", "avx2")]
    return ", ".join(name for name, flag in levels if flag in flags) or "the baseline"


def heed_version(tools):
    return subprocess.run([os.path.join(tools, "translate"), "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]


def commit(source, tools):
    """Returns the abbreviated commit of the source tree, with "-dirty" when measured files differ from the commit.
    Returns "" when the programs lie outside of the source tree, or when git does not know the tree."""
    inside = os.path.commonpath([source, tools]) == source
    if not inside or not shutil.which("git") or not os.path.exists(os.path.join(source, ".git")):
        return ""
    git = ["git", "-C", source]
    name = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    if name.returncode != 0:
        return ""
    measured = ["CMakeLists.txt", "CMakePresets.json", "lib", "tools", "scripts", "tests/bench/gemm_bench.cpp"]
    changed = subprocess.run([*git, "status", "--porcelain", "--", *measured], capture_output=True, text=True).stdout
    return name.stdout.strip() + ("-dirty" if changed else "")


def head(tools, peers):
    """Returns lines of Markdown: the processor, its load, the versions of heed and of the peers, and why peers are
    missing."""
    with open("/proc/meminfo", encoding="utf-8") as file:
        memory = int(re.search(r"MemTotal:\s*(\d+)", file.read()).group(1)) / 1e6
    lines = [
        f"machine: {cpu_name(cpu_fields())}, {processors()} processors, {memory:.0f} GB, load {os.getloadavg()[0]:.2f} at the start",
        f"instructions: the processor has {vector_instructions()}; HEED_ISA {os.environ.get('HEED_ISA', 'not set')}",
        f"heed: {heed_version(tools)}; Python {platform.python_version()}, Linux {platform.release()}",
    ]
    if peers.versions:
        lines.append("peers: " + ", ".join(f"{name} {version}" for name, version in peers.versions.items()))
    lines += [f"left out: {module} ({why})" for module, why in peers.missing.items()]
    return "".join(f"- {line}\n" for line in lines)
