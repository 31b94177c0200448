"""Asks `kvcheck expect` for the exact answers to many scenarios, one process for a batch."""

import json
import os
import pathlib
import subprocess
import tempfile

TOOL = os.environ.get("KVCHECK_TOOL", "")


def expected_answers(scenarios: list[dict], timeout: float = 300) -> list[dict]:
    """One answer object for each scenario: scenario, hash, steps; or {"error": reason}."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "cases.jsonl"
        file.write_text("".join(json.dumps(scenario) + "\n" for scenario in scenarios))
        result = subprocess.run([TOOL, "expect", str(file), "--json", "--inputs"],
                                capture_output=True, text=True, timeout=timeout, check=False)
    answers = [json.loads(line) for line in result.stdout.splitlines() if line]
    if len(answers) != len(scenarios):  # An exit code alone tells of invalid scenarios too.
        raise RuntimeError(f"{len(answers)} answers to {len(scenarios)} scenarios; exit code "
                           f"{result.returncode}: {result.stderr[-500:]}")
    return answers
