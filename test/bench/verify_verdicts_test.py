"""Tests of bench/verify: the bars of cells.json, and verdicts about them."""

import json
import os
import sys
import unittest

here = os.path.dirname(os.path.abspath(__file__))
bench = os.path.join(here, "../../bench")
sys.path[:0] = [os.path.join(bench, "verify"), bench]
import records
import verdicts
from session import Outcome

with open(os.path.join(bench, "verify/cells.json")) as file:
    RUNS = json.load(file)["runs"]
PEERS = records.read_recorded(os.path.join(bench, "results/h200-peers.csv"))


def record(tokens, us, floor=None, context=4096, **fields):
    """A record of q24."""
    one = {
        "peer": "tokentile", "query_heads": 24, "kv_heads": 4,
        "head_dim": 256, "causal": True, "window": 0, "tokens": tokens,
        "context": context, "batch": 1, "table": "shuffled", "sweeps": 1,
        "bytes": 1000, "time": {"median_us": us}, "device": "H200",
        "chip": "sm_90a", "cache": "cold", "samples": 31,
        "empty_kernel_us": 2.8,
    }  # fmt: skip
    if floor:
        one["floor"] = {"median_us": floor}
    return one | fields


def run(name="q24 4K", tokens=(1, 16), bars=(), **fields):
    return {
        "name": name, "options": "--model=qwen3.6-27b", "tokens": list(tokens),
        "bars": list(bars),
    } | fields  # fmt: skip


BARS = [
    {"of": "floor", "tokens": [1], "must": 1.7, "aim": 1.35},
    {"of": "floor", "tokens": [16], "must": 2.0},
]


def outcome(*lines, failure=""):
    return Outcome(list(lines), failure)


def judge(runs, outcomes, recorded=PEERS):
    results = verdicts.Results(runs, outcomes, recorded)
    text, passes = verdicts.report(results, True)
    return verdicts.judge(results), text, passes


class Verdicts(unittest.TestCase):
    def test_holds_at_the_bar_over_the_floor_of_today(self):
        lines = outcome(record(1, 15.29, 9.0), record(16, 18.0, 9.0))
        rows, text, passes = judge([run(bars=BARS)], {"q24 4K": lines})
        self.assertEqual([row.verdict for row in rows], ["met", "met"])
        self.assertTrue(passes, text)
        self.assertIn(
            "| q24 4K W=1 | 15.3 | 9.0 today | over floor | 1.699 | 1.7 | 1.35 "
            "| - | - | met |",
            text,
        )
        self.assertIn("2 bars met, 0 of 1 aims met.", text)

    def test_another_floor_than_recorded_does_not_count(self):
        # 1.7 of 9.2, which was recorded, are 15.64.
        for us, verdict in ((15.6, "met"), (15.7, "MISSED")):
            for floor in (8.8, 9.7, None):
                lines = outcome(record(1, us, floor), record(16, 10, floor))
                rows, text, passes = judge(
                    [run(bars=BARS)], {"q24 4K": lines}
                )
                self.assertEqual(rows[0].verdict, verdict)
                self.assertEqual(passes, verdict == "met")
                self.assertEqual(rows[0].floor.us, 9.2)
        self.assertIn("Missed (1): q24 4K W=1.", text)
        self.assertIn("| 9.2 recorded, today none |", text)

    def test_what_was_not_measured_fails(self):
        stopped = outcome(record(1, 12, 9.2), failure="STOPPED: time is up")
        _, text, passes = judge([run(bars=BARS)], {"q24 4K": stopped})
        self.assertFalse(passes)
        self.assertIn("Not measured (1): q24 4K W=16.", text)

    def test_a_run_over_another(self):
        base = run("base", [8, 16])
        over = run("over", [16], [{"of": "base", "tokens": [16], "must": 1.04}])
        wide = run(
            "wide",
            [16],
            [{"of": "base", "of_tokens": 8, "tokens": [16], "must": 1.06}],
        )
        outcomes = {
            "base": outcome(record(8, 100), record(16, 110)),
            "over": outcome(record(16, 114.4)),
            "wide": outcome(record(16, 106.1)),
        }
        rows, _, _ = judge([base, over, wide], outcomes)
        self.assertEqual(
            [row.verdict for row in rows], ["", "", "met", "MISSED"]
        )
        outcomes["base"] = outcome(record(8, 100))
        rows, _, _ = judge([base, over], outcomes)
        self.assertEqual(rows[-1].verdict, "NOT MEASURED")

    def test_a_rate_has_to_be_large(self):
        base = run("base", [8])
        bar = {"of": "base", "rate": True, "tokens": [8], "must": 0.9}
        for us, verdict in ((222, "met"), (223, "MISSED")):
            outcomes = {
                "base": outcome(record(8, 100)),
                "ragged": outcome(record(8, us, bytes=2000)),
            }
            rows, _, _ = judge([base, run("ragged", [8], [bar])], outcomes)
            self.assertEqual(rows[1].verdict, verdict)

    def test_a_time_that_is_more_than_that_of_another_run(self):
        bar = {"less": "base", "tokens": [8], "must": 2.5}
        over = run("over", [8], [bar])
        # Less than its own part is measured badly, and no proof.
        cases = ((22.2, "MISSED"), (24.8, "met"), (24.801, "MISSED"))
        for us, verdict in cases:
            outcomes = {
                "over": outcome(record(8, us)),
                "base": outcome(record(8, 22.3)),
            }
            rows, text, _ = judge([over, run("base", [8])], outcomes)
            self.assertEqual(rows[0].verdict, verdict)
        self.assertIn("| us more than base W=8 | 2.501 | 2.5 |", text)
        outcomes["base"] = outcome()
        rows, _, passes = judge([over], outcomes)
        self.assertEqual(rows[0].verdict, "NOT MEASURED")
        self.assertFalse(passes)

    def test_sweeps(self):
        bar = {"of": "sweeps", "tokens": [16], "must": 1}
        two = outcome(record(16, 10, sweeps=2))
        rows, _, _ = judge([run(tokens=[16], bars=[bar])], {"q24 4K": two})
        self.assertEqual(rows[0].verdict, "MISSED")

    def test_peers_are_scaled_by_the_floor_and_have_a_mean(self):
        one = run(tokens=[1], peers=True)
        lines = outcome(record(1, 8.95, 9.2))
        _, text, passes = judge([one], {"q24 4K": lines})
        self.assertTrue(passes, text)
        self.assertIn("| 17.6 fa3-s48 | 0.51 |", text)
        _, text, _ = judge([one], {"q24 4K": outcome(record(1, 8.95, 8.9))})
        self.assertIn("| 17.0 fa3-s48 | 0.53 |", text)
        slow = outcome(record(1, 17, 9.2))
        _, text, passes = judge([one], {"q24 4K": slow})
        self.assertFalse(passes)
        self.assertIn("geometric mean 0.96", text)

    def test_a_ragged_batch_has_peers_by_name(self):
        one = run(tokens=[9], peers=["draft-rag", 8, "sum35275"])
        _, text, _ = judge([one], {"q24 4K": outcome(record(9, 45))})
        self.assertIn("| 57.3 fi-fa2-p64 | 0.79 |", text)


class Cells(unittest.TestCase):
    def test_bars_name_tokens_and_runs_that_are_there(self):
        runs = {one["name"]: one for one in RUNS}
        self.assertEqual(len(runs), len(RUNS))
        files = {verdicts.file_of(one) for one in RUNS}
        self.assertEqual(len(files), len(runs))
        for one in RUNS:
            self.assertTrue(("context" in one) != ("ragged" in one))
            for bar in one["bars"]:
                self.assertLessEqual(set(bar["tokens"]), set(one["tokens"]))
                other = verdicts.other_of(bar)
                if other is None:
                    continue
                others = [bar.get("of_tokens")] if "of_tokens" in bar else (
                    bar["tokens"]
                )
                self.assertLessEqual(set(others), set(runs[other]["tokens"]))

    def test_a_sweep_alone_is_of_the_same_problem(self):
        runs = {one["name"]: one for one in RUNS}
        pairs = [
            (one, runs[bar["less"]])
            for one in RUNS
            for bar in one["bars"]
            if "less" in bar
        ]
        self.assertEqual(len(pairs), 18)
        for one, alone in pairs:
            self.assertGreaterEqual(one["context"], 16384)
            self.assertEqual(alone["context"], one["context"])
            self.assertEqual(
                alone["options"], f"{one['options']} --sweep-only --no-floor"
            )

    def test_ragged_batches_have_the_recorded_keys(self):
        for one in RUNS:
            if not isinstance(one.get("peers"), list):
                continue
            _, batch, total = one["peers"]
            contexts = [int(keys) for keys in one["ragged"].split(",")]
            self.assertEqual(len(contexts), batch)
            self.assertEqual(f"sum{sum(contexts) + 9 * batch}", total)

    def test_a_uniform_batch_has_the_bytes_of_the_ragged_one(self):
        self.assertEqual(131072 + 31 * 4096, 32 * 8064)
        names = [one["name"] for one in RUNS]
        for one in RUNS:
            if one.get("ragged") == "131072,4096x31":
                self.assertEqual(one["bars"][0]["must"], 0.9)
                base = RUNS[names.index(one["bars"][0]["of"])]
                self.assertEqual((base["context"], base["batch"]), (8064, 32))

    def test_recorded_peers_know_the_cells(self):
        for one in RUNS:
            if not one.get("peers"):
                continue
            peers = one["peers"]
            for tokens in one["tokens"]:
                name = one["name"].split()[0]
                place = records.Place(
                    "draft-uni" if name == "draft" else name,
                    one.get("batch", 1),
                    one.get("context"),
                )
                if isinstance(peers, list):
                    place = records.Place(*peers)
                self.assertIn(records.Cell(place, tokens), PEERS.peers)


if __name__ == "__main__":
    unittest.main()
