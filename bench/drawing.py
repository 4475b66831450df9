"""Pictures of times, by matplotlib: small multiples with labels at the ends of
the lines. The same series make the same bytes.
"""

import textwrap

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as pyplot
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

import series
from records import Cell, keys_text

# Colour (of the palette of Okabe and Ito, which colour-blind readers can tell
# apart), marker and width of each line.
STYLES = {
    series.OURS: ("#d55e00", "o", 2.4),
    "FlashAttention-3": ("#0072b2", "s", 1.3),
    "FlashInfer": ("#009e73", "^", 1.3),
    "XQA": ("#cc79a7", "D", 1.1),
    "vLLM Triton": ("#56b4e9", "v", 1.1),
    "PyTorch SDPA": ("#8a6d00", "P", 1.1),
    "FlexAttention": ("#777777", "X", 1.1),
}
INK, MUTED, BEST_LINE, FLOOR_FILL = "#222222", "#666666", "#c9c9c9", "#ececec"
# Inches: pictures are as wide as a README.
WIDTH, PANEL_HEIGHT, HEAD, FOOT = 9.4, 2.9, 1.0, 0.95
# A panel of widths ends at this multiple of its floor, or just above ours.
PANEL_FLOORS = 2.2
LABEL_GAP = 11

matplotlib.rcParams.update(
    {
        "svg.fonttype": "none",
        "svg.hashsalt": "tokentile",
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
        "font.size": 8.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "#888888",
        "axes.titlesize": 9.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "text.color": INK,
        "axes.labelcolor": MUTED,
        "xtick.color": INK,
        "ytick.color": INK,
    }
)


def panels(rows, columns, share_y=False):
    """(figure, list of axes) with room for heads, feet and labels."""
    height = HEAD + FOOT + PANEL_HEIGHT * rows
    figure, grid = pyplot.subplots(
        rows,
        columns,
        figsize=(WIDTH, height),
        squeeze=False,
        sharey=share_y,
    )
    figure.subplots_adjust(
        left=0.06,
        right=0.87,
        wspace=0.5,
        hspace=0.55,
        top=1 - HEAD / height,
        bottom=FOOT / height,
    )
    return figure, list(grid.flat)


def draw_lines(axes, title, lines, limit, x_of, columns):
    """Draws the lines that lie below `limit` and names the others under the
    title; returns (label, y, colour) of each right end."""
    inside, outside = series.split_by_limit(lines, limit)
    ends = []
    for label, points in inside.items():
        xs = [x_of(cell) for cell, _ in points]
        ys = [us for _, us in points]
        if label == series.BEST:
            axes.plot(xs, ys, color=BEST_LINE, linewidth=6, zorder=2)
            continue
        colour, marker, width = STYLES.get(label, (INK, ".", 1))
        order = 4 if label == series.OURS else 3
        axes.plot(
            xs,
            ys,
            color=colour,
            marker=marker,
            markersize=3.6,
            linewidth=width,
            zorder=order,
        )
        ends.append((label, min(ys[-1], limit), colour))
    ranges = []
    for label, points in outside.items():
        ends_of = sorted({f(us for _, us in points) for f in (min, max)})
        # Lines of text break between libraries only.
        entry = f"{label} " + " to ".join(f"{us:.0f}" for us in ends_of)
        ranges.append(entry.replace(" ", "\u00a0"))
    note = "above: " + "; ".join(ranges) if ranges else ""
    notes = textwrap.wrap(note, columns, break_on_hyphens=False)
    axes.set_title(title, pad=7 + 9 * len(notes))
    axes.text(
        0,
        1.02,
        "\n".join(notes),
        transform=axes.transAxes,
        va="bottom",
        fontsize=6.5,
        color=MUTED,
    )
    return ends


def label_ends(axes, ends):
    """Writes each label beside the right end of its line."""
    to_pixels = axes.transData.transform
    to_data = axes.transData.inverted().transform
    right = axes.get_xlim()[1]
    pixels = [to_pixels((right, y))[1] for _, y, _ in ends]
    gap = LABEL_GAP * axes.figure.dpi / 72
    for (label, _, colour), pixel in zip(ends, series.spread(pixels, gap)):
        axes.text(
            right,
            to_data((0, pixel))[1],
            " " + label,
            color=colour,
            va="center",
            fontsize=7.5,
            fontweight="bold" if label == series.OURS else "normal",
        )


def finish(figure, title, note, path):
    height = figure.get_figheight()
    figure.text(
        0.012, 1 - 0.1 / height, title, va="top", fontsize=11, weight="bold"
    )
    figure.text(
        0.012, 0.08 / height, note, va="bottom", fontsize=6.8, color=MUTED
    )
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def draw_widths(places, results, peers, title, note, path):
    """Time against query tokens: a panel for each place, from 0."""
    figure, grid = panels((len(places) + 1) // 2, 2)
    for axes in grid[len(places) :]:
        axes.set_visible(False)
    for axes, place in zip(grid, places):
        cells = series.cells_of(place, results)
        lines = series.lines_of(cells, results, peers)
        floor = peers.floors[place]
        ours = max(us for _, us in lines[series.OURS])
        limit = max(PANEL_FLOORS * floor, 1.08 * ours)
        widths = [cell.tokens for cell in cells]
        right = max(widths) * 1.03
        axes.set_ylim(0, limit)
        axes.set_xlim(0, right)
        axes.xaxis.set_major_locator(FixedLocator(widths))
        axes.set_xlabel("query tokens W")
        axes.set_ylabel("microseconds")
        axes.fill_between([0, right], floor, color=FLOOR_FILL, linewidth=0)
        axes.text(
            right * 0.02,
            floor * 0.96,
            f"speed of light {floor:.1f}",
            va="top",
            fontsize=7.5,
            color=MUTED,
        )
        head = f"context {keys_text(place.context)}"
        ends = draw_lines(
            axes, head, lines, limit, lambda cell: cell.tokens, columns=72
        )
        label_ends(axes, ends)
    finish(figure, title, note, path)


def draw_contexts(places, widths, results, peers, title, note, path):
    """Time against context: a panel for each width, both axes in octaves."""
    contexts = [place.context for place in places]
    floors = [peers.floors[place] for place in places]
    figure, grid = panels(1, len(widths), share_y=True)
    limit = 3 * max(floors)
    for axes, width in zip(grid, widths):
        cells = [Cell(place, width) for place in places]
        lines = series.lines_of(cells, results, peers)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_xlim(contexts[0] / 1.15, contexts[-1] * 1.15)
        axes.set_ylim(min(floors) / 1.3, limit)
        axes.xaxis.set_major_locator(FixedLocator(contexts))
        axes.set_xticklabels([keys_text(keys) for keys in contexts])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
        axes.set_xlabel("context")
        axes.set_ylabel("microseconds" if axes is grid[0] else "")
        axes.fill_between(contexts, floors, color=FLOOR_FILL, linewidth=0)
        ends = draw_lines(
            axes,
            f"W = {width}",
            lines,
            limit,
            lambda cell: cell.place.context,
            columns=40,
        )
        label_ends(axes, ends + [("speed of light", floors[-1], MUTED)])
    finish(figure, title, note, path)
