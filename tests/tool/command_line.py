"""Runs the tool in an empty folder: what the tests of its commands share."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ADAPTERS = HERE.parent / "kernels" / "adapters"
TOOL = os.environ.get("KVCHECK_TOOL", "")

HELD, COUNTEREXAMPLE, UNDECIDED, BAD_USAGE = 0, 1, 2, 254

THREAD_34226 = {
    "schema": 1, "operator": "attention", "opset": 23, "head_size": 1,
    "fill": {"kind": "position_code"},
    "steps": [{"past": 1}, {"append": 2, "queries": 1}],
}
BROKEN_TARGET = "cpu-naive+causal_skipped_single_query"


class CommandLine(unittest.TestCase):
    """Runs the tool in an empty folder."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def kvcheck(self, *arguments, environment=None):
        variables = {key: value for key, value in os.environ.items()
                     if not key.startswith("KVCHECK_")}
        variables.update(environment or {})
        # A guard against hanging, below that of ctest; a slow machine needs minutes for a sweep.
        return subprocess.run([TOOL, *map(str, arguments)], cwd=self.path, env=variables,
                              capture_output=True, text=True, timeout=280, check=False)

    def write(self, name, content):
        file = self.path / name
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return file

    def refused(self, *arguments, words=(), environment=None):
        """The command ends with 254 and one message that holds `words`."""
        result = self.kvcheck(*arguments, environment=environment)
        self.assertEqual(result.returncode, BAD_USAGE, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        return result
