#!/usr/bin/env python3
"""usage: scripts/plot_timeline.py [--world N] [--step K] TRACE PICTURE

Draws two steps of examples/tp_digits from its trace file: VT_TRACE=TRACE cargo run --release --example tp_digits. Needs matplotlib.
"""

import argparse
import json
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
        x, width = event["ts"] - begin, event["dur"]
        if event["cat"] == "graph":
            axes.barh(row, width, left=x, height=0.78, color="none", edgecolor=INK, linewidth=1.0, zorder=3)
            axes.text(x, row - 0.43, "graph launch", fontsize=8, color=INK, va="bottom", ha="left")
            continue
        label = label_of(event)
        if label not in COLOURS:
            continue
        axes.barh(row, max(width, 0.4), left=x, height=0.56, color=COLOURS[label], linewidth=0, zorder=2)
        if width > (end - begin) * 0.0085 * len(label):
            colour = "white" if label in ("hidden layers", "all_reduce") else INK
            axes.text(x + width / 2, row, label, fontsize=8, color=colour, va="center", ha="center", zorder=4)


def window_of(events, main, step):
    """Two steps: from the copy before a launch to the copy behind the next one."""
    launches = sorted(e["ts"] for e in events if e["cat"] == "graph" and e["args"]["queue"] == main)
    at = step if step is not None else len(launches) // 2
    length = launches[at + 2] - launches[at]
    return launches[at] - 0.06 * length, launches[at + 2] + 0.02 * length


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--world", type=int, default=2)
    parser.add_argument("--step", type=int)
    parser.add_argument("trace")
    parser.add_argument("picture")
    wanted = parser.parse_args()
    events = load(wanted.trace)
    queues = queues_of(events, wanted.world)
    begin, end = window_of(events, queues[0][1], wanted.step)
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
