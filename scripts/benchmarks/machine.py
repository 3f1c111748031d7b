"""Describes the machine and the programs at the head of a report."""

import os
import platform
import re
import subprocess


def processors():
    """Returns the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = re.findall(r"^model name\s*: (.*)$", file.read(), re.M)
    return names[0] if names else platform.machine()


def cpu_flags():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"^flags\s*: (.*)$", file.read(), re.M)
    return set(found.group(1).split()) if found else set()


def vector_instructions():
    """Returns the instruction sets that the processor has, by heed's names. Whether heed uses one, heed itself
    reports."""
    flags = cpu_flags()
    levels = [("AMX", "amx_bf16"), ("AVX-512 BF16", "avx512_bf16"), ("AVX-512 VNNI", "avx512_vnni"), ("AVX-512", "avx512f"), ("AVX2", "avx2")]
    return ", ".join(name for name, flag in levels if flag in flags) or "the baseline"


def head(tools, peers):
    """Returns lines of Markdown: the processor, its load, the versions of heed and of the peers, and why peers are
    missing."""
    version = subprocess.run([os.path.join(tools, "translate"), "--version"], capture_output=True, text=True, check=True).stdout.split()
    with open("/proc/meminfo", encoding="utf-8") as file:
        memory = int(re.search(r"MemTotal:\s*(\d+)", file.read()).group(1)) / 1e6
    lines = [
        f"machine: {cpu_name()}, {processors()} processors, {memory:.0f} GB, load {os.getloadavg()[0]:.2f} at the start",
        f"instructions: the processor has {vector_instructions()}; HEED_ISA {os.environ.get('HEED_ISA', 'not set')}",
        f"heed: {version[-1]}; Python {platform.python_version()}, Linux {platform.release()}",
    ]
    if peers.versions:
        lines.append("peers: " + ", ".join(f"{name} {version}" for name, version in peers.versions.items()))
    lines += [f"left out: {module} ({why})" for module, why in peers.missing.items()]
    return "".join(f"- {line}\n" for line in lines)
