"""device_check.sh on a machine whose GPU, tools and programs are stand-ins: each line of its table.

With KVCHECK_COUNTED_STEPS, the path of kvcheck_counted_steps, that program is asked as well.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from compare_counters_test import BEFORE, EXPECTED, HEADER, launch, quoted

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "kernels/cuda/device_check.sh"
COUNTED = os.environ.get("KVCHECK_COUNTED_STEPS")
NO_PERMISSION = ("==PROF== Connected to process 7\\n==ERROR== ERR_NVGPUCTRPERM - The user does not "
                 "have permission to access NVIDIA GPU Performance Counters on the target device 0."
                 "\\n==PROF== Disconnected from process 7\\n")

# PATH holds these and the stand-ins alone, so that no tool of this machine is met.
STANDARD_TOOLS = "bash cat cut date dirname grep mkdir readlink rm sleep tail tee timeout".split()

STAND_INS = {
    "nvidia-smi": '[[ ${FAKE_GPU:-} == none ]] && exit 9; echo "NVIDIA H200, 570.1, 1980 MHz"',
    "compute-sanitizer": """
      log "compute-sanitizer [${KVCHECK_PROGRAM-apart}] $*"
      [[ ${FAKE_RACE:-} == "$2" ]] && {
        echo '========= ERROR SUMMARY: 2 errors'; echo 'page: /tmp/page.html'; exit 9
      }
      "${@:5}" """,
    "ncu": """
      log "ncu $*"
      [[ $1 == --query-metrics ]] && { cat "$STATE/metrics"; exit 0; }
      while [[ $1 == --* ]]; do
        case $1 in
          --log-file) file=$2; shift 2 ;;
          --csv) shift ;;
          *) shift 2 ;;
        esac
      done
      case ${FAKE_NCU:-} in
        permission) printf '%b' "$NO_PERMISSION" >"$file"; exit 1 ;;
        ignored) printf '%b' "$NO_PERMISSION" >"$file"; exit 0 ;;
        broken) echo '==ERROR== Failed to find metric l1tex__x.sum' >"$file"; exit 9 ;;
        silent) echo 'cannot write' >&2; exit 3 ;;
        slow) sleep 60 ;;
      esac
      "$@" && cat "$STATE/ncu.csv" >"$file" """,
    "python3": """
      [[ $1 == */torch_attention.py ]] && {
        [[ ${FAKE_TORCH:-} == there ]] && { echo '| shape | queries |'; exit 0; }
        echo 'ModuleNotFoundError: No module named torch' >&2; exit 1
      }
      [[ ${FAKE_PYTHON:-} == broken && $2 == --metrics ]] && { echo 'no such syntax' >&2; exit 2; }
      exec "$PYTHON" -B "$@" """,
    "cmake": """
      log "cmake $*"
      [[ $1 == --build ]] || exit 0
      [[ ${FAKE_BUILD:-} == broken ]] && exit 2
      cp -r "$STATE/made/." "$2" """,
    "cp": 'exec "$COPY" "$@"',
}

PROGRAMS = {
    "kvcheck": """
      log "kvcheck $*"
      [[ ${FAKE_KVCHECK:-} == finding && $* == *"${FAKE_TARGET:-cuda-q8} "* ]] && {
        echo 'FAILED: 1 check | values.finite'; echo 'page: /tmp/page.html'; exit 1
      }
      [[ ${FAKE_KVCHECK:-} == slow ]] && sleep 60
      echo 'PASSED: 24 checks held'; echo 'page: /tmp/page.html'""",
    "kernels/cuda/kvcheck_device_bench": """
      [[ ${FAKE_BENCH:-} == broken ]] && {
        echo 'kvcheck_device_bench: run: no memory' >&2; exit 1
      }
      echo '| case | ms |'""",
    "kernels/cuda/kvcheck_counted_steps": """
      log "counted $*"
      [[ ${FAKE_COUNTED:-} == "$1" ]] && { echo 'kvcheck_counted_steps: a defect' >&2; exit 1; }
      [[ ${FAKE_COUNTED:-} == 77 && $1 == gpu ]] && { echo 'needs a GPU: none' >&2; exit 77; }
      [[ $1 == gpu ]] || cat "$STATE/simt.jsonl" """,
}


def write_csv(path, launches):
    rows = [row for one in launches for row in one]
    path.write_text(BEFORE + quoted(HEADER) + "".join(map(quoted, rows)))


class DeviceCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)
        self.out, self.build = self.top / "out", self.top / "build"
        self.path, self.state = self.top / "bin", self.top / "state"
        for each in (self.path, self.build, self.state / "made"):
            each.mkdir(parents=True)
        for name in STANDARD_TOOLS:
            (self.path / name).symlink_to(shutil.which(name))
        for name, text in STAND_INS.items():
            self.program(self.path / name, text)
        for name, text in PROGRAMS.items():
            self.program(self.build / name, text)
        (self.state / "metrics").write_text("")
        (self.state / "simt.jsonl").write_text(
            "".join(json.dumps(line) + "\n" for line in EXPECTED))
        self.profile(*({},) * len(EXPECTED))

    def program(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        log = 'log() { echo "$*" >>"$STATE/calls"; }'
        path.write_text(f'#!{shutil.which("bash")}\n{log}\n{text}\n')
        path.chmod(0o755)

    def profile(self, *changes):
        """What ncu counts: of each launch what EXPECTED holds, but for the changes."""
        write_csv(self.state / "ncu.csv",
                  [launch(i, line["kernel"], **change)
                   for i, (line, change) in enumerate(zip(EXPECTED, changes))])

    def calls(self, name):
        path = self.state / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if line.split()[0] == name]

    def check(self, **variables):
        environment = {"PATH": str(self.path), "STATE": str(self.state), "PYTHON": sys.executable,
                       "CUDA_HOME": str(self.top / "none"), "NO_PERMISSION": NO_PERMISSION,
                       "COPY": shutil.which("cp"), "LC_ALL": "C.UTF-8", **variables}
        done = subprocess.run([str(SCRIPT), str(self.build), str(self.out)], env=environment,
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.stderr, "")
        text = (self.out / "device_check.md").read_text()
        self.assertEqual(text, done.stdout)
        rows = [line.strip("| ").split(" | ") for line in text.split("\n## ")[0].splitlines()
                if line.startswith("| ") and not line.startswith("| check")]
        self.assertTrue(all(len(row) == 3 for row in rows), rows)
        return done.returncode, {row[0]: row[1] for row in rows}, text


class TableOfTheCheck(DeviceCheck):
    def test_everything_holds(self):
        code, rows, text = self.check(FAKE_TORCH="there")
        self.assertEqual(code, 0, text)
        self.assertEqual(rows, {name: "held" for name in (
            "properties of cuda", "properties of cuda-q8", "compute-sanitizer memcheck",
            "compute-sanitizer racecheck", "compute-sanitizer initcheck",
            "compute-sanitizer synccheck", "counted launches, SIMT runtime",
            "counted launches, GPU", "counters of the SIMT runtime", "times", "PyTorch's times")})
        self.assertIn("NVIDIA H200, 570.1", text)
        self.assertIn("\n## Counters\n\n| step | kernel | counter | SIMT | profiler | ratio |\n",
                      text)
        self.assertIn("\n9 of 9 counters agree", text)
        self.assertIn("\n## Times\n\n| case | ms |\n", text)
        self.assertIn("\n## PyTorch\n\n| shape | queries |\n", text)

    def test_a_sanitizer_has_the_kernels_in_its_process(self):
        self.check()
        calls = self.calls("compute-sanitizer")
        self.assertEqual([call.split()[1] for call in calls], ["[]"] * 4, calls)

    def test_no_gpu(self):
        code, rows, text = self.check(FAKE_GPU="none")
        self.assertEqual((code, rows), (77, {}))
        self.assertIn("No GPU here: nothing was checked.", text)
        (self.path / "nvidia-smi").unlink()
        self.assertEqual(self.check()[0], 77)
        self.assertEqual(self.calls("kvcheck"), [])

    def test_tools_that_are_not_there(self):
        for name in ("ncu", "compute-sanitizer"):
            (self.path / name).unlink()
        code, rows, text = self.check()
        self.assertEqual(code, 0, text)
        self.assertEqual(rows["compute-sanitizer"],
                         "skipped: compute-sanitizer is not installed")
        self.assertEqual(rows["counters of the SIMT runtime"], "skipped: ncu is not installed")
        self.assertEqual(rows["PyTorch's times"],
                         "skipped: ModuleNotFoundError: No module named torch")
        self.assertNotIn("## Counters", text)

    def test_without_python(self):
        (self.path / "python3").unlink()
        code, rows, text = self.check()
        self.assertEqual(code, 0, text)
        self.assertEqual(rows["counters of the SIMT runtime"], "skipped: python3 is not installed")
        self.assertEqual(rows["PyTorch's times"], "skipped: python3 is not installed")

    def test_a_finding_is_told_by_its_verdict(self):
        code, rows, _ = self.check(FAKE_KVCHECK="finding")
        self.assertEqual(code, 1)
        self.assertEqual(rows["properties of cuda"], "held")
        self.assertEqual(rows["properties of cuda-q8"],
                         "failed (1): FAILED: 1 check / values.finite")

    def test_a_finding_of_a_sanitizer(self):
        code, rows, _ = self.check(FAKE_RACE="racecheck")
        self.assertEqual(code, 1)
        self.assertEqual(rows["compute-sanitizer memcheck"], "held")
        self.assertEqual(rows["compute-sanitizer racecheck"],
                         "failed (9): ========= ERROR SUMMARY: 2 errors")

    def test_times_that_were_not_taken(self):
        code, rows, text = self.check(FAKE_BENCH="broken")
        self.assertEqual(code, 1)
        self.assertEqual(rows["times"], "failed (1): kvcheck_device_bench: run: no memory")
        self.assertNotIn("## Times", text)

    def test_what_an_earlier_run_left_is_not_shown(self):
        self.check()
        _, _, text = self.check(FAKE_BENCH="broken", FAKE_NCU="permission")
        self.assertNotIn("## Times", text)
        self.assertNotIn("## Counters", text)

    def test_time_is_limited(self):
        code, rows, _ = self.check(FAKE_KVCHECK="slow", KVCHECK_DEVICE_SECONDS="2")
        self.assertEqual(code, 1)
        self.assertEqual(rows["properties of cuda"], "not ended in its time")
        self.assertEqual(rows["times"], "not ended in its time")
        self.assertEqual(len(self.calls("kvcheck")), 1)


class CountersInTheTable(DeviceCheck):
    WORDS = "counters of the SIMT runtime"

    def test_they_differ(self):
        self.profile({}, {"stores": "64"}, {"conflicts": ("0", "7", "0", "0")})
        code, rows, text = self.check()
        self.assertEqual(code, 1)
        self.assertEqual(rows[self.WORDS], "differ: 7 of 9 counters agree: sectors within 5%, bank "
                                           "conflicts within 1% of the accesses.")
        self.assertIn("| prefill | prefill_kernel | bank_conflicts | 0 | 7 | **+7** (st 7) |", text)

    def test_no_permission(self):
        for how in ("permission", "ignored"):
            code, rows, text = self.check(FAKE_NCU=how)
            self.assertEqual(code, 0, text)
            self.assertEqual(rows[self.WORDS], "skipped: no permission to read performance "
                                               "counters (ERR_NVGPUCTRPERM)")
            self.assertEqual(rows["times"], "held")

    def test_ncu_fails(self):
        code, rows, _ = self.check(FAKE_NCU="broken")
        self.assertEqual(code, 1)
        self.assertEqual(rows[self.WORDS],
                         "failed (9): ==ERROR== Failed to find metric l1tex__x.sum")
        code, rows, _ = self.check(FAKE_NCU="silent")
        self.assertEqual((code, rows[self.WORDS]), (1, "failed (3): cannot write"))

    def test_the_comparison_does_not_start(self):
        code, rows, _ = self.check(FAKE_PYTHON="broken")
        self.assertEqual((code, rows[self.WORDS]), (1, "failed (2): no such syntax"))
        self.assertEqual(len(self.calls("ncu")), 1)

    def test_ncu_does_not_end(self):
        code, rows, _ = self.check(FAKE_NCU="slow", KVCHECK_DEVICE_SECONDS="3")
        self.assertEqual((code, rows[self.WORDS]), (1, "not ended in its time"))

    def test_launches_do_not_match(self):
        write_csv(self.state / "ncu.csv", [launch(0, EXPECTED[0]["kernel"])])
        code, rows, text = self.check()
        self.assertEqual(code, 1)
        self.assertTrue(rows[self.WORDS].startswith("failed (2): compare_counters.py: "), rows)
        self.assertIn("ends after 1 of 3 launches", rows[self.WORDS])
        self.assertNotIn("## Counters", text)

    def test_a_kernel_fails_without_the_profiler(self):
        for side, words in (("simt", "counted launches, SIMT runtime"),
                            ("gpu", "counted launches, GPU")):
            code, rows, _ = self.check(FAKE_COUNTED=side)
            self.assertEqual(code, 1)
            self.assertEqual(rows[words], "failed (1): kvcheck_counted_steps: a defect")
            self.assertNotIn(self.WORDS, rows)
            self.assertEqual(self.calls("ncu"), [])

    def test_a_build_without_cuda(self):
        code, rows, _ = self.check(FAKE_COUNTED="77")
        self.assertEqual((code, rows["counted launches, GPU"]), (0, "skipped: needs a GPU: none"))

    def test_only_the_metrics_that_are_compared_are_asked_for(self):
        (self.state / "metrics").write_text(
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts   # of conflicts\n")
        self.check()
        asked = self.calls("ncu")[1].split()
        metrics = asked[asked.index("--metrics") + 1].split(",")
        self.assertEqual(len(metrics), 7)
        self.assertIn("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum", metrics)
        for option in ("--csv", "--print-units base", "--print-kernel-base function",
                       "--clock-control none"):
            self.assertIn(option, " ".join(asked))
        self.assertEqual(asked[-2:], [str(self.build / "kernels/cuda/kvcheck_counted_steps"),
                                      "gpu"])


class ProgramsThatAreNotBuilt(DeviceCheck):
    def setUp(self):
        super().setUp()
        self.build.rename(self.state / "programs")
        (self.state / "made").rmdir()
        (self.state / "programs").rename(self.state / "made")
        self.build.mkdir()

    def test_they_are_built_where_they_are_looked_for(self):
        code, rows, text = self.check()
        self.assertEqual(code, 0, text)
        self.assertEqual(rows["counters of the SIMT runtime"], "held")
        configure, build = self.calls("cmake")
        self.assertIn(f"-S {ROOT} -B {self.build} -DKVCHECK_CUDA=ON --preset release", configure)
        self.assertIn(f"--build {self.build} --target kvcheck kvcheck_device_bench "
                      "kvcheck_counted_steps", build)

    def test_a_build_keeps_its_settings(self):
        (self.build / "CMakeCache.txt").write_text("")
        self.check()
        self.assertTrue(self.calls("cmake")[0].endswith(" -DKVCHECK_CUDA=ON"))

    def test_a_build_that_fails(self):
        code, rows, text = self.check(FAKE_BUILD="broken")
        self.assertEqual((code, rows), (1, {}))
        self.assertIn("The build failed; see ", text)


@unittest.skipUnless(COUNTED, "needs KVCHECK_COUNTED_STEPS")
class RealLaunches(DeviceCheck):
    def test_a_profiler_that_counts_the_same_agrees(self):
        self.program(self.build / "kernels/cuda/kvcheck_counted_steps",
                     f'[[ $1 == simt ]] || exit 0; exec "{COUNTED}" simt')
        lines = subprocess.run([COUNTED, "simt"], capture_output=True, text=True, timeout=60,
                               check=True).stdout.splitlines()
        launches = [json.loads(line) for line in lines]
        write_csv(self.state / "ncu.csv",
                  [launch(i, one["kernel"], ("0", f"{one['global_load_sectors']:,}"),
                          str(one["global_store_sectors"]), (str(one["bank_conflicts"]), *"000"))
                   for i, one in enumerate(launches)])
        code, rows, text = self.check()
        self.assertEqual(code, 0, text)
        self.assertEqual(rows["counters of the SIMT runtime"], "held")
        self.assertIn(f"\n{3 * len(launches)} of {3 * len(launches)} counters agree", text)

    def test_what_it_says_without_a_gpu(self):
        done = subprocess.run([COUNTED, "gpu"], capture_output=True, text=True, timeout=60,
                              check=False)
        if done.returncode == 0:
            self.skipTest("there is a GPU here")
        self.assertEqual((done.returncode, done.stdout), (77, ""))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_another_command_line(self):
        for words in ((), ("cpu",), ("simt", "gpu")):
            done = subprocess.run([COUNTED, *words], capture_output=True, text=True, timeout=60,
                                  check=False)
            self.assertEqual((done.returncode, done.stdout), (254, ""))
            self.assertIn("usage: kvcheck_counted_steps simt|gpu", done.stderr)


if __name__ == "__main__":
    unittest.main()
