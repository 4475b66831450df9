"""Tests of bench/session.py: what programs that fail or are stopped leave."""

import contextlib
import io
import os
import sys
import tempfile
import unittest

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "../../bench"))
from session import Session, read_finished

# Writes two lines and a part of a third to the file of --json, then does what
# the first argument says.
WRITER = """
import sys, time
path = sys.argv[-1].removeprefix("--json=")
with open(path, "w") as file:
    file.write('{"a": 1}\\n{"a": 2}\\n{"a"')
if sys.argv[1] == "wait":
    time.sleep(60)
sys.exit(1)
"""


class Sessions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "new")

    def run_writer(self, session, do):
        with contextlib.redirect_stdout(io.StringIO()) as told:
            command = [sys.executable, "-c", WRITER, do]
            outcome = session.run(command, "a.jsonl")
        return outcome, told.getvalue()

    def test_a_failure_keeps_finished_lines(self):
        session = Session(self.folder, 60)
        outcome, told = self.run_writer(session, "fail")
        self.assertEqual(outcome.records, [{"a": 1}, {"a": 2}])
        self.assertEqual(outcome.failure, "FAILED with status 1")
        self.assertIn("s, FAILED with status 1", told)

    def test_time_ends_a_program_and_then_starts_none(self):
        session = Session(self.folder, 2)
        outcome, _ = self.run_writer(session, "wait")
        self.assertEqual(outcome.failure, "STOPPED: time is up")
        self.assertEqual(len(outcome.records), 2)
        outcome, _ = self.run_writer(session, "fail")
        self.assertEqual(outcome.failure, "NOT STARTED: time is up")
        self.assertEqual(outcome.records, [])

    def test_a_program_that_is_not_there(self):
        session = Session(self.folder, 60)
        with contextlib.redirect_stdout(io.StringIO()):
            outcome = session.run([f"{self.folder}/none"], "a.jsonl")
        self.assertEqual(outcome.failure, "FAILED: No such file or directory")

    def test_no_file_has_no_records(self):
        self.assertEqual(read_finished(f"{self.folder}/none"), [])


if __name__ == "__main__":
    unittest.main()
