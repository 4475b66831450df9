"""Our times beside the best of recorded peers.

Recorded microseconds come from another day, so they are scaled by today's floor
over the recorded floor of the same place. A floor of today counts if it is
within 4% of the recorded one; else the recorded value stands, and the scale is
1. Where no floor was recorded the scale is 1 as well.
"""

import math
from typing import NamedTuple

from records import OURS, Cell, Times

FLOOR_TOLERANCE = 0.04
# Our time over the best paged peer's: in every cell, and in geometric mean.
CELL_BAR = 1.00
MEAN_BAR = 0.93
# The cells that are judged, in each place of these workloads for which a floor
# was recorded. Cells of other places are judged if they were measured.
JUDGED_WORKLOADS = ("q24", "q16", "qwen3-8b")
JUDGED_TOKENS = (1, 2, 4, 6, 8, 16)

# The names in result files begin so; the library that each stands for.
FAMILIES = (
    ("fa3", "FlashAttention-3"),
    ("fi-", "FlashInfer"),
    ("xqa", "XQA"),
    ("vllm", "vLLM Triton"),
    ("sdpa", "PyTorch SDPA"),
    ("flex", "FlexAttention"),
)


class Ratio(NamedTuple):
    """One cell. `peer_us` is scaled."""

    cell: Cell
    ours_us: float
    peer: str
    peer_us: float

    def value(self):
        return self.ours_us / self.peer_us


class Verdict(NamedTuple):
    ratios: list
    missing: list
    worst: Ratio
    mean: float

    def passes(self):
        return (
            not self.missing
            and self.worst is not None
            and self.worst.value() <= CELL_BAR
            and self.mean <= MEAN_BAR
        )


def family(peer):
    """The library a peer's name stands for; the name itself if unknown."""
    for prefix, library in FAMILIES:
        if peer.startswith(prefix):
            return library
    return peer


def usable_floor(today, recorded):
    """The floor that counts: today's (None: not measured) or the recorded."""
    if today is None or abs(today / recorded - 1) > FLOOR_TOLERANCE:
        return recorded
    return today


def scale(place, today, recorded):
    """What recorded times of `place` are multiplied with; both are floors by
    place."""
    if place not in recorded:
        return 1.0
    return usable_floor(today.get(place), recorded[place]) / recorded[place]


def best_paged(cell, recorded):
    """(peer, microseconds) of the fastest peer that reads pages, or None."""
    paged = {
        peer: us
        for peer, us in recorded.peers.get(cell, {}).items()
        if peer not in recorded.contiguous
    }
    return min(paged.items(), key=lambda item: item[1]) if paged else None


def best_by_family(cell, recorded):
    """{library: microseconds} of each library's fastest setting; one that
    reads pages counts with its paged settings only."""
    best = {}
    times = recorded.peers.get(cell, {})
    paged = {family(peer) for peer in times if peer not in recorded.contiguous}
    for peer, us in times.items():
        name = family(peer)
        if name in paged and peer in recorded.contiguous:
            continue
        best[name] = min(us, best.get(name, us))
    return best


def ratio_of(cell, results, recorded):
    """The Ratio of a cell that both know, else None."""
    best = best_paged(cell, recorded)
    ours = results.peers.get(cell, {}).get(OURS)
    if best is None or ours is None:
        return None
    peer, us = best
    factor = scale(cell.place, results.floors, recorded.floors)
    return Ratio(cell, ours, peer, us * factor)


def combine(results, recorded):
    """Times of all peers to draw: the recorded ones, scaled, and those of the
    results, which replace recorded ones of the same library."""
    peers = {}
    for cell, times in recorded.peers.items():
        factor = scale(cell.place, results.floors, recorded.floors)
        measured = results.peers.get(cell, {})
        replaced = {family(peer) for peer in measured}
        peers[cell] = {
            peer: us * factor
            for peer, us in times.items()
            if family(peer) not in replaced
        }
    for cell, times in results.peers.items():
        others = {peer: us for peer, us in times.items() if peer != OURS}
        peers.setdefault(cell, {}).update(others)
    floors = dict(results.floors)
    for place, floor in recorded.floors.items():
        floors[place] = usable_floor(floors.get(place), floor)
    contiguous = results.contiguous | recorded.contiguous
    return Times(peers, floors, contiguous, results.devices)


def geometric_mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values))


def judge(results, recorded):
    """The Verdict over all judged cells; worst is None if there is no cell
    that both know."""
    wanted = {
        cell
        for cell in recorded.peers
        if cell.place.workload in JUDGED_WORKLOADS
        and cell.tokens in JUDGED_TOKENS
    }
    extra = {
        cell
        for cell in results.ours()
        if cell.place.workload not in JUDGED_WORKLOADS
    }
    ratios, missing = [], []
    for cell in sorted(wanted | extra, key=str):
        ratio = ratio_of(cell, results, recorded)
        if ratio:
            ratios.append(ratio)
        elif cell in wanted:
            missing.append(cell)
    return verdict_of(ratios, missing)


def verdict_of(ratios, missing):
    """The Verdict over these ratios; `missing` names cells without one."""
    if not ratios:
        return Verdict([], missing, None, math.nan)
    worst = max(ratios, key=Ratio.value)
    mean = geometric_mean([ratio.value() for ratio in ratios])
    return Verdict(ratios, missing, worst, mean)


def verdict_text(verdict):
    if verdict.worst is None:
        return "No cell is in both the results and the recorded peers."
    lines = [
        f"{len(verdict.ratios)} cells: over the best paged peer at most "
        f"{verdict.worst.value():.3f} ({verdict.worst.cell}), geometric mean "
        f"{verdict.mean:.3f}; the bars are {CELL_BAR:.2f} and "
        f"{MEAN_BAR:.2f}."
    ]
    above = [
        f"{ratio.cell} {ratio.value():.2f}"
        for ratio in verdict.ratios
        if ratio.value() > CELL_BAR
    ]
    if above:
        lines.append(f"Above the bar ({len(above)}): {'; '.join(above)}.")
    if verdict.missing:
        names = "; ".join(str(cell) for cell in verdict.missing)
        lines.append(f"Not measured ({len(verdict.missing)}): {names}.")
    lines.append("Passed." if verdict.passes() else "Missed.")
    return "\n".join(lines)
