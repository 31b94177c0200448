"""The launcher sets up what is missing, says so, and passes everything else through."""

import fcntl
import os
import pathlib
import pty
import subprocess
import unittest

from launcher_tree import LauncherTest

FOREIGN = "build/environments/onnxruntime"


class LauncherPassesThrough(LauncherTest):
    def test_arguments_and_folder_reach_the_tool(self):
        done = self.kvcheck("timeline", "--steps", "1 2", "", "*")
        self.assertIn("arguments: [timeline] [--steps] [1 2] [] [*]\n", done.stdout)
        self.assertIn(f"folder: {self.top}\n", done.stdout)

    def test_exit_code_of_the_tool_is_passed_on(self):
        for code in (0, 1, 2, 254, 255):
            self.assertEqual(self.kvcheck("expect", FAKE_EXIT=code).returncode, code)

    def test_tool_finds_environments_and_adapters(self):
        done = self.kvcheck("list", "targets")
        self.assertIn(f"environments: {self.root}/build/environments\n", done.stdout)
        self.assertIn(f"adapters: {self.root}/kernels/adapters\n", done.stdout)

    def test_no_arguments_show_the_help(self):
        self.assertIn("arguments: [--help]\n", self.kvcheck().stdout)

    def test_works_through_a_symbolic_link(self):
        (self.top / "link").symlink_to(self.root / "kvcheck")
        done = subprocess.run([str(self.top / "link"), "list"], env=self.environment(), cwd="/",
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertIn("arguments: [list]\nfolder: /\n", done.stdout)
        self.assertIn(f"adapters: {self.root}/kernels/adapters\n", done.stdout)

    def test_is_silent_when_nothing_is_to_do(self):
        self.kvcheck("run")
        done = self.kvcheck("run")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(self.calls("tool")), 2)


class LauncherInstallsPackages(LauncherTest):
    def test_root_installs_only_what_is_missing(self):
        done = self.kvcheck("list", FAKE_MISSING="cmake libfmt-dev")
        self.assertEqual(done.returncode, 0)
        self.assertIn("kvcheck: installing 2 Debian packages: cmake libfmt-dev\n", done.stderr)
        update, install = self.calls("apt-get")
        self.assertTrue(update.endswith(" update"))
        self.assertTrue(install.endswith(" cmake libfmt-dev"))

    def test_nothing_missing_asks_apt_for_nothing(self):
        self.kvcheck("list")
        self.assertEqual(self.calls("apt-get"), [])

    def test_a_removed_package_whose_settings_are_left_is_missing(self):
        self.kvcheck("list", FAKE_REMOVED="g++")
        self.assertTrue(self.calls("apt-get")[-1].endswith(" g++"))

    def test_without_root_prints_the_one_command_and_stops(self):
        done = self.kvcheck("run", FAKE_MISSING="cmake libfmt-dev", FAKE_UID=1000)
        self.assertEqual(done.returncode, 255)
        self.assertEqual(done.stderr.count("sudo apt-get install -y cmake libfmt-dev\n"), 1)
        self.assertEqual(self.calls(), [])

    def test_without_root_uses_sudo_that_asks_nothing(self):
        done = self.kvcheck("list", FAKE_MISSING="cmake", FAKE_UID=1000, FAKE_SUDO=1)
        self.assertEqual(done.returncode, 0)
        self.assertIn("install --no-install-recommends cmake", self.calls("sudo env")[-1])

    def test_offline_installs_nothing_and_stops(self):
        done = self.kvcheck("run", FAKE_MISSING="g++", KVCHECK_OFFLINE=1)
        self.assertEqual(done.returncode, 255)
        self.assertIn("KVCHECK_OFFLINE forbids installing", done.stderr)
        self.assertEqual(self.calls(), [])

    def test_failing_apt_shows_its_words_and_stops(self):
        done = self.kvcheck("list", FAKE_MISSING="g++", FAKE_APT="broken")
        self.assertEqual(done.returncode, 255)
        self.assertIn("E: no candidate", done.stderr)
        self.assertEqual(self.calls("cmake"), [])

    def test_browser_packages_are_for_tests_alone(self):
        self.kvcheck("list", FAKE_MISSING="chromium")
        self.assertEqual(self.calls("apt-get"), [])
        self.kvcheck("test", FAKE_MISSING="chromium")
        self.assertTrue(self.calls("apt-get")[-1].endswith(" chromium"))

    def test_valgrind_is_for_tests_alone_and_its_absence_stops_nothing(self):
        self.kvcheck("list", FAKE_MISSING="valgrind")
        self.assertEqual(self.calls("apt-get"), [])
        done = self.kvcheck("test", FAKE_MISSING="valgrind", FAKE_APT="broken")
        self.assertTrue(self.calls("apt-get")[-1].endswith(" valgrind"))
        self.assertIn("kvcheck: there is no valgrind: instructions are not counted\n", done.stderr)
        self.assertEqual(done.returncode, 0)

    def test_other_systems_get_the_list_and_go_on(self):
        for name in ("dpkg-query", "apt-get"):
            (self.programs / name).unlink()
        done = self.kvcheck("list")
        self.assertEqual(done.returncode, 0)
        self.assertIn("not a Debian system; needed are what Debian calls cmake ", done.stderr)


class LauncherMakesEnvironments(LauncherTest):
    def failed(self, name="onnxruntime"):
        return (self.root / f"build/environments/{name}.failed").read_text()

    def test_run_makes_the_pinned_environment_once(self):
        self.assertIn("making the Python environment onnxruntime", self.kvcheck("run").stderr)
        self.assertEqual(self.calls("pip"), ["pip onnxruntime==1.32.0 onnx==1.20.0 "])
        self.kvcheck("run")
        self.assertEqual(len(self.calls("pip")), 1)

    def test_environment_without_its_stamp_is_made_again(self):
        self.kvcheck("run")
        (self.root / FOREIGN / "ready").unlink()
        self.kvcheck("run")
        self.assertEqual(len(self.calls("pip")), 2)

    def test_changed_requirements_make_it_again(self):
        self.kvcheck("run")
        self.write("kernels/adapters/requirements-onnxruntime.txt", "onnxruntime==1.33.0\n")
        self.kvcheck("run")
        self.assertEqual(self.calls("pip")[1:], ["pip onnxruntime==1.33.0 "])

    def test_named_releases_get_environments_of_their_own(self):
        self.kvcheck("sweep", "g", "--target", "onnxruntime@1.31.1", "--against=onnxruntime@1.30")
        self.assertEqual(self.calls("pip"), ["pip onnxruntime==1.30 onnx==1.20.0 ",
                                             "pip onnxruntime==1.31.1 onnx==1.20.0 "])
        for release in ("1.30", "1.31.1"):
            self.assertTrue((self.root / f"{FOREIGN}@{release}/ready").is_file())

    def test_commands_that_cannot_use_it_never_wait_for_it(self):
        for arguments in (["timeline"], ["expect", "f"], ["list"], ["report", "onnxruntime"], [],
                          ["run", "--help"], ["run", "--target", "cpu-naive"], ["sweep", "g"],
                          ["replay", "last", "--target=cpu-naive"], ["audit"]):
            self.kvcheck(*arguments)
            self.assertEqual(self.calls("venv"), [], arguments)

    def test_commands_that_can_use_it_make_it(self):
        for arguments in (["run"], ["replay", "last"], ["bench"], ["test"],
                          ["run", "--target", "onnxruntime"], ["audit", "--target=onnxruntime"]):
            self.kvcheck(*arguments)
            self.assertEqual(self.calls("pip onnx"), ["pip onnxruntime==1.32.0 onnx==1.20.0 "])
            (self.root / FOREIGN / "ready").unlink()
            self.forget_calls()

    def test_benchmarks_make_the_peers_that_they_measure(self):
        pips = {"onnxruntime": "pip onnxruntime==1.32.0 onnx==1.20.0 ",
                "openvino": "pip openvino==7.0 ", "jax": "pip jax==7.0 "}
        for arguments, names in ((["bench"], ["onnxruntime", "openvino", "jax"]),
                                 (["bench", "--peer", "jax", "--quick"], ["jax"]),
                                 (["bench", "--peers=openvino,jax"], ["jax", "openvino"]),
                                 (["bench", "--peers", "none"], []),
                                 (["bench", "--rows", "jax"], ["onnxruntime", "openvino", "jax"]),
                                 (["bench", "--from", "record"], []), (["bench", "--list"], []),
                                 (["bench", "--help"], [])):
            self.kvcheck(*arguments)
            self.assertEqual(self.calls("pip"), [pips[name] for name in names], arguments)
            for name in names:
                (self.root / f"build/environments/{name}/ready").unlink()
            self.forget_calls()

    def test_names_that_are_no_release_are_refused_before_any_work(self):
        for name in ("onnxruntime@", "onnxruntime@latest", "onnxruntime@1", "onnxruntime@1.2.3.4.5",
                     "onnxruntime@1.0;rm", "onnxruntime@../x", "onnxruntime@1.0 --pre"):
            done = self.kvcheck("run", "--target", name)
            self.assertEqual(done.returncode, 254, name)
            self.assertIn(f"'{name}' names no release; write it like ", done.stderr)
        self.assertEqual(self.calls(), [])

    def test_unknown_release_is_said_kept_and_does_not_stop_the_tool(self):
        done = self.kvcheck("run", "--target", "onnxruntime@9.9.9", FAKE_PIP="no-release")
        reason = "there is no release onnxruntime==9.9.9 for this Python and machine\n"
        self.assertEqual(self.failed("onnxruntime@9.9.9"), reason)
        self.assertEqual(done.stderr.count(reason), 1)
        self.assertIn("arguments: [run]", done.stdout)
        self.assertFalse((self.root / f"{FOREIGN}@9.9.9/ready").exists())

    def test_missing_network_is_the_reason_given(self):
        self.kvcheck("run", FAKE_PIP="no-network")
        self.assertEqual(self.failed(), "no package index answered; is there a network?\n")

    def test_failure_is_not_tried_again_for_ten_minutes(self):
        self.kvcheck("run", FAKE_PIP="no-network")
        done = self.kvcheck("run")
        self.assertEqual(len(self.calls("pip")), 1)
        self.assertIn("no package index answered; is there a network? (next try in ", done.stderr)
        self.age(FOREIGN + ".failed", 601)
        self.kvcheck("run")
        self.assertEqual(len(self.calls("pip")), 2)
        self.assertFalse((self.root / (FOREIGN + ".failed")).exists())

    def test_failure_is_tried_again_when_the_requirements_change(self):
        self.kvcheck("run", FAKE_PIP="no-network")
        self.write("kernels/adapters/requirements-onnxruntime.txt", "onnxruntime==1.31.1\n")
        self.kvcheck("run")
        self.assertEqual(self.calls("pip")[1:], ["pip onnxruntime==1.31.1 "])

    def test_offline_leaves_the_reason_and_delays_no_later_try(self):
        done = self.kvcheck("run", KVCHECK_OFFLINE=1)
        self.assertEqual((done.returncode, self.calls("venv")), (0, []))
        self.assertIn("KVCHECK_OFFLINE forbids installing it", self.failed())
        self.kvcheck("run", FAKE_PIP="no-network")
        self.age(FOREIGN + ".failed", 601)
        self.kvcheck("run", KVCHECK_OFFLINE=1)
        self.kvcheck("run")
        self.assertEqual(len(self.calls("pip")), 2)

    def test_offline_keeps_an_environment_of_older_requirements(self):
        self.kvcheck("run")
        self.write("kernels/adapters/requirements-onnxruntime.txt", "onnxruntime==1.33.0\n")
        done = self.kvcheck("run", KVCHECK_OFFLINE=1)
        self.assertIn("kvcheck: onnxruntime stays as it was: ", done.stderr)
        self.assertTrue((self.root / FOREIGN / "ready").is_file())
        self.assertFalse((self.root / (FOREIGN + ".failed")).exists())

    def test_missing_requirements_file_is_the_reason_given(self):
        (self.root / "kernels/adapters/requirements-onnxruntime.txt").unlink()
        self.assertEqual(self.kvcheck("run").returncode, 0)
        self.assertIn("requirements-onnxruntime.txt is missing or empty", self.failed())


class LauncherBuilds(LauncherTest):
    def test_builds_the_tool_alone_and_says_so(self):
        done = self.kvcheck("list")
        self.assertIn("cmake --build --preset release --target kvcheck", self.calls())
        self.assertIn("kvcheck: configuring build/release\nkvcheck: building build/release\n",
                      done.stderr)
        self.assertEqual(done.stderr.count("kvcheck: building build/release\n"), 1)
        self.assertEqual(done.stderr.count("kvcheck: built "), 4)
        self.assertIn("kvcheck: built 20 of 40\n", done.stderr)

    def test_counts_the_steps_in_place_on_a_terminal(self):
        ours, theirs = pty.openpty()
        with os.fdopen(ours, "rb", buffering=0) as screen:
            subprocess.run([str(self.root / "kvcheck"), "list"], env=self.environment(),
                           stdout=subprocess.DEVNULL, stderr=theirs, timeout=60, check=True)
            os.close(theirs)
            shown = screen.read(100000).decode()
        self.assertIn("\r\033[Kkvcheck: built 1 of 40\r\033[Kkvcheck: built 2 of 40", shown)
        self.assertTrue(shown.endswith("\r\033[K"), shown)

    def test_configures_again_only_when_the_presets_change(self):
        self.kvcheck("list")
        self.kvcheck("list")
        self.assertEqual(len(self.calls("cmake --preset")), 1)
        self.age("build/release/configured", 1000000000)
        self.kvcheck("list")
        self.assertEqual(len(self.calls("cmake --preset")), 2)

    def test_moved_tree_is_configured_afresh(self):
        self.kvcheck("list")
        self.root = self.root.rename(self.top / "moved")
        self.assertEqual(self.kvcheck("list").returncode, 0)
        self.assertEqual(self.calls("cmake --preset")[1:], ["cmake --preset release --fresh"])

    def test_failing_build_shows_its_last_lines_and_stops(self):
        done = self.kvcheck("list", FAKE_BUILD="broken")
        self.assertEqual((done.returncode, done.stdout), (255, ""))
        self.assertIn("100\nerror: no such type\n", done.stderr)
        self.assertNotIn("\n41\n", done.stderr)
        self.assertIn("\n42\n", done.stderr)

    def test_failing_build_never_starts_the_tool_of_an_older_one(self):
        self.kvcheck("list")
        self.assertEqual(self.kvcheck("list", FAKE_BUILD="broken").returncode, 255)
        self.assertEqual(self.calls("tool"), ["tool"])

    def test_failing_configuration_shows_its_words_and_stops(self):
        done = self.kvcheck("list", FAKE_CONFIGURE="broken")
        self.assertEqual(done.returncode, 255)
        self.assertIn("CMake Error: no compiler", done.stderr)
        self.assertEqual(self.calls("cmake --build"), [])

    def test_build_that_leaves_no_tool_is_the_launchers_failure(self):
        done = self.kvcheck("list", FAKE_BUILD="empty")
        self.assertEqual(done.returncode, 255)
        self.assertIn("kvcheck: the build left no ", done.stderr)

    def test_second_launcher_waits_for_the_first(self):
        (self.root / "build").mkdir()
        with open(self.root / "build/.lock", "w", encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            second = subprocess.Popen([str(self.root / "kvcheck"), "list"], cwd=self.top,
                                      env=self.environment(), stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True)
            self.assertIn("waiting for another kvcheck", second.stderr.readline())
            self.assertEqual(self.calls(), [])
        rest = second.communicate(timeout=60)
        self.assertEqual(second.returncode, 0, rest)
        self.assertEqual(self.calls("tool"), ["tool"])


class LauncherTests(LauncherTest):
    def test_ctest_gets_the_arguments_and_closes_the_output(self):
        done = self.kvcheck("test", "-L", "model")
        self.assertEqual(self.calls("ctest"), [
            f"ctest --preset release --output-on-failure -j2 -L model in {self.root}"])
        self.assertIn("cmake --build --preset release", self.calls())
        self.assertEqual(done.stdout.splitlines()[-1], "100% tests passed, 0 tests failed out of 3")

    def test_help_says_what_it_takes_and_does_nothing(self):
        done = self.kvcheck("test", "--help")
        self.assertEqual((done.returncode, self.calls()), (0, []))
        self.assertIn("./kvcheck test -L model", done.stdout)

    def test_exit_code_of_ctest_is_passed_on(self):
        self.assertEqual(self.kvcheck("test", FAKE_EXIT=8).returncode, 8)

    def test_browser_environment_reaches_the_configuration_once(self):
        self.kvcheck("test")
        self.kvcheck("test")
        python = self.root / "build/environments/browser/bin/python"
        self.assertEqual(self.calls("cmake --preset"),
                         [f"cmake --preset release -DKVCHECK_BROWSER_PYTHON={python}"])
        self.assertTrue(pathlib.Path(python).is_file())

    def test_without_a_browser_the_other_tests_run(self):
        done = self.kvcheck("test", FAKE_PIP="no-network")
        self.assertEqual(done.returncode, 0)
        self.assertIn("kvcheck: the browser test is left out\n", done.stderr)
        self.assertEqual(self.calls("cmake --preset"),
                         ["cmake --preset release -DKVCHECK_BROWSER_PYTHON="])

    def test_continuous_integration_runs_every_test(self):
        done = self.kvcheck(script=".ci/run", CI="true", FAKE_EXIT=8)
        self.assertEqual(done.returncode, 8)
        self.assertEqual(done.stdout.splitlines()[-1], "100% tests passed, 0 tests failed out of 3")


if __name__ == "__main__":
    unittest.main()
