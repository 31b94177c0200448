"""`kvcheck serve`: an own target for a program at the other end, which speaks in frames."""

import os
import pathlib
import pty
import signal
import subprocess
import sys
import unittest

from command_line import BAD_USAGE, COUNTEREXAMPLE, HELD, TOOL, UNDECIDED, CommandLine

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "kernels" / "adapters"))

from kvcheck_frames import read_frame, write_frame  # noqa: E402


class Serves(CommandLine):
    def start(self, target):
        process = subprocess.Popen([TOOL, "serve", target], cwd=self.path, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for stream in (process.stdin, process.stdout, process.stderr):
            self.addCleanup(stream.close)
        return process

    def greet(self, process):
        write_frame(process.stdin.fileno(), {"kind": "hello", "id": 1, "protocol": 1})
        return read_frame(process.stdout)[0]

    def script(self, *lines):
        file = self.write("target", "\n".join(["#!/bin/sh", *lines]) + "\n")
        file.chmod(0o755)
        return file

    def test_answers_until_the_requests_end(self):
        process = self.start("cpu-flash")
        hello = self.greet(process)
        self.assertEqual((hello["answer"], hello["name"]), ("ok", "cpu-flash"))
        self.assertIn("rollback", hello["capabilities"]["features"])
        process.stdin.close()
        self.assertEqual(process.wait(30), HELD)
        self.assertEqual(process.stdout.read(), b"")
        self.assertEqual(process.stderr.read(), b"")

    def test_ends_at_the_first_signal(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            process = self.start("cpu-naive")
            self.greet(process)
            process.send_signal(number)
            self.assertEqual(process.wait(30), -number)

    def test_a_target_that_there_is_not(self):
        for name in ("cpu-navie", "onnxruntime", "exec:./x", "cpu-naive+no_such_fault"):
            result = subprocess.run([TOOL, "serve", name], input=b"", capture_output=True,
                                    timeout=60, check=False)
            self.assertEqual(result.returncode, BAD_USAGE, name)
            self.assertEqual(result.stdout, b"")
            self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)

    def test_a_gpu_that_is_not_there(self):
        listed = self.kvcheck("list", "targets").stdout
        reason = next(line for line in listed.splitlines() if line.startswith("cuda "))
        if "available" in reason.split():
            self.skipTest("there is a GPU")
        result = subprocess.run([TOOL, "serve", "cuda"], input=b"", capture_output=True,
                                timeout=60, check=False)
        self.assertEqual(result.returncode, UNDECIDED, result.stderr)
        self.assertIn(reason.split(maxsplit=1)[1].removeprefix("0.1.0").strip(),
                      result.stderr.decode())

    def test_a_person_at_a_terminal_is_told_what_to_run(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        for streams in ({"stdin": theirs, "stdout": subprocess.PIPE},
                        {"stdin": subprocess.DEVNULL, "stdout": theirs}):
            result = subprocess.run([TOOL, "serve", "cpu-flash"], stderr=subprocess.PIPE,
                                    timeout=60, check=False, **streams)
            self.assertEqual(result.returncode, BAD_USAGE)
            self.assertIn(b"kvcheck run --target cpu-flash", result.stderr)
        os.close(theirs)

    def test_is_judged_as_any_program(self):
        program = self.script(f"exec {TOOL} serve cpu-naive")
        result = self.kvcheck("run", "--target", f"exec:{program}", "--cases", 20, "--seed", 1)
        self.assertEqual(result.returncode, HELD, result.stdout + result.stderr)
        program = self.script(f"exec {TOOL} serve cpu-naive+window_one_wide")
        result = self.kvcheck("run", "--target", f"exec:{program}", "--cases", 20, "--seed", 1,
                              "--shrink-time", 5)
        self.assertEqual(result.returncode, COUNTEREXAMPLE, result.stdout + result.stderr)

    def test_the_tool_names_itself_to_the_registry(self):
        program = self.script('printf %s "$KVCHECK_PROGRAM" >program', f"exec {TOOL} serve cpu-naive")
        self.kvcheck("run", "--target", f"exec:{program}", "--cases", 1, "--phases", "random")
        self.assertEqual((self.path / "program").read_text(), "/proc/self/exe")
        self.kvcheck("run", "--target", f"exec:{program}", "--cases", 1, "--phases", "random",
                     environment={"KVCHECK_PROGRAM": "/some/kvcheck"})
        self.assertEqual((self.path / "program").read_text(), "/some/kvcheck")


if __name__ == "__main__":
    unittest.main()
