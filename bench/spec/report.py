"""Figures of speculative decoding as Markdown, and the bars they must meet.

Reads the JSON Lines of ninfer-draft-bench and ninfer-spec; bench/README.md
names their fields.
"""

from tables import table

ROUTES = ("batched", "padded", "loop", "reattend")
STEP_ROUTES = ("batched", "loop", "reattend")
MODES = ("graph", "eager")
PHASES = ("propose", "verify", "accept", "append")

# Microseconds of the batched kernel on one H200, for a layer of either kind:
# context, requests.
TIME_BARS = {(1300, 8): 30, (1300, 32): 65, ("200:8000", 8): 75}
# Of the batched kernel's time over the loop's, at so many requests.
LOOP_BAR = 0.5
LOOP_BATCH = 8


def find(records, **fields):
    """The record that has these fields, or None."""
    for record in records:
        if all(record[name] == value for name, value in fields.items()):
            return record
    return None


def places_of(records):
    """Windows and contexts that were measured, in order."""
    return list(dict.fromkeys((r["window"], r["context"]) for r in records))


def name_of(place):
    window, context = place
    return f"{context} keys, " + (f"window {window}" if window else "no window")


def find_attention(records, place, route, batch):
    window, context = place
    return find(
        records, window=window, context=context, mode=route, batch=batch
    )


def attention_table(records, place, batches):
    head = ["route"] + [f"c={batch}" for batch in batches]
    rows = []
    for route in ROUTES:
        cells = [
            find_attention(records, place, route, batch) for batch in batches
        ]
        rows.append(
            [f"{route}, us"]
            + [cell and f"{cell['time']['median_us']:.1f}" for cell in cells]
        )
        rows.append(
            ["MB that it must move"]
            + [cell and f"{cell['bytes'] / 1e6:.1f}" for cell in cells]
        )
        rows.append(
            ["launches"] + [cell and cell["launches"] for cell in cells]
        )
    return table(head, rows)


def kernels_of(record):
    queued = record["queued_by_step"]
    return queued["kernel_launches"] + queued["graph_launches"]


def step_table(records, batches):
    head = ["c", "route", "tokens/s", "over plain", "step us", "eager us"]
    head += [f"{phase} us" for phase in PHASES]
    head += ["launches", "eager launches"]
    rows = []
    for batch in batches:
        for route in STEP_ROUTES:
            graph, eager = (
                find(records, batch=batch, draft_route=route, mode=mode)
                for mode in MODES
            )
            row = [batch, route] + [None] * (len(head) - 2)
            if graph:
                row[2] = f"{graph['tokens_per_second']:.0f}"
                row[3] = "{:.2f}".format(
                    graph["tokens_per_second"]
                    / graph["plain_tokens_per_second"]
                )
                row[4] = f"{graph['step_us']:.0f}"
                row[6:10] = [f"{graph['phase_us'][p]:.0f}" for p in PHASES]
                row[10] = kernels_of(graph)
            if eager:
                row[5] = f"{eager['step_us']:.0f}"
                row[11] = kernels_of(eager)
            rows.append(row)
    return table(head, rows)


def missing_cells(attention, steps, batches):
    """What should have been measured and was not, in words."""
    missing = []
    for place in places_of(attention):
        for route in ROUTES:
            for batch in batches:
                if not find_attention(attention, place, route, batch):
                    missing.append(
                        f"{route} attention ({name_of(place)}) c={batch}"
                    )
    if not attention:
        missing.append("draft attention")
    for route in STEP_ROUTES:
        for mode in MODES:
            for batch in batches:
                if not find(steps, draft_route=route, mode=mode, batch=batch):
                    missing.append(f"{route} {mode} step c={batch}")
    return missing


def judge(attention, steps):
    """Lines of (what, value, bar, whether it holds)."""
    verdicts = []

    def time_of(place, route, batch):
        record = find_attention(attention, place, route, batch)
        return record and record["time"]["median_us"]

    for place in places_of(attention):
        for (context, batch), bar in TIME_BARS.items():
            time = time_of(place, "batched", batch)
            if context == place[1] and time is not None:
                what = f"batched attention, {name_of(place)}, c={batch}, us"
                verdicts.append((what, f"{time:.1f}", bar, time <= bar))
        batched, loop = (
            time_of(place, route, LOOP_BATCH) for route in ("batched", "loop")
        )
        if batched is not None and loop is not None:
            what = f"batched over loop, {name_of(place)}, c={LOOP_BATCH}"
            ratio = batched / loop
            verdicts.append((what, f"{ratio:.2f}", LOOP_BAR, ratio <= LOOP_BAR))
    for mode in MODES:
        counts = [
            kernels_of(record)
            for record in steps
            if record["draft_route"] == "batched" and record["mode"] == mode
        ]
        if counts:
            # Those of the fewest requests. More may need fewer: requests that
            # fill the device leave no splits to merge.
            bar = 1 if mode == "graph" else counts[0]
            what = f"most launches of a step at any c, {mode}"
            verdicts.append((what, max(counts), bar, max(counts) <= bar))
    return verdicts


def report(attention, steps, batches):
    """The text, and whether every bar holds and every cell is there."""
    text = "# Speculative decoding\n"
    if attention:
        one = attention[0]
        text += (
            f"\n{one['device']} ({one['chip']}), {one['cache']} caches\n\n"
            "## Attention of one draft layer\n\n"
            f"{one['query_heads']} query heads over {one['kv_heads']}, dim "
            f"{one['head_dim']}, {one['tokens']} block rows, pages of "
            f"{one['page']}; medians of {one['samples']} samples, those of "
            "reattend of fewer.\n"
        )
    for place in places_of(attention):
        text += f"\n### {name_of(place)}\n\n"
        text += attention_table(attention, place, batches)
    if steps:
        text += (
            "\n## Whole steps\n\n"
            f"Target {steps[0]['target']}, draft {steps[0]['draft']}, "
            f"{steps[0]['width']} draft tokens. Tokens a second and launches "
            "of steps as one graph, then of the same steps queued call by "
            "call (eager), from which the phases are.\n\n"
        )
        text += step_table(steps, batches)
    verdicts = judge(attention, steps)
    text += "\n## Bars\n\n" + table(
        ("", "measured", "at most", ""),
        [
            (what, value, bar, "holds" if holds else "MISSED")
            for what, value, bar, holds in verdicts
        ],
    )
    missing = missing_cells(attention, steps, batches)
    if missing:
        text += f"\nNot measured ({len(missing)}): {', '.join(missing)}.\n"
    return text, not missing and all(holds for *_, holds in verdicts)
