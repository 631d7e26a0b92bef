#!/usr/bin/env python3
"""usage: scripts/report_runtime.py RECORDS [--readme README.md] [--picture docs/runtime.png]

Puts the records of `cargo bench --bench runtime -- --json RECORDS` into the README's table, between its two markers, and draws them.
Needs matplotlib.
"""

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- runtime table: scripts/report_runtime.py -->\n", "<!-- end of the runtime table -->"

# In the order of the table. What isn't here is in the records only.
ROWS = {
    "empty": "an empty call that isn't inlined",
    "ping_pong": "one cache line, from core to core",
    "wake": "waking a sleeping thread, until it runs",
    "memcpy": "memcpy of 64 bytes",
    "lookup": "look-up of a provider",
    "arena": "arena allocation",
    "pool": "allocation and release in the pool",
    "copy": "copy of 64 bytes, synchronous queue",
    "host_func": "host function, synchronous queue",
    "replay_calls": "the same as a node of a graph of 1000",
    "submit": "asynchronous copy, in bursts of 64, worker awake",
    "submit_one": "a single one, worker awake",
    "submit_asleep": "a single one, worker asleep",
    "round_trip": "a single one and the wait for it, worker awake",
    "record": "event record",
    "query": "event query",
    "wait": "wait for a complete event",
    "after_event": "queue made to wait for a complete event",
    "fork_join": "fork to a second queue and join, with a copy",
    "replay_fork_join": "the same in a graph of 40",
    "eager": "host function, asynchronous queue, 1000 and the wait",
    "replay": "the same as a graph of 1000",
    "pages_calls": "page copy of 16 KiB submitted, 300 calls",
    "pages_batch": "page copy of 16 KiB submitted, a batch of 300",
    "pages_calls_done": "the same calls until they are done",
    "pages_batch_done": "the same batch until it is done",
}
REFERENCES = ("empty", "ping_pong", "wake", "memcpy")
C_COLOUR, RUST_COLOUR, REFERENCE_COLOUR = "#4c78a8", "#e45756", "#8c8c8c"


def ns(side):
    return "" if side is None else f"{side['ns']:.1f}" if side["ns"] < 1000 else f"{side['ns']:.0f}"


def table(report, records):
    lines = ["| an operation | C, ns | Rust, ns |", "|---|---:|---:|"]
    lines += [f"| {text} | {ns(records[name]['c'])} | {ns(records[name]['rust'])} |" for name, text in ROWS.items() if name in records]
    lines += ["", f"Medians of {report['rounds']} rounds on {report['processors']} processors; the load was {report['load']:.1f}.", ""]
    return "\n".join(lines)


def draw(records, picture):
    names = [name for name in ROWS if name in records]
    figure, axes = plt.subplots(figsize=(11, 0.36 * len(names) + 1.1), layout="constrained")
    for row, name in enumerate(names):
        c, rust = records[name]["c"], records[name]["rust"]
        is_reference = name in REFERENCES
        both = rust is not None and not is_reference
        axes.barh(row - 0.19 if both else row, c["ns"], height=0.36, color=REFERENCE_COLOUR if is_reference else C_COLOUR)
        if both:
            axes.barh(row + 0.19, rust["ns"], height=0.36, color=RUST_COLOUR)
        axes.text(c["ns"] * 1.06, row - 0.19 if both else row, ns(c), fontsize=7, va="center")
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), [ROWS[name] for name in names], fontsize=8)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel("time of one operation in ns")
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#e8e8e8", zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in (C_COLOUR, RUST_COLOUR, REFERENCE_COLOUR)]
    figure.legend(handles, ["C", "Rust", "reference"], loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(picture, dpi=110)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("records")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    parser.add_argument("--picture", type=Path, default=ROOT / "docs" / "runtime.png")
    wanted = parser.parse_args()
    report = json.loads(Path(wanted.records).read_text())
    records = {record["name"]: record for record in report["records"]}
    text = wanted.readme.read_text()
    head, rest = text.split(BEGIN)
    wanted.readme.write_text(head + BEGIN + table(report, records) + END + rest.split(END)[1])
    draw(records, wanted.picture)


if __name__ == "__main__":
    main()
