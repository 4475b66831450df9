"""Tests of bench/spec/report.py: tables, bars, cells that are not there."""

import os
import sys
import unittest

here = os.path.dirname(os.path.abspath(__file__))
bench = os.path.join(here, "../../bench")
sys.path[:0] = [os.path.join(bench, "spec"), bench]
import report

BATCHES = [1, 8]


def attention(route, context, batch, us):
    return {
        "query_heads": 32, "kv_heads": 8, "head_dim": 128, "window": 2048,
        "page": 64, "tokens": 9, "mode": route, "context": context,
        "batch": batch, "launches": 1, "bytes": 5_400_000,
        "time": {"median_us": us}, "device": "H200", "chip": "sm_90a",
        "cache": "cold", "samples": 31,
    }  # fmt: skip


def step(route, mode, batch, launches=40):
    is_graph = mode == "graph"
    return {
        "target": "seed:1", "draft": "agree:0.8", "width": 8, "batch": batch,
        "draft_route": route, "mode": mode, "tokens_per_second": 900.0,
        "plain_tokens_per_second": 300.0, "step_us": 1000.0,
        "phase_us": {"propose": 4, "verify": 3, "accept": 2, "append": 1},
        "queued_by_step": {
            "graph_launches": int(is_graph),
            "kernel_launches": 0 if is_graph else launches,
        },
    }  # fmt: skip


def all_attention(batched=20.0):
    us = {"batched": batched, "padded": 25.0, "loop": 100.0, "reattend": 9e4}
    return [
        attention(route, context, batch, us[route])
        for context in (1300, "200:8000")
        for route in report.ROUTES
        for batch in BATCHES
    ]


def all_steps():
    return [
        step(route, mode, batch)
        for route in report.STEP_ROUTES
        for mode in report.MODES
        for batch in BATCHES
    ]


class Report(unittest.TestCase):
    def test_holds_when_all_is_there_and_within_the_bars(self):
        text, passes = report.report(all_attention(), all_steps(), BATCHES)
        self.assertTrue(passes, text)
        self.assertIn("| batched, us | 20.0 | 20.0 |", text)
        self.assertIn("| MB that it must move | 5.4 | 5.4 |", text)
        self.assertIn(
            "| 8 | loop | 900 | 3.00 | 1000 | 1000 | 4 | 3 | 2 | 1 | 1 | 40 |",
            text,
        )
        self.assertIn(
            "| batched over loop, 1300 keys, window 2048, c=8 | 0.20 | 0.5 "
            "| holds |",
            text,
        )
        self.assertNotIn("Not measured", text)

    def test_a_slow_kernel_misses(self):
        text, passes = report.report(all_attention(51), all_steps(), BATCHES)
        self.assertFalse(passes)
        for line in (
            "| batched attention, 1300 keys, window 2048, c=8, us | 51.0 | 30 "
            "| MISSED |",
            "| batched over loop, 200:8000 keys, window 2048, c=8 | 0.51 | 0.5 "
            "| MISSED |",
        ):
            self.assertIn(line, text)

    def test_launches_that_grow_with_requests_miss(self):
        steps = [
            step(route, mode, batch, launches=40 + (batch == 8))
            for route in report.STEP_ROUTES
            for mode in report.MODES
            for batch in BATCHES
        ]
        text, passes = report.report(all_attention(), steps, BATCHES)
        self.assertFalse(passes)
        self.assertIn(
            "| most launches of a step at any c, eager | 41 | 40 | MISSED |",
            text,
        )

    def test_names_what_was_not_measured(self):
        text, passes = report.report(
            all_attention()[:-1], all_steps()[1:], BATCHES
        )
        self.assertFalse(passes)
        self.assertIn(
            "Not measured (2): reattend attention (200:8000 keys, window "
            "2048) c=8, "
            "batched graph step c=1.",
            text,
        )
        text, passes = report.report([], [], BATCHES)
        self.assertFalse(passes)


if __name__ == "__main__":
    unittest.main()
