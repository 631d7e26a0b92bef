#!/usr/bin/env python3
"""usage: scripts/plot_timeline.py [--world N] TRACE PICTURE

Draws two steps of examples/tp_digits, the quickest whole batches in a row with all their copies, from the trace file of a run:
VT_TRACE=TRACE cargo run --release --example tp_digits. Needs matplotlib.
"""

import argparse
import json
from bisect import bisect
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Patch

# What the functions of a step do, by their place in the captured graph: see examples/tp_digits/rank.rs.
FUNCTIONS = {1: "hidden layers", 3: "scores", 5: "best class"}
COLOURS = {
    "hidden layers": "#4c78a8",
    "scores": "#72a6d9",
    "best class": "#b4d2ee",
    "all_reduce": "#e45756",
    "all_gather": "#f2a154",
    "copy": "#54a24b",
    "wait": "#d8d8d8",
}
INK = "#222222"


def load(path):
    text = Path(path).read_text()
    return [event for event in json.loads(text if text.rstrip().endswith("]") else text + "]") if event["ph"] == "X"]


def queues_of(events, world):
    """[(label, queue id)]: each rank's main queue, then the queue that waits for it."""
    mains = {e["args"]["rank"]: e["args"]["queue"] for e in events if e["cat"] == "collective" and e["args"]["world"] == world}
    waiting = {e["args"]["waits_for"]: e["args"]["queue"] for e in events if "waits_for" in e["args"]}
    found = []
    for rank, main in sorted(mains.items()):
        found.append((f"rank {rank}, main queue", main))
        if main in waiting:
            found.append((f"rank {rank}, copy queue", waiting[main]))
    return found


def label_of(event):
    if event["cat"] == "host":
        return FUNCTIONS.get(event["args"]["sequence"], "host function")
    return event["name"]


def draw_row(axes, row, events, begin, end):
    """One queue. A launch is a frame around its nodes."""
    for event in events:
        left = max(event["ts"], begin) - begin
        width = min(event["ts"] + event["dur"], end) - begin - left
        if event["cat"] == "graph":
            axes.barh(row, width, left=left, height=0.74, color="none", edgecolor=INK, linewidth=1.0, zorder=3)
            if width > 0.12 * (end - begin):
                axes.text(left, row - 0.4, "graph launch", fontsize=8, color=INK, va="bottom", ha="left")
            continue
        label = label_of(event)
        if label not in COLOURS:
            continue
        axes.barh(row, max(width, 0.0015 * (end - begin)), left=left, height=0.56, color=COLOURS[label], linewidth=0, zorder=2)
        if width > (end - begin) * 0.0095 * len(label):
            colour = "white" if label in ("hidden layers", "all_reduce") else INK
            axes.text(left + width / 2, row, label, fontsize=8, color=colour, va="center", ha="center", zorder=4)


def window_of(events, queues):
    """Two whole batches in a row, the quickest ones during which each queue copied, from a launch to the end of the next one."""
    own = [e for e in events if e["args"]["queue"] == queues[0][1]]
    largest = max(e["args"]["count"] for e in own if e["name"] == "all_reduce")
    whole = [e["ts"] for e in own if e["name"] == "all_reduce" and e["args"]["count"] == largest]
    launches = sorted((e["ts"], e["ts"] + e["dur"]) for e in own if e["cat"] == "graph")
    launches = [span for span in launches if span[0] <= whole[bisect(whole, span[1]) - 1] <= span[1]]
    copies = [sorted(e["ts"] for e in events if e["name"] == "copy" and e["args"]["queue"] == queue) for _, queue in queues]
    pairs = [(first[0], second[1]) for first, second in zip(launches, launches[1:])]
    pairs = [pair for pair in pairs if all(bisect(own, pair[1]) > bisect(own, pair[0]) for own in copies)]
    begin, end = min(pairs, key=lambda pair: pair[1] - pair[0])
    return begin - 0.04 * (end - begin), end + 0.08 * (end - begin)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--world", type=int, default=2)
    parser.add_argument("trace")
    parser.add_argument("picture")
    wanted = parser.parse_args()
    events = load(wanted.trace)
    queues = queues_of(events, wanted.world)
    begin, end = window_of(events, queues)
    shown = [e for e in events if e["ts"] + e["dur"] >= begin and e["ts"] <= end]

    figure, axes = plt.subplots(figsize=(11, 0.85 * len(queues) + 1.2), layout="constrained")
    for row, (_, queue) in enumerate(queues):
        draw_row(axes, row, [e for e in shown if e["args"]["queue"] == queue], begin, end)
    axes.set_yticks(range(len(queues)), [label for label, _ in queues])
    axes.set_ylim(len(queues) - 0.4, -0.6)
    axes.set_xlim(0, end - begin)
    axes.set_xlabel("time in µs")
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#e8e8e8", zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    present = {label_of(e) for e in shown if e["args"]["queue"] in {queue for _, queue in queues}}
    handles = [Patch(color=colour, label=label) for label, colour in COLOURS.items() if label in present]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False, fontsize=9)
    figure.savefig(wanted.picture, dpi=150)


if __name__ == "__main__":
    main()
