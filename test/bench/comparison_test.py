"""The arithmetic between result files and tables and pictures."""

import json
import math
import os
import sys
import tempfile
import unittest

sys.path.insert(
    0, os.path.join(os.path.dirname(__file__), "..", "..", "bench")
)
import comparison
import records
import series
from records import Cell, Place, Times

PLACE = Place("q24", 1, 4096)
CELL = Cell(PLACE, 8)


def recorded(times, floors=None, contiguous=()):
    return Times(times, floors or {}, frozenset(contiguous))


def line(**changes):
    """A line as ninfer-bench writes it."""
    record = {
        "peer": "tokentile",
        "query_heads": 24,
        "kv_heads": 4,
        "head_dim": 256,
        "causal": True,
        "window": 0,
        "layout": "page_major",
        "mode": "one launch",
        "tokens": 8,
        "context": 4096,
        "batch": 1,
        "table": "identity",
        "time": {"median_us": 20.0},
        "floor": {"median_us": 9.0},
        "device": "a GPU",
    }
    record.update(changes)
    return json.dumps(record) + "\n"


class FileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path


class ResultsTest(FileTest):
    def test_one_launch_of_the_asked_table_counts(self):
        path = self.write(
            "r.jsonl",
            line()
            + line(mode="chunks of 4", time={"median_us": 30.0})
            + line(table="shuffled", time={"median_us": 21.0})
            + line(head_dim=64),
        )
        results = records.read_results([path])
        self.assertEqual(results.peers, {CELL: {"tokentile": 20.0}})
        self.assertEqual(results.devices, {"a GPU"})
        shuffled = records.read_results([path], "shuffled")
        self.assertEqual(shuffled.ours(), {CELL: 21.0})

    def test_a_second_time_of_a_cell_is_refused(self):
        path = self.write("r.jsonl", line() + line())
        with self.assertRaisesRegex(
            records.ResultError, "second time of tokentile at q24 4K W=8"
        ):
            records.read_results([path])

    def test_what_is_no_record_is_named_by_its_line(self):
        for text, reason in (
            ("{\n", "r.jsonl:2: "),
            ("{}\n", "r.jsonl:2: no field 'query_heads'"),
        ):
            path = self.write("r.jsonl", line() + text)
            with self.assertRaisesRegex(records.ResultError, reason):
                records.read_results([path])

    def test_the_floor_of_a_place_is_the_median_over_its_widths(self):
        lines = [
            line(tokens=width, floor={"median_us": us})
            for width, us in ((1, 9.0), (2, 9.2), (4, 12.0))
        ]
        results = records.read_results([self.write("r.jsonl", "".join(lines))])
        self.assertEqual(results.floors, {PLACE: 9.2})

    def test_peers_of_the_same_run(self):
        path = self.write(
            "r.jsonl",
            line() + line(peer="flex", layout="contiguous"),
        )
        results = records.read_results([path])
        self.assertEqual(results.peers[CELL], {"tokentile": 20, "flex": 20})
        self.assertEqual(results.contiguous, {"flex"})


class RecordedTest(FileTest):
    HEAD = "# said about it\nworkload,peer,page,batch,W,ctx,us\n"

    def test_runs_floors_and_contiguous_peers(self):
        path = self.write(
            "p.csv",
            self.HEAD
            + "q24,floor,16,1,,4096,9.2\n"
            + "q24,fa3,16,1,8,4096,20\nq24,fa3,16,1,8,4096,19\n"
            + "q24,fa3,16,1,8,4096,40\nq24,sdpa-flash,0,1,8,4096,10\n"
            + "draft-rag,fa3,16,2,9,sum9712,23\n",
        )
        got = records.read_recorded(path)
        self.assertEqual(got.peers[CELL], {"fa3": 20, "sdpa-flash": 10})
        self.assertEqual(got.floors, {PLACE: 9.2})
        self.assertEqual(got.contiguous, {"sdpa-flash"})
        ragged = Cell(Place("draft-rag", 2, "sum9712"), 9)
        self.assertEqual(got.peers[ragged], {"fa3": 23})

    def test_the_best_that_reads_pages(self):
        times = {CELL: {"fa3": 20, "fa3-s24": 19, "flex": 5}}
        peers = recorded(times, contiguous=["flex"])
        self.assertEqual(comparison.best_paged(CELL, peers), ("fa3-s24", 19))
        self.assertEqual(
            comparison.best_by_family(CELL, peers),
            {"FlashAttention-3": 19, "FlexAttention": 5},
        )

    def test_a_paged_library_is_not_drawn_by_its_contiguous_setting(self):
        times = {CELL: {"fa3": 20, "fa3-contig": 18}}
        peers = recorded(times, contiguous=["fa3-contig"])
        self.assertEqual(
            comparison.best_by_family(CELL, peers), {"FlashAttention-3": 20}
        )


class ScaleTest(unittest.TestCase):
    def test_a_floor_within_four_percent_counts(self):
        self.assertEqual(comparison.usable_floor(97, 100), 97)
        self.assertEqual(comparison.usable_floor(103, 100), 103)

    def test_else_the_recorded_one_stands(self):
        self.assertEqual(comparison.usable_floor(95, 100), 100)
        self.assertEqual(comparison.usable_floor(105, 100), 100)
        self.assertEqual(comparison.usable_floor(None, 100), 100)

    def test_recorded_times_are_scaled_by_the_floors(self):
        self.assertEqual(comparison.scale(PLACE, {PLACE: 97}, {PLACE: 100}), 0.97)
        self.assertEqual(comparison.scale(PLACE, {PLACE: 90}, {PLACE: 100}), 1)
        self.assertEqual(comparison.scale(PLACE, {PLACE: 97}, {}), 1)


class VerdictTest(unittest.TestCase):
    def judge(self, ours, theirs, workload="q24"):
        place = Place(workload, 1, 4096)
        cells = [Cell(place, width) for width in (1, 8, 12)]
        results = Times(
            {
                cell: {"tokentile": us}
                for cell, us in zip(cells, ours)
                if us is not None
            },
            {place: 98.0},
            frozenset(),
        )
        peers = {
            cell: {"fa3": us, "flex": us / 2}
            for cell, us in zip(cells, theirs)
        }
        return comparison.judge(
            results, recorded(peers, {place: 100.0}, ["flex"])
        )

    def test_worst_and_geometric_mean(self):
        # Scaled by 0.98; 12 tokens are not judged.
        verdict = self.judge([49, 98 * 0.8, 500], [100, 100, 100])
        self.assertEqual(len(verdict.ratios), 2)
        self.assertAlmostEqual(verdict.worst.value(), 0.8)
        self.assertEqual(verdict.worst.cell.tokens, 8)
        self.assertAlmostEqual(verdict.mean, math.sqrt(0.5 * 0.8))
        self.assertTrue(verdict.passes())

    def test_one_cell_above_the_bar_misses(self):
        self.assertFalse(self.judge([40, 98.5, 1], [100] * 3).passes())

    def test_a_mean_above_its_bar_misses(self):
        self.assertFalse(self.judge([93, 93, 1], [100] * 3).passes())

    def test_a_cell_that_was_not_measured_misses(self):
        verdict = self.judge([49, None, 1], [100] * 3)
        self.assertEqual([cell.tokens for cell in verdict.missing], [8])
        self.assertFalse(verdict.passes())

    def test_drafts_are_judged_if_measured(self):
        verdict = self.judge([49, None, None], [100] * 3, "draft-uni")
        self.assertEqual(len(verdict.ratios), 1)
        self.assertEqual(verdict.missing, [])

    def test_nothing_in_common(self):
        verdict = self.judge([None] * 3, [100] * 3)
        self.assertIsNone(verdict.worst)
        self.assertFalse(verdict.passes())


class SeriesTest(unittest.TestCase):
    def test_peers_of_the_run_replace_recorded_ones_of_the_library(self):
        results = Times(
            {CELL: {"tokentile": 20, "fa3-p64": 21}},
            {PLACE: 97.0},
            frozenset(),
        )
        peers = recorded({CELL: {"fa3": 10, "fi-fa2": 20}}, {PLACE: 100.0})
        both = comparison.combine(results, peers)
        self.assertEqual(both.peers[CELL], {"fa3-p64": 21, "fi-fa2": 19.4})
        self.assertEqual(both.floors, {PLACE: 97.0})
        lines = series.lines_of([CELL], results, both)
        self.assertEqual(lines["TokenTile"], [(CELL, 20)])
        self.assertEqual(lines["best paged peer"], [(CELL, 19.4)])
        self.assertEqual(lines["FlashAttention-3"], [(CELL, 21)])

    def test_a_line_mostly_above_the_limit_is_outside(self):
        points = [(CELL, us) for us in (1, 2, 9)]
        lines = {"low": points, "high": points[1:] + points[2:]}
        inside, outside = series.split_by_limit(lines, 2)
        self.assertEqual(list(inside), ["low"])
        self.assertEqual(list(outside), ["high"])

    def test_labels_are_moved_apart_about_their_middle(self):
        self.assertEqual(series.spread([30, 10, 11], 4), [30, 8.5, 12.5])
        self.assertEqual(series.spread([0, 1, 2], 4), [-3, 1, 5])
        self.assertEqual(series.spread([5], 4), [5])


if __name__ == "__main__":
    unittest.main()
