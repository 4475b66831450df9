"""Measuring programs, one after the other, within the time of one session.

They write JSON Lines, each line when its figure is there, so that a session
that runs out of time keeps what was finished.
"""

import json
import os
import subprocess
import time
from typing import NamedTuple


class Outcome(NamedTuple):
    """The records that a program wrote, and why there are no more of them, or
    nothing if it ended well."""

    records: list
    failure: str


def read_finished(path):
    """The records of a JSON Lines file, none if there is no file; a last line
    that was cut short is dropped."""
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


class Session:
    """Commands that share `seconds`, and a folder for their result files."""

    def __init__(self, folder, seconds):
        self.folder = folder
        self.end = time.monotonic() + seconds
        os.makedirs(folder, exist_ok=True)

    def run(self, command, file):
        """Runs a command with --json=FILE, a name within the folder; says the
        command and how it ended. Returns its Outcome."""
        path = os.path.join(self.folder, file)
        if os.path.exists(path):
            os.remove(path)
        command = [*command, f"--json={path}"]
        print("$", *command, flush=True)
        start = time.monotonic()
        failure = self.wait(command)
        ending = f", {failure}" if failure else ""
        print(f"{time.monotonic() - start:.1f} s{ending}\n", flush=True)
        return Outcome(read_finished(path), failure)

    def wait(self, command):
        """Why the command did not end well, or nothing."""
        left = self.end - time.monotonic()
        if left < 1:
            return "NOT STARTED: time is up"
        try:
            done = subprocess.run(
                command, stderr=subprocess.STDOUT, timeout=left
            )
        except subprocess.TimeoutExpired:
            return "STOPPED: time is up"
        except OSError as error:
            return f"FAILED: {error.strerror}"
        if done.returncode:
            return f"FAILED with status {done.returncode}"
        return ""
