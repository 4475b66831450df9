"""What is drawn: the lines of a panel, and where their labels go.

No drawing here, so that it can be tested without a library for it.
"""

import comparison
from records import Cell

OURS, BEST = "TokenTile", "best paged peer"


def lines_of(cells, results, peers):
    """{label: [(cell, microseconds)]} through `cells`: ours, the best paged
    peer, and each library in its best setting."""
    lines = {OURS: [], BEST: []}
    for cell in cells:
        ours = results.ours().get(cell)
        if ours:
            lines[OURS].append((cell, ours))
        best = comparison.best_paged(cell, peers)
        if best:
            lines[BEST].append((cell, best[1]))
        for library, us in comparison.best_by_family(cell, peers).items():
            lines.setdefault(library, []).append((cell, us))
    return {label: points for label, points in lines.items() if points}


def split_by_limit(lines, limit):
    """(inside, outside) of lines: outside are those of which fewer than half
    of the points lie below `limit`."""
    inside, outside = {}, {}
    for label, points in lines.items():
        below = sum(us <= limit for _, us in points)
        chosen = inside if 2 * below >= len(points) else outside
        chosen[label] = points
    return inside, outside


def cells_of(place, results):
    """Our cells of a place, by their tokens."""
    return sorted(cell for cell in results.ours() if cell.place == place)


def places_of(workload, results, peers):
    """Places of batch 1 of which a panel can be drawn: ours has times and a
    floor is known; by context."""
    return sorted(
        {
            cell.place
            for cell in results.ours()
            if cell.place.workload == workload.name
            and cell.place.batch == 1
            and cell.place in peers.floors
        }
    )


def widths_in_all(places, results):
    """Query tokens that every place has."""
    ours = results.ours()
    widths = {cell.tokens for cell in ours if cell.place in places}
    return sorted(
        width
        for width in widths
        if all(Cell(place, width) in ours for place in places)
    )


def spread(positions, gap):
    """The positions, moved as little as keeps them `gap` apart, in order."""
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    groups = []
    for i in order:
        groups.append(([i], positions[i]))
        while len(groups) > 1:
            (low, low_at), (high, high_at) = groups[-2:]
            if high_at - low_at >= gap * (len(low) + len(high)) / 2:
                break
            both = low + high
            middle = sum(positions[k] for k in both) / len(both)
            groups[-2:] = [(both, middle)]
    moved = list(positions)
    for members, middle in groups:
        start = middle - gap * (len(members) - 1) / 2
        for step, i in enumerate(members):
            moved[i] = start + gap * step
    return moved
