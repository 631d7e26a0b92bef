"""Records, the table, warnings, and the plot."""

import dataclasses
import json
import re
import statistics
import subprocess
import sys

import libraries

# Median us of all_reduce, f32, 2 ranks, of each peer where it was tuned well, and a cache line's one way on that machine.
TUNED_LINE_US = 0.115
TUNED_SIZES = [8, 1 << 10, 8 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20]
TUNED_US = {
    "openmpi": [0.518, 1.17, 5.72, 15.1, 186, 4518, 36228],
    "impi": [0.819, 1.15, 2.71, 10.6, 178, 6333, 25974],
    "mpich": [0.990, 2.32, 4.54, 23.2, 277, 5622, 36569],
    "oneccl": [9.3, 9.7, 12, 19.7, 221, 7808, 28674],
}
SLOWER_BY = 1.3

BEGIN, END = "<!-- tables: benches/peers/run --docs -->\n", "<!-- end of the tables -->"

# Highest ratio to the best MPI that we accept: (op, dtype, world) -> bytes -> ratio.
WANTED = {
    ("all_reduce", "f32", 2): dict(zip(TUNED_SIZES, [0.80, 0.60, 0.40, 0.35, 0.30, 0.35, 0.35])),
    ("all_reduce", "f32", 4): dict(zip(TUNED_SIZES, [0.80, 0.65, 0.50, 0.40, 0.40, 0.50, 0.50])),
    ("ping_pong", "f32", 2): {8: 0.70, 8 << 10: 0.90, 1 << 20: 1.1},
    ("all_gather", "f32", 2): {8 << 10: 1.1, 16 << 20: 0.6},
    **{(op, "f32", world): dict.fromkeys([8 << 10, 1 << 20, 16 << 20], 1.0) for op in ("reduce_scatter", "broadcast", "all_to_all") for world in (2, 4)},
}


@dataclasses.dataclass
class Record:
    library: str
    version: str
    transport: str
    op: str
    dtype: str
    bytes: int
    world: int
    median_us: float
    p99_us: float
    limit_us: float
    correct: bool
    line_us: float  # a cache line's way in the same rounds
    skip: str
    is_mpi: bool

    @staticmethod
    def of(program, row, line_us, limit_us, answers):
        about, library = program.about, program.library
        version = re.search(r"\d+(\.\d+)+", about["version"])
        rounds = [answer["us"] for answer in answers if "us" in answer]
        return Record(
            library=library.name,
            version=version.group() if version else about["version"],
            transport=about["transport"],
            **dataclasses.asdict(row),
            median_us=statistics.median(map(statistics.median, rounds)) if rounds else None,
            p99_us=percentile_99(us for samples in rounds for us in samples) if rounds else None,
            limit_us=limit_us,
            correct=all(answer.get("correct", False) for answer in answers),
            line_us=line_us,
            skip=answers[0].get("skip"),
            is_mpi=library.is_mpi,
        )

    def public(self):
        fields = {key: value for key, value in dataclasses.asdict(self).items() if key not in ("line_us", "skip", "is_mpi")}
        return {key: round(value, 4) if isinstance(value, float) else value for key, value in fields.items()}


def percentile_99(samples):
    ordered = sorted(samples)
    return ordered[round(0.99 * (len(ordered) - 1))]


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} B"


def us_text(us):
    return f"{us:.3f}" if us < 10 else f"{us:.1f}" if us < 1000 else f"{us:.0f}"


def cell(record):
    return "skipped" if record.skip else us_text(record.median_us) + ("" if record.correct else " WRONG")


def line_of(group):
    """One row of the table: the records of all libraries for the same work, ours first."""
    ours, peers = group[0], group[1:]
    mpis = [record.median_us for record in peers if record.is_mpi and not record.skip]
    wanted = WANTED.get((ours.op, ours.dtype, ours.world), {}).get(ours.bytes)
    known = not ours.skip
    ratio = f"{ours.median_us / min(mpis):.2f}" if known and mpis else "-"
    return [
        size_text(ours.bytes),
        us_text(ours.limit_us),
        cell(ours),
        us_text(ours.p99_us) if known else "-",
        *map(cell, peers),
        ratio,
        f"{wanted:.2f}" if wanted else "",
        f"{ours.median_us / ours.limit_us:.2f}" if known else "-",
    ]


def grouped(records, key):
    groups = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def markdown(header, lines):
    widths = [max(len(line[column]) for line in [header, *lines]) for column in range(len(header))]
    yield "| " + " | ".join(text.rjust(width) for text, width in zip(header, widths)) + " |"
    yield "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|"
    for line in lines:
        yield "| " + " | ".join(text.rjust(width) for text, width in zip(line, widths)) + " |"


def tables(records, rounds):
    """All of a run as markdown."""
    lines = sorted(record.line_us for record in records)
    text = [f"{libraries.CPUS} processors, {rounds} rounds a row, times in us; a cache line's way: {lines[0]:.3f} to {lines[-1]:.3f} us. "]
    text[0] += ", ".join(sorted({f"{record.library} {record.version}" for record in records})) + "."
    for (op, dtype, world), rows in grouped(records, lambda r: (r.op, r.dtype, r.world)).items():
        groups = list(grouped(rows, lambda r: r.bytes).values())
        header = ["bytes", "limit", "vt", "vt p99", *(record.library for record in groups[0][1:]), "to best MPI", "wanted", "to limit"]
        text += ["", f"{op}, {dtype}, {world} ranks", "", *markdown(header, list(map(line_of, groups)))]
    return "\n".join(text) + "\n"


def put_tables(path, text, picture):
    head, rest = path.read_text().split(BEGIN)
    if picture and picture.resolve().parent == path.resolve().parent:
        text += f"\n![Time over the limit, per operation and world]({picture.name})\n"
    path.write_text(head + BEGIN + text + END + rest.split(END)[1])


def skips(records):
    skipped = [record for record in records if record.skip]
    for (library, op, dtype, why), rows in grouped(skipped, lambda r: (r.library, r.op, r.dtype, r.skip)).items():
        yield f"{library} skipped {op} {dtype}, {len(rows)} rows: {why}"


def mistuned(records):
    """A peer is compared by its time over that of a cache line, so that machines can differ. Slower than where it was tuned: look why.
    Past the caches the memory decides, and this says nothing."""
    for record in records:
        tuned = dict(zip(TUNED_SIZES, TUNED_US.get(record.library, []))).get(record.bytes)
        if tuned and (record.op, record.dtype, record.world) == ("all_reduce", "f32", 2) and record.bytes <= 1 << 20:
            times = (record.median_us / record.line_us) / (tuned / TUNED_LINE_US)
            if times > SLOWER_BY:
                yield f"warning: {record.library} takes {times:.1f}x of what it took where it was tuned, at {size_text(record.bytes)}: mis-tuned?"


def plot(records, wanted):
    """By the interpreter that has matplotlib."""
    own = wanted.work / "venv/bin/python"
    python = own if own.exists() else sys.executable
    done = subprocess.run([python, libraries.HERE / "plot.py", wanted.plot], input=json.dumps(records), text=True)
    if done.returncode != 0:
        raise libraries.Failed("the plot needs matplotlib: see --install")
