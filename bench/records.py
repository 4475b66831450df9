"""The result files of bench/results/, read into times of cells.

A cell is one problem: a workload (geometry and mask), requests, context and
query tokens. Two kinds of file are read:

  *.jsonl  what ninfer-bench --json and bench/peers/measure write, ours and
           peers of the same run
  *.csv    recorded microseconds of peers and their floor: workload, peer,
           page, batch, W, ctx, us

Reading needs nothing but Python; bench/README.md describes the fields.
"""

import csv
import json
import statistics
from typing import NamedTuple

OURS = "tokentile"
FLOOR = "floor"


class Workload(NamedTuple):
    """A geometry and its mask, under the name that result files use."""

    name: str
    query_heads: int
    kv_heads: int
    head_dim: int
    causal: bool
    model: str

    def title(self):
        mask = "" if self.causal else ", bidirectional"
        return (
            f"{self.name}: {self.query_heads} query heads over "
            f"{self.kv_heads}, dim {self.head_dim}{mask}"
        )


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("q24", 24, 4, 256, True, "qwen3.6-27b"),
        Workload("q16", 16, 2, 256, True, "qwen3.6-35b-a3b"),
        Workload("qwen3-8b", 32, 8, 128, True, "qwen3-8b"),
        Workload("draft-uni", 32, 8, 128, False, "qwen3-8b"),
    )
}


class Place(NamedTuple):
    """What a floor belongs to: a cell without its query tokens. `context` is a
    number of keys, or the text of a ragged batch such as "sum9712"."""

    workload: str
    batch: int
    context: object


class Cell(NamedTuple):
    place: Place
    tokens: int

    def __str__(self):
        place = self.place
        batch = f", batch {place.batch}" if place.batch != 1 else ""
        context = keys_text(place.context)
        return f"{place.workload} {context} W={self.tokens}{batch}"


class Times(NamedTuple):
    """Microseconds: peers by cell and name, floors by place. `contiguous`
    names the peers that had contiguous keys, `devices` the GPUs."""

    peers: dict
    floors: dict
    contiguous: frozenset
    devices: frozenset = frozenset()

    def ours(self):
        return {
            cell: times[OURS]
            for cell, times in self.peers.items()
            if OURS in times
        }


class ResultError(Exception):
    """A file that says something else than its format allows."""


def keys_text(context):
    """4096 as 4K; other numbers and ragged batches as they are."""
    if isinstance(context, int) and context and context % 1024 == 0:
        return f"{context // 1024}K"
    return str(context)


# What every record has; bench/README.md describes all fields.
FIELDS = (
    "query_heads kv_heads head_dim causal window layout peer mode tokens "
    "context batch table time device"
).split()


def workload_of(record):
    """The name of a record's workload, or None if it has no name here."""
    for workload in WORKLOADS.values():
        if (
            record["query_heads"] == workload.query_heads
            and record["kv_heads"] == workload.kv_heads
            and record["head_dim"] == workload.head_dim
            and record["causal"] == workload.causal
            and not record["window"]
        ):
            return workload.name
    return None


def read_lines(path):
    """The records of a JSON Lines file."""
    records = []
    with open(path) as file:
        for number, line in enumerate(file, 1):
            try:
                record = json.loads(line)
            except ValueError as error:
                raise ResultError(f"{path}:{number}: {error}") from None
            for field in FIELDS:
                if field not in record:
                    raise ResultError(f"{path}:{number}: no field '{field}'")
            records.append(record)
    return records


def read_results(paths, table="identity"):
    """Times of JSON Lines files: launches of all tokens at once, through page
    tables of kind `table`. A cell may have one time of each peer."""
    peers, floors, contiguous, devices = {}, {}, set(), set()
    for path in paths:
        for record in read_lines(path):
            name = workload_of(record)
            if record["table"] != table or record["mode"] != "one launch":
                continue
            if name is None:
                continue
            place = Place(name, record["batch"], record["context"])
            times = peers.setdefault(Cell(place, record["tokens"]), {})
            peer = record["peer"]
            if peer in times:
                cell = Cell(place, record["tokens"])
                raise ResultError(f"{path}: a second time of {peer} at {cell}")
            times[peer] = record["time"]["median_us"]
            devices.add(record["device"])
            if record["layout"] == "contiguous":
                contiguous.add(peer)
            if "floor" in record:
                floors.setdefault(place, []).append(
                    record["floor"]["median_us"]
                )
    middle = {place: statistics.median(all) for place, all in floors.items()}
    return Times(peers, middle, frozenset(contiguous), frozenset(devices))


def read_recorded(path):
    """Times of a CSV file; several lines of one peer and cell count as runs,
    of which the median is taken."""
    runs, floors, contiguous = {}, {}, set()
    with open(path) as file:
        lines = (line for line in file if not line.startswith("#"))
        rows = csv.DictReader(lines)
        columns = ("workload", "peer", "page", "batch", "W", "ctx", "us")
        for column in columns:
            if column not in (rows.fieldnames or ()):
                raise ResultError(f"{path}: no column '{column}'")
        for row in rows:
            context = row["ctx"]
            context = int(context) if context.isdigit() else context
            place = Place(row["workload"], int(row["batch"]), context)
            if row["peer"] == FLOOR:
                floors[place] = float(row["us"])
                continue
            cell = Cell(place, int(row["W"]))
            times = runs.setdefault(cell, {}).setdefault(row["peer"], [])
            times.append(float(row["us"]))
            if row["page"] == "0":
                contiguous.add(row["peer"])
    peers = {
        cell: {peer: statistics.median(us) for peer, us in times.items()}
        for cell, times in runs.items()
    }
    return Times(peers, floors, frozenset(contiguous))
