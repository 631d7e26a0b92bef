"""The programs that are measured: which are there, how they are built and started. Nothing is installed but by install()."""

import contextlib
import ctypes.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CPUS = len(os.sched_getaffinity(0))
# -march=native: what is measured is the machine at its best. The library itself is built as users build it.
FLAGS = ["-O3", "-march=native", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-pthread", f"-I{HERE}"]
WHEELS = ["impi-devel", "oneccl-cpu-devel", "intel-cmplr-lib-rt", "matplotlib"]
HWLOC = "libhwloc.so.15"  # as the archive of oneCCL wants it
ANSWER_WITHIN_S = 180


class Failed(Exception):
    """A program that ended, or said nothing for too long."""


class Library:
    """A program of one rank per process, unless a subclass says otherwise."""

    is_mpi = True
    is_peer = True
    launcher = compiler = None

    def __init__(self, work):
        self.work = work
        self.venv = work / "venv"
        self.binary = work / self.name

    def missing(self):
        """Why it can't be measured here, or None."""
        lacking = [tool for tool in (self.compiler, self.launcher) if shutil.which(tool) is None]
        return f"no {' and no '.join(lacking)} ({self.package})" if lacking else None

    def build(self, objects):
        compile_c([self.compiler], HERE / "peer_mpi.c", objects, self.binary)

    def environment(self, world):
        return {}


class OpenMpi(Library):
    name, package = "openmpi", "Debian's openmpi-bin and libopenmpi-dev"
    compiler, launcher = "mpicc.openmpi", "mpirun.openmpi"

    def command(self, world):
        # With more ranks than slots it yields while it waits. Its own limit of eager messages, 4 KiB, makes 8 KiB three times slower.
        options = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "btl_vader_eager_limit", "65536"]
        return [self.launcher, *options, "-n", str(world), self.binary]


class Mpich(Library):
    name, package = "mpich", "Debian's mpich and libmpich-dev"
    compiler, launcher = "mpicc.mpich", "mpiexec.mpich"

    def command(self, world):
        return [self.launcher, "-bind-to", "none", "-n", str(world), self.binary]


class IntelMpi(Library):
    name = "impi"

    def missing(self):
        return None if (self.venv / "include/mpi.h").exists() else "not installed (PyPI's impi-devel, see --install)"

    def link_flags(self):
        return [f"-L{self.venv}/lib", "-lmpi", f"-Wl,-rpath,{self.venv}/lib"]

    def build(self, objects):
        compile_c(["gcc", f"-isystem{self.venv}/include"], HERE / "peer_mpi.c", objects, self.binary, self.link_flags())

    def command(self, world):
        return [self.venv / "bin/mpiexec.hydra", "-n", str(world), self.binary]

    def environment(self, world):
        return {"I_MPI_ROOT": str(self.venv), "LD_LIBRARY_PATH": f"{self.venv}/lib", "I_MPI_FABRICS": "shm", "I_MPI_PIN": "0"}


class OneCcl(IntelMpi):
    name, is_mpi = "oneccl", False

    def archive(self):
        # The shared library of the wheel needs one that isn't in it.
        return self.venv / "lib/ccl/cpu/lib/libccl.a"

    def missing(self):
        if not self.archive().exists():
            return "not installed (PyPI's oneccl-cpu-devel, see --install)"
        if not (self.venv / "lib/libintlc.so.5").exists():
            return "no libintlc.so.5 (PyPI's intel-cmplr-lib-rt, see --install)"
        return None if ctypes.util.find_library("hwloc") == HWLOC else f"no {HWLOC} (Debian's libhwloc15)"

    def build(self, objects):
        source = HERE / "peer_oneccl.cpp"
        libraries = [self.archive(), *self.link_flags(), "-l:libintlc.so.5", f"-l:{HWLOC}", "-ldl"]
        execute(["g++", "-std=c++17", *FLAGS, f"-isystem{self.venv}/include", source, *objects, *libraries, "-o", self.binary])

    def environment(self, world):
        # A worker thread beside each rank makes calls slower where a rank has a processor, and faster where ranks share one.
        own = {"CCL_ATL_TRANSPORT": "mpi", "CCL_YIELD": "sched_yield", "CCL_WORKER_OFFLOAD": "0" if world <= CPUS else "1"}
        return super().environment(world) | own | {"CCL_LOG_LEVEL": "error"}


class Ours(Library):
    """One process, one thread per rank."""

    name, is_mpi, is_peer = "vt", False, False

    def missing(self):
        return None

    def build(self, objects):
        folder = self.work / "library"
        options = ["-DVT_BUILD_TESTS=OFF", "-DVT_BUILD_SHARED=OFF", "-DCMAKE_BUILD_TYPE=Release"]
        execute(["cmake", "-S", ROOT / "c", "-B", folder, *options])
        execute(["cmake", "--build", folder, "-j", str(CPUS)])
        archive = next(folder.rglob("libvllm_vt.a"))
        compile_c(["gcc", f"-I{ROOT}/c/include"], HERE / "ours.c", objects, self.binary, [archive, "-lm"])

    def command(self, world):
        return [self.binary, str(world)]


class Limit(Ours):
    name = "limit"

    def build(self, objects):
        compile_c(["gcc"], HERE / "limit.c", objects, self.binary)


PEERS = [OpenMpi, Mpich, IntelMpi, OneCcl]


def execute(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}:\n{done.stdout}")


def compile_c(compiler, source, objects, binary, libraries=()):
    execute([*compiler, "-std=c11", *FLAGS, source, *objects, *libraries, "-o", binary])


def build(work, libraries):
    """Compiles the harness once, and each program with it."""
    work.mkdir(parents=True, exist_ok=True)
    objects = [work / f"{name}.o" for name in ("harness", "inputs")]
    for made in objects:
        execute(["gcc", "-std=c11", *FLAGS, "-c", HERE / f"{made.stem}.c", "-o", made])
    for library in libraries:
        library.build(objects)


def install(work):
    """Makes the virtual environment with the wheels. Debian's packages are left to the user."""
    execute([sys.executable, "-m", "venv", work / "venv"])
    execute([work / "venv/bin/pip", "install", "--quiet", *WHEELS])


class Program:
    """A running program: its ranks sleep until they are asked to measure."""

    def __init__(self, library, world):
        self.library = library
        with contextlib.ExitStack() as undo:
            # In memory: pages of a file on a disk are written back now and then, in the middle of a measurement.
            shared = undo.enter_context(tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="vt-peers-"))
            log = undo.enter_context(open(library.work / f"{library.name}-{world}.log", "w+"))
            environment = os.environ | library.environment(world) | {"PEERS_SHARED": shared.name}
            command = list(map(str, library.command(world)))
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, env=environment, text=True, start_new_session=True)
            undo.callback(self.end)
            self.log = log
            self.about = self.answer()
            self.undo = undo.pop_all()

    def answer(self):
        watchdog = threading.Timer(ANSWER_WITHIN_S, self.process.terminate)
        watchdog.start()
        try:
            # Launchers write lines of their own.
            for line in self.process.stdout:
                if line.startswith("{"):
                    return json.loads(line)
        finally:
            watchdog.cancel()
        self.log.seek(0)
        raise Failed(f"{self.library.name} ended, or was silent for {ANSWER_WITHIN_S} s: {self.log.read().strip()[-2000:]}")

    def measure(self, row, calls, ms):
        try:
            self.process.stdin.write(f"{row.op} {row.dtype} {row.bytes} {calls} {ms}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer says why
        return self.answer()

    def end(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        for signal_number in (None, signal.SIGTERM, signal.SIGKILL):
            if signal_number is not None:
                os.killpg(self.process.pid, signal_number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
                break
        self.process.stdout.close()

    def close(self):
        self.undo.close()
