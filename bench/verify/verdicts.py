"""Figures of verify and draft attention beside the bars of cells.json.

cells.json lists what ninfer-bench is run for, the most telling first. Of a run:

  name      unique; also names its result file
  options   of ninfer-bench: the kernel and how it is lowered
  context, batch  or  ragged    as ninfer-bench takes them
  tokens    query tokens, each of which is a cell
  peers     there if recorded peers know the cells: true, or the workload, batch
            and context that they have in bench/results/h200-peers.csv
  bars      what is said about which tokens; see below

A bar holds if the figure is at most `must`; `aim` is only reported, and without
`must` the figure is as well. `of` says what the figure is: the time in units of
the "floor", the time in "us", "sweeps" over the keys, or the time over that of
another run, there at `of_tokens` if they differ. With `rate` it is bytes per
second over those of the other run, and has to be at least `must`. With `less`
instead of `of` it is the microseconds more than those of the run named.
"""

import os
import statistics
from typing import NamedTuple, Optional

import comparison
import records
from tables import table

MET, MISSED, NOT_MEASURED = "met", "MISSED", "NOT MEASURED"


class Floor(NamedTuple):
    us: float
    source: str


# Figures of a run by itself.
FIGURES = ("floor", "us", "sweeps")


def other_of(bar):
    """The name of the run that a bar compares with, or None."""
    name = bar.get("less") or bar["of"]
    return None if name in FIGURES else name


def quotient(one, other):
    return one["time"]["median_us"] / other["time"]["median_us"]


def rate(one, other):
    return one["bytes"] / other["bytes"] / quotient(one, other)


def difference(one, other):
    """Times have three digits, and so has what is between them."""
    return round(one["time"]["median_us"] - other["time"]["median_us"], 3)


def comparison_of(bar):
    """How the figure of two runs is called, and the function that it is."""
    if "less" in bar:
        return "us more than", difference
    return ("bytes/s over", rate) if bar.get("rate") else ("over", quotient)


class Row(NamedTuple):
    """One bar of one cell, or a cell without bars."""

    run: str
    tokens: int
    verdict: str
    us: Optional[float] = None
    floor: Optional[Floor] = None
    what: str = ""
    value: Optional[float] = None
    must: Optional[float] = None
    aim: Optional[float] = None
    ratio: Optional[comparison.Ratio] = None

    def cell(self):
        return f"{self.run} W={self.tokens}"


def file_of(run):
    """The result file of a run."""
    letters = (c if c.isalnum() or c in "-." else "-" for c in run["name"])
    return "".join(letters) + ".jsonl"


class Results:
    """The outcomes of runs by their names, and recorded peers."""

    def __init__(self, runs, outcomes, recorded):
        self.runs = runs
        self.outcomes = outcomes
        self.recorded = recorded

    def record(self, name, tokens):
        outcome = self.outcomes.get(name)
        for record in outcome.records if outcome else ():
            if record["tokens"] == tokens:
                return record
        return None

    def cell(self, run, record):
        peers = run.get("peers")
        if isinstance(peers, list):
            place = records.Place(*peers)
        else:
            name = records.workload_of(record)
            place = records.Place(name, record["batch"], record["context"])
        return records.Cell(place, record["tokens"])

    def floor_today(self, run):
        """The median of a run's floors, which read almost the same bytes."""
        floors = [
            record["floor"]["median_us"]
            for record in self.outcomes[run["name"]].records
            if "floor" in record
        ]
        return statistics.median(floors) if floors else None

    def floor(self, run, record):
        """The Floor that counts, or None."""
        today = self.floor_today(run)
        recorded = self.recorded.floors.get(self.cell(run, record).place)
        if recorded is None:
            return Floor(today, "today") if today else None
        if comparison.usable_floor(today, recorded) == today:
            return Floor(today, "today")
        seen = f"{today:.1f}" if today else "none"
        return Floor(recorded, f"recorded, today {seen}")

    def ratio(self, run, record):
        """Our time over the best paged peer's, or None."""
        if not run.get("peers"):
            return None
        cell = self.cell(run, record)
        today = self.floor_today(run)
        times = records.Times(
            {cell: {records.OURS: record["time"]["median_us"]}},
            {} if today is None else {cell.place: today},
            frozenset(),
        )
        return comparison.ratio_of(cell, times, self.recorded)

    def figure(self, run, record, bar):
        """What a bar is about, and its value or None."""
        us = record["time"]["median_us"]
        if other_of(bar):
            return self.compared(record, bar)
        if bar["of"] == "floor":
            floor = self.floor(run, record)
            return "over floor", us / floor.us if floor else None
        if bar["of"] == "us":
            return "us", us
        return "sweeps", record["sweeps"]

    def compared(self, record, bar):
        """The same of a bar that compares with another run."""
        name = other_of(bar)
        tokens = bar.get("of_tokens", record["tokens"])
        what, measure = comparison_of(bar)
        other = self.record(name, tokens)
        value = None if other is None else measure(record, other)
        return f"{what} {name} W={tokens}", value


def holds(bar, value):
    if bar.get("rate"):
        return value >= bar["must"]
    if "less" in bar and value < 0:
        # A part takes no longer than the whole: this was measured badly.
        return False
    return value <= bar["must"]


def rows_of_cell(results, run, tokens):
    record = results.record(run["name"], tokens)
    if record is None:
        return [Row(run["name"], tokens, NOT_MEASURED)]
    ratio = results.ratio(run, record)
    row = Row(
        run["name"],
        tokens,
        "",
        record["time"]["median_us"],
        results.floor(run, record),
        ratio=ratio,
    )
    rows = []
    for bar in run["bars"]:
        if tokens not in bar["tokens"]:
            continue
        what, value = results.figure(run, record, bar)
        verdict = ""
        if bar.get("must") is not None and value is None:
            verdict = NOT_MEASURED
        elif bar.get("must") is not None:
            verdict = MET if holds(bar, value) else MISSED
        rows.append(
            row._replace(
                verdict=verdict,
                what=what,
                value=value,
                must=bar.get("must"),
                aim=bar.get("aim"),
                ratio=None if rows else ratio,
            )
        )
    return rows or [row]


def judge(results):
    """The Rows of all runs, in order."""
    return [
        row
        for run in results.runs
        for tokens in run["tokens"]
        for row in rows_of_cell(results, run, tokens)
    ]


def number(value, digits):
    return None if value is None else f"{value:.{digits}f}"


def text_of_row(row):
    ratio = row.ratio
    return [
        row.cell(),
        number(row.us, 1),
        row.floor and f"{row.floor.us:.1f} {row.floor.source}",
        row.what or None,
        number(row.value, 1 if row.what == "us" else 3),
        row.must,
        row.aim,
        ratio and f"{ratio.peer_us:.1f} {ratio.peer}",
        ratio and f"{ratio.value():.2f}",
        row.verdict or None,
    ]


def named(title, rows):
    cells = list(dict.fromkeys(row.cell() for row in rows))
    return f"{title} ({len(cells)}): {'; '.join(cells)}.\n" if cells else ""


HEAD = (
    "cell", "us", "floor", "figure", "", "must", "aim", "best paged peer",
    "over peer", "",
)  # fmt: skip


def report(results, is_judged):
    """The text, and whether every bar holds and every cell is there. Small
    problems are not judged: then only cells that are not there count."""
    rows = judge(results)
    if not is_judged:
        rows = [
            row if row.us is None
            else row._replace(verdict="", must=None, aim=None)
            for row in rows
        ]  # fmt: skip
    missed = [row for row in rows if row.verdict == MISSED]
    missing = [row for row in rows if row.verdict == NOT_MEASURED]
    met = [row for row in rows if row.verdict == MET]
    text = "# Verify and draft attention\n\n"
    seen = [record for o in results.outcomes.values() for record in o.records]
    if seen:
        one = seen[0]
        text += (
            f"{one['device']} ({one['chip']}), {one['cache']} caches, page "
            f"table {one['table']}, medians of {one['samples']}; every figure "
            f"holds {one['empty_kernel_us']:.1f} us of launch and events.\n\n"
        )
    aims = sum(row.aim is not None and row.value <= row.aim for row in met)
    aimed = sum(row.aim is not None for row in rows)
    text += f"{len(met)} bars met, {aims} of {aimed} aims met.\n"
    text += named("Missed", missed) + named("Not measured", missing)
    ratios = [row.ratio for row in rows if row.ratio]
    peers = comparison.verdict_of(ratios, [])
    if ratios:
        text += f"\nBeside peers: {comparison.verdict_text(peers)}\n"
    text += "\n" + table(HEAD, [text_of_row(row) for row in rows])
    passes = not missed and not missing
    return text, passes and (peers.passes() or not ratios)
