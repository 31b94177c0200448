"""The tree keeps its shape: rooms, lengths, tests for every file, links that lead somewhere."""

import pathlib
import tempfile
import unittest

import tree
from tested_elsewhere import TESTED_ELSEWHERE

ROOT = pathlib.Path(__file__).resolve().parents[2]


class TreeOfThisProject(unittest.TestCase):
    def assert_none(self, found):
        if found:
            self.fail("\n".join([f"{len(found)} breaches:", *found]))

    def test_top_level_is_the_six_rooms(self):
        self.assert_none(tree.check_top_level(ROOT))

    def test_every_room_has_its_readme_and_build_file(self):
        self.assert_none(tree.check_rooms(ROOT))

    def test_no_file_is_too_long(self):
        self.assert_none(tree.check_lengths(ROOT))

    def test_every_source_file_has_its_test(self):
        self.assert_none(tree.check_mirror(ROOT, TESTED_ELSEWHERE))

    def test_unfinished_marks_carry_their_issue(self):
        self.assert_none(tree.check_marks(ROOT))

    def test_links_lead_somewhere(self):
        self.assert_none(tree.check_links(ROOT))

    def test_readme_shows_the_two_commands(self):
        self.assert_none(tree.check_readme_commands(ROOT))


class TreeFindsPlantedMistakes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for room in tree.ROOMS:
            self.write(f"{room}/README.md", f"# The {room} room\n")
            self.write(f"{room}/CMakeLists.txt", "")
        for name in tree.ROOT_FILES:
            self.write(name, "")
        self.write("README.md", "    ./kvcheck run\n    ./kvcheck test\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def test_a_clean_tree_has_none(self):
        self.write("model/mask.h", "\n" * tree.LONGEST)
        self.write("tests/model/mask_test.cpp", "")
        self.write("build/release/CMakeCache.txt", "")
        found = [*tree.check_top_level(self.root), *tree.check_rooms(self.root),
                 *tree.check_lengths(self.root), *tree.check_mirror(self.root, {}),
                 *tree.check_marks(self.root), *tree.check_links(self.root),
                 *tree.check_readme_commands(self.root)]
        self.assertEqual(found, [])

    def test_a_further_folder_or_file_on_the_top_level(self):
        self.write("docs/page.md", "")
        self.write("run.json", "")
        self.assertEqual(tree.check_top_level(self.root), [
            "docs does not belong on the top level", "run.json does not belong on the top level"])

    def test_a_room_or_file_that_is_gone(self):
        (self.root / "LICENSE").unlink()
        (self.root / "shrinkers").rename(self.root / "model/shrinkers")
        self.assertEqual(tree.check_top_level(self.root), [
            "LICENSE is missing from the top level", "shrinkers is missing from the top level"])

    def test_a_room_without_its_readme_or_build_file(self):
        (self.root / "reports/README.md").unlink()
        (self.root / "tests/CMakeLists.txt").unlink()
        self.assertEqual(tree.check_rooms(self.root), [
            "reports/README.md is missing", "tests/CMakeLists.txt is missing"])

    def test_a_file_that_is_too_long(self):
        names = ("model/a.h", "kernels/b.cpp", "kernels/adapters/c.py", "reports/d.js",
                 "reports/e.css", "tests/model/f_test.cpp")
        for name in names:
            self.write(name, "\n" * (tree.LONGEST + 1))
        self.assertEqual({line.split()[0] for line in tree.check_lengths(self.root)}, set(names))

    def test_a_source_file_without_a_test(self):
        self.write("model/mask.h", "")
        self.write("model/mask.cpp", "")
        self.write("kernels/cpu/fast.cpp", "")
        self.write("kernels/cuda/fast.cpp", "")
        self.write("kernels/cuda/flat.cpp", "")
        self.write("tests/kernels/cuda_flat_test.cpp", "")
        self.write("kernels/adapters/protocol.py", "")
        self.write("tests/model/mask_test.cpp", "")
        self.write("tests/kernels/cuda/fast_test.cpp", "")
        self.write("tests/kernels/adapters/protocol_test.py", "")
        self.assertEqual(tree.check_mirror(self.root, {}), [
            "kernels/cpu/fast.cpp has no test; write tests/kernels/cpu/fast_test.cpp"])

    def test_a_test_in_another_room_does_not_count(self):
        self.write("model/mask.h", "")
        self.write("tests/kernels/mask_test.cpp", "")
        self.assertEqual(len(tree.check_mirror(self.root, {})), 1)

    def test_an_entry_that_is_not_needed_or_leads_nowhere(self):
        for name in "abcde":
            self.write(f"model/{name}.h", "")
        self.write("tests/model/b_test.cpp", "")
        self.assertEqual(tree.check_mirror(self.root, {
            "model/a.h": "holds nothing but names", "model/b.h": "tests/model/b_test.cpp",
            "model/c.h": "tests/model/b_test.cpp", "model/d.h": "tests/model/gone_test.cpp",
            "model/e.h": "small", "model/gone.h": "tests/model/b_test.cpp"}), [
                "model/b.h needs no entry: it is gone or has a test of its name",
                "model/d.h is said to be covered by tests/model/gone_test.cpp, which is missing",
                "model/e.h has neither a test nor a reason",
                "model/gone.h needs no entry: it is gone or has a test of its name"])

    def test_an_unfinished_mark_without_its_issue(self):
        marks = ("TO" + "DO", "FIX" + "ME", "XX" + "X")
        self.write("model/a.cpp", "".join(f"// {mark}: later\n" for mark in marks))
        self.write("model/b.cpp", "".join(f"// {mark}(#12): later\n" for mark in marks))
        self.write("tests/c.py", f"# {marks[0]} later\n")
        places = [line.split(": ")[0] for line in tree.check_marks(self.root)]
        self.assertEqual(places, [*(f"model/a.cpp:{line}" for line in (1, 2, 3)), "tests/c.py:1"])

    def test_a_link_that_leads_nowhere(self):
        self.write("model/README.md", "# The `model` room, in short\n[a](../kernels/README.md)\n"
                                      "[b](gone.md) [c](#the-model-room-in-short) [d](#gone)\n"
                                      "[e](../kernels/README.md#the-kernels-room)\n"
                                      "[f](../kernels/README.md#gone) [g](https://example.org/x)\n"
                                      "`[h](code.md)`\n```\n[i](code.md)\n```\n")
        self.assertEqual(tree.check_links(self.root), [
            "model/README.md: the link gone.md leads nowhere",
            "model/README.md: no heading makes the link #gone true",
            "model/README.md: no heading makes the link ../kernels/README.md#gone true"])

    def test_a_readme_without_the_two_commands(self):
        self.write("README.md", "Use ./kvcheck run.\n")
        self.assertEqual(tree.check_readme_commands(self.root),
                         ["README.md does not show ./kvcheck test"])


if __name__ == "__main__":
    unittest.main()
