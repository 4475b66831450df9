"""Tests of test/gpu/processes.py and of the verdicts of prove-kernels."""

import os
import stat
import subprocess
import sys
import tempfile
import unittest

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
from processes import Job, run_all, tests_verdict


def python(name, text):
    return Job(name, [sys.executable, "-c", text])


class Processes(unittest.TestCase):
    def test_each_ends_with_its_status_and_output(self):
        jobs = [
            python("good", "print('all well')"),
            python("bad", "raise SystemExit('broken')"),
            Job("none", ["/no/such/program"]),
            Job("env", ["sh", "-c", "echo $PROOF"], {"PROOF": "seen"}),
        ]
        ends = {end.job.name: end for end in run_all(jobs, 2, 60)}
        self.assertEqual(ends["good"][1:3], (0, "all well\n"))
        self.assertEqual(ends["bad"][1:3], (1, "broken\n"))
        self.assertEqual(ends["none"].status, "(No such file or directory)")
        self.assertEqual(ends["env"].text, "seen\n")

    def test_time_kills_what_runs_and_starts_no_more(self):
        jobs = [python(name, "import time; time.sleep(60)") for name in "ab"]
        ends = {end.job.name: end.status for end in run_all(jobs, 1, 0.5)}
        self.assertEqual(ends["a"], "(time is up)")
        self.assertEqual(ends["b"], "(time is up before it began)")

    def test_a_skipped_test_proves_nothing(self):
        passed = "[  PASSED  ] 12 tests.\n"
        self.assertEqual(tests_verdict(passed), (True, "12 tests passed"))
        skipped = passed + "[  SKIPPED ] 1 test, listed below:\n"
        self.assertFalse(tests_verdict(skipped)[0])
        self.assertFalse(tests_verdict("[  PASSED  ] 0 tests.\n")[0])


PROVE_KERNELS = os.path.join(here, "prove-kernels")
# Programs that print what the test says, in place of those of --bin. They are
# all that is on PATH.
QUALIFY = """#!/bin/sh
case "$*" in
*$BROKEN*) echo "FAIL case 7"; echo "1 passed, 1 failed, 0 refused"; exit 1;;
*) echo "3 passed, 0 failed, 1 refused";;
esac
"""
TESTS = """#!/bin/sh
echo "$TOKENTILE_TEST_REPLAYS replays of one graph with 7 steps, each checked"
echo "[  PASSED  ] 1 test."
"""


class ProveKernels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.write("ninfer-qualify", QUALIFY)
        self.write("gpu-tests", TESTS)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)

    def prove(self, *options, broken="nothing-is"):
        done = subprocess.run(
            [
                sys.executable,
                PROVE_KERNELS,
                f"--bin={self.folder}",
                "--models=a,b",
                "--tokens=8",
                *options,
            ],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"BROKEN": broken, "PATH": self.folder},
        )
        return done.returncode, done.stdout

    def test_all_groups_hold(self):
        status, text = self.prove("--specs=25", "--replays=10")
        self.assertEqual(status, 0, text)
        for line in (
            r"holds   random +9 passed, 0 failed, 3 refused in 3 processes",
            r"holds   auto +12 passed, 0 failed, 4 refused in 4 ",
            r"holds   mma +12 passed",
            r"holds   replay +60 replays, each checked, in 6 processes",
            r"20 processes, 5 groups: 5 hold, 0 failed, 0 skipped; proved",
        ):
            self.assertRegex(text, line)

    def test_one_failure_fails_its_group(self):
        status, text = self.prove("--groups=models", broken="--model=b")
        self.assertEqual(status, 1)
        self.assertRegex(text, r"FAILED  mma +8 passed, 2 failed")
        self.assertIn("mma, b W=8, 3 requests: 1: ", text)
        self.assertIn("  FAIL case 7", text)

    def test_sanitizers_need_their_tool(self):
        status, text = self.prove("--groups=", "--sanitizers")
        self.assertEqual(status, 1)
        self.assertRegex(text, "SKIPPED sanitizers +compute-sanitizer is not")

    def test_sanitizers_run_each_tool(self):
        self.write(
            "compute-sanitizer",
            '#!/bin/sh\nkind=$1\nshift 2\n"$@"\n[ "$kind" != "$BROKEN" ]\n',
        )
        for broken, word in (("none", "holds"), ("--tool=racecheck", "FAILED")):
            status, text = self.prove(
                "--groups=", "--sanitizers", broken=broken
            )
            self.assertRegex(text, rf"{word} +sanitizers +81 passed")
            self.assertEqual(status, word != "holds")

    def test_programs_that_are_not_there(self):
        os.remove(os.path.join(self.folder, "gpu-tests"))
        status, text = self.prove("--groups=replay")
        self.assertEqual(status, 1)
        self.assertIn("(No such file or directory)", text)


if __name__ == "__main__":
    unittest.main()
