"""The Python environment in which the peers are installed."""

import json
import os
import subprocess
import sys

# Name of a module: the arguments with which pip installs it. pip's normal index has no build of torch for the processor
# only.
PACKAGES = {
    "sacrebleu": ["sacrebleu==2.6.0"],
    "subword_nmt": ["subword-nmt==0.3.8"],
    "sacremoses": ["sacremoses==0.2.0"],
    "sentencepiece": ["sentencepiece==0.2.3"],
    "tokenizers": ["tokenizers==0.23.3"],
    "ctranslate2": ["ctranslate2==4.8.5"],
    "h5py": ["h5py==3.16.0"],
    "youtokentome": ["--no-build-isolation", "youtokentome==1.0.6"],
    "torch": ["torch==2.15.0"],
    "torchvision": ["torchvision==0.29.2"],
}
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
DISTRIBUTION = {"subword_nmt": "subword-nmt"}


class Peers:
    """A Python in which peers are installed: `python` runs them, `versions` lists them, `missing` says why others
    are not there."""

    def __init__(self, python, wanted):
        self.python, self.versions, self.missing = python, {}, {}
        if python is None:
            return
        modules = [module for module in PACKAGES if module in wanted]
        names = [DISTRIBUTION.get(module, module) for module in modules]
        program = (
            "import importlib.metadata as m, json, sys\n"
            "def v(n):\n try: return m.version(n)\n except m.PackageNotFoundError: return None\n"
            "print(json.dumps([v(n) for n in sys.argv[1:]]))"
        )
        found = json.loads(subprocess.run([python, "-c", program, *names], check=True, capture_output=True).stdout)
        self.versions = {module: version for module, version in zip(modules, found) if version}
        self.missing = {module: f"not installed for {python}" for module in modules if module not in self.versions}

    def has(self, module):
        return module in self.versions


def existing(folder, wanted):
    """Returns the wanted modules that a virtual environment already has."""
    python = os.path.join(folder, "bin", "python")
    if not os.access(python, os.X_OK):
        raise FileNotFoundError(f"{folder}: no bin/python in it (name a virtual environment, or leave --venv out and one is made)")
    return Peers(python, wanted)


def fetched(folder, wanted, say):
    """Returns the peers of the virtual environment in `folder`, which is created if necessary. Installs each missing
    module of `wanted` separately, so that a module that cannot be installed does not prevent the others."""
    python = os.path.join(folder, "bin", "python")
    if not os.access(python, os.X_OK):
        say(f"making the virtual environment {folder}")
        made = subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, text=True)
        if made.returncode != 0:
            peers = Peers(None, wanted)
            peers.missing = dict.fromkeys(sorted(wanted), "python3 -m venv fails (Debian: apt-get install python3-venv)")
            return peers
    peers, reasons = Peers(python, wanted), {}
    for module in [m for m in PACKAGES if m in peers.missing]:
        say(f"fetching {PACKAGES[module][-1]}")
        reasons[module] = install(python, module)
    peers = Peers(python, wanted)
    peers.missing.update({module: why for module, why in reasons.items() if module in peers.missing})
    return peers


def install(python, module):
    """Installs one peer. Returns the reason when the installation fails."""
    tries = [PACKAGES[module]]
    if module in ("torch", "torchvision"):
        tries.insert(0, ["--index-url", TORCH_INDEX, *PACKAGES[module]])
    if module == "youtokentome":  # youtokentome is built from source with the build tools of the environment
        subprocess.run([python, "-m", "pip", "install", "-q", "Cython", "setuptools", "wheel"], capture_output=True)
    for arguments in tries:
        pip = subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments], capture_output=True, text=True)
        if pip.returncode == 0:
            return ""
    said = [line for line in pip.stderr.splitlines() if line.lower().startswith("error")] or ["pip fails"]
    return said[-1][:160]
