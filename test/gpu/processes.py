"""Proofs as processes that run side by side, since compiling kernels takes most
of the time."""

import os
import subprocess
import tempfile
import time
from typing import NamedTuple


class Job(NamedTuple):
    """A process: its name, command and what its environment has beside ours."""

    name: str
    command: list
    environment: dict = {}


class Ending(NamedTuple):
    """`status` is an exit status, or says in words why there is none; `text`
    is all output; `seconds` count from the start of the first process."""

    job: Job
    status: object
    text: str
    seconds: float


def start(job):
    """The process and the file of its output; instead of a process the OSError
    that kept it from starting."""
    out = tempfile.TemporaryFile("w+", errors="replace")
    try:
        process = subprocess.Popen(
            job.command,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=os.environ | job.environment,
        )
    except OSError as error:
        process = error
    return process, out


def ending(job, status, out, seconds):
    out.seek(0)
    with out:
        return Ending(job, status, out.read(), seconds)


def run_all(jobs, at_once, seconds):
    """Runs jobs, `at_once` of them at any time, in order; yields the Ending of
    each as it ends. What has not ended after `seconds` is killed or not even
    started, and its status says so."""
    begin = time.monotonic()
    waiting, running = list(jobs), []
    while waiting or running:
        passed = time.monotonic() - begin
        while waiting and len(running) < at_once and passed <= seconds:
            job = waiting.pop(0)
            process, out = start(job)
            if isinstance(process, OSError):
                yield ending(job, f"({process.strerror})", out, passed)
            else:
                running.append((job, process, out))
        for entry in list(running):
            job, process, out = entry
            status = process.poll()
            if status is None and passed > seconds:
                process.kill()
                process.wait()
                status = "(time is up)"
            if status is not None:
                running.remove(entry)
                yield ending(job, status, out, passed)
        if passed > seconds:
            for job in waiting:
                yield Ending(job, "(time is up before it began)", "", passed)
            waiting = []
        time.sleep(0.05)


def print_failure(text):
    """The lines of an output that say what failed, or else its last ones."""
    words = ("Failure", "FAIL", "SKIPPED", "rror", "differs", "=========")
    lines = text.splitlines()
    told = [line for line in lines if any(word in line for word in words)]
    for line in (told or lines)[-40:]:
        print(f"  {line}", flush=True)


def tests_verdict(text):
    """Whether the output of a GoogleTest program is a proof, and what it says
    in a few words: a test that was skipped proves nothing."""
    passed = count_of(text, "[  PASSED  ]")
    skipped = count_of(text, "[  SKIPPED ]")
    words = f"{passed} tests passed"
    if skipped:
        words += f", {skipped} skipped"
    return passed > 0 and not skipped, words


def count_of(text, label):
    """The N of the last line "LABEL N test..." of GoogleTest, or 0."""
    for line in reversed(text.splitlines()):
        parts = line.removeprefix(label).split()
        if line.startswith(label) and len(parts) > 1 and parts[0].isdigit():
            return int(parts[0])
    return 0
