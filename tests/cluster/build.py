"""``python -m tests.cluster.build``: kube-apiserver, kube-scheduler, etcd, helm and an oracle of kube-scheduler's
preemption (``modules/kubernetes/oracle``), out of the Go module proxy.

Into a cache outside of the checkout, keyed by what is built, which ``modules/`` pins with the hash of every module.
All of Kubernetes is of one version. Helm has the modules that its release was made with.
Without Go nothing is built, and the tests that need the programs are skipped. It takes minutes once.
"""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

MODULES = Path(__file__).with_name("modules")
PROGRAMS = {
    "kube-apiserver": ("kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kube-scheduler": ("kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    "etcd": ("etcd", "go.etcd.io/etcd/server/v3"),
}
HELM = "helm.sh/helm/v4/cmd/helm"
ORACLE = "./oracle"
_FLAGS = "-s -w -X k8s.io/component-base/version.gitVersion={version}"
_OLDEST = (1, 26)


def say(line: str) -> None:
    """To whoever waits, while they wait."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def folder() -> Path:
    """Where the programs are, or will be: by what they are made of and for which machine."""
    digest = hashlib.sha256(f"{platform.system()}-{platform.machine()}".encode())
    for name in ("kubernetes", "etcd"):
        for file in ("go.mod", "go.sum"):
            digest.update((MODULES / name / file).read_bytes())
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "arbiter" / "kubernetes" / digest.hexdigest()[:16]


def helm() -> Path:
    """Where helm is, or will be."""
    return _cached("helm", *((MODULES / "helm" / file) for file in ("go.mod", "go.sum")))


def oracle() -> Path:
    """Where the oracle is, or will be: by its own source too."""
    module = MODULES / "kubernetes"
    return _cached("oracle", module / "go.mod", module / "go.sum", *sorted((module / ORACLE).glob("*.go")))


def _cached(program: str, *made_of: Path) -> Path:
    digest = hashlib.sha256(f"{platform.system()}-{platform.machine()}".encode())
    for file in made_of:
        digest.update(file.read_bytes())
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "arbiter" / program / digest.hexdigest()[:16] / program


def missing() -> str | None:
    """Why there are no programs to test with; None where there are."""
    if all((folder() / program).exists() for program in PROGRAMS):
        return None
    if shutil.which("go") is None:
        return "kube-apiserver and etcd are built with Go, which is not installed"
    return "kube-apiserver and etcd are not built yet: make cluster"


def missing_helm() -> str | None:
    """The same for helm."""
    return _missing("helm", helm())


def missing_oracle() -> str | None:
    """The same for the oracle."""
    return _missing("the oracle of kube-scheduler", oracle())


def _missing(name: str, program: Path) -> str | None:
    if program.exists():
        return None
    if shutil.which("go") is None:
        return f"{name} is built with Go, which is not installed"
    return f"{name} is not built yet: make cluster"


def build() -> None:
    """Build what the cache lacks; who comes second waits for who came first. Raises CalledProcessError."""
    to = folder()
    to.mkdir(parents=True, exist_ok=True)
    with (to / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for program, (module, package) in PROGRAMS.items():
            if not (to / program).exists():
                say(f"building {program}, which takes minutes, once")
                _build(to / program, MODULES / module, package)
        for program, module, package in ((oracle(), "kubernetes", ORACLE), (helm(), "helm", HELM)):
            program.parent.mkdir(parents=True, exist_ok=True)
            if not program.exists():
                say(f"building {program.name}, which takes minutes, once")
                _build(program, MODULES / module, package)


def _build(to: Path, module: Path, package: str) -> None:
    flags = _FLAGS.format(version=_version(module))
    part = to.with_suffix(".part")
    env = {**os.environ, "GOFLAGS": "", "CGO_ENABLED": "0", "GOGC": "400"}
    # A third of the time goes into what nobody here needs: what the linker strips again, and looking for garbage.
    command = [
        "go",
        "build",
        "-mod=readonly",
        "-trimpath",
        "-buildvcs=false",
        "-gcflags=all=-dwarf=false",
        "-ldflags",
        flags,
        "-o",
        str(part),
        package,
    ]
    subprocess.run([*_nice(), *command], cwd=module, env=env, check=True)
    part.rename(to)


def _version(module: Path) -> str:
    lines = (module / "go.mod").read_text().splitlines()
    return next((line.split()[-1] for line in lines if line.startswith("require k8s.io/kubernetes ")), "")


def _nice() -> list[str]:
    return ["nice", "-n", "19"] if shutil.which("nice") else []


def main() -> int:
    """Build, unless there is no Go or an old one; 1 where that fails, as without a network."""
    if (why := missing() or missing_helm() or missing_oracle()) is None:
        return 0
    if shutil.which("go") is None:
        say(why)
        return 0
    found = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout.strip()
    if tuple(int(part) for part in found.removeprefix("go").split(".")[:2]) < _OLDEST:
        say(f"Kubernetes and Helm need Go {'.'.join(map(str, _OLDEST))} or newer, here is {found}")
        return 0
    try:
        build()
    except subprocess.CalledProcessError as error:
        say(f"Kubernetes or Helm could not be built ({error}): the tests that need them are skipped")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
