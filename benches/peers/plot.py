#!/usr/bin/env python3
"""usage: benches/peers/plot.py PICTURE < RECORDS
Draws the times over the limit, per operation and world. Needs matplotlib."""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

STYLES = {"vt": ("#e45756", "o"), "openmpi": ("#4c78a8", "s"), "mpich": ("#54a24b", "^"), "impi": ("#b279a2", "D"), "oneccl": ("#8c8c8c", "v")}


def size_text(size):
    return f"{size >> 20}M" if size >= 1 << 20 else f"{size >> 10}K" if size >= 1 << 10 else str(size)


def draw(axes, records, title):
    for library, (colour, marker) in STYLES.items():
        points = sorted((r["bytes"], r["median_us"] / r["limit_us"]) for r in records if r["library"] == library)
        if points:
            axes.plot(*zip(*points), color=colour, marker=marker, markersize=4, linewidth=2 if library == "vt" else 1, label=library)
    axes.axhline(1, color="black", linewidth=0.8, linestyle=":")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    sizes = sorted({r["bytes"] for r in records})
    axes.set_xticks(sizes, map(size_text, sizes), fontsize=7, rotation=60)
    axes.minorticks_off()
    axes.set_title(title, fontsize=9)
    axes.grid(color="#e8e8e8")


def main():
    records = json.load(sys.stdin)
    worlds = sorted({r["world"] for r in records})
    kinds = list(dict.fromkeys((r["op"], r["dtype"]) for r in records))
    figure, grid = plt.subplots(len(worlds), len(kinds), figsize=(2.9 * len(kinds) + 0.6, 3.2 * len(worlds) + 0.4), squeeze=False, layout="constrained")
    for world, line in zip(worlds, grid):
        for (op, dtype), axes in zip(kinds, line):
            chosen = [r for r in records if (r["op"], r["dtype"], r["world"]) == (op, dtype, world)]
            if chosen:
                draw(axes, chosen, f"{op} {dtype}, {world} ranks")
            else:
                axes.set_axis_off()
        line[0].set_ylabel("time over the limit")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize=9)
    figure.savefig(sys.argv[1], dpi=90)


if __name__ == "__main__":
    main()
