"""The rooms see what the dependency table allows and nothing else."""

import pathlib
import tempfile
import unittest

import layering

ROOT = pathlib.Path(__file__).resolve().parents[2]


class LayeringOfThisTree(unittest.TestCase):
    def test_keeps_the_dependency_table(self):
        found = layering.violations(ROOT)
        if found:
            self.fail("\n".join([f"{len(found)} breaches:", *found]))

    def test_files_of_every_room_are_looked_at(self):
        rooms = {layering.room_of(source) for source in layering.sources(ROOT)}
        self.assertLessEqual({"model", "kernels", "shrinkers", "properties", "reports"}, rooms)


class LayeringFindsPlantedMistakes(unittest.TestCase):
    """Each test plants a small tree and names the violations that must be reported."""

    def violations(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return layering.violations(folder)

    def assert_direct(self, room_file, header, message):
        found = self.violations({room_file: f"// One.\n#include {header}\n"})
        self.assertEqual(found, [f"{room_file}:2: {message}"])

    def test_a_clean_tree_has_none(self):
        self.assertEqual(self.violations({
            "model/mask.h": "#include <vector>\n#include <boost/multiprecision/cpp_int.hpp>\n",
            "kernels/cpu/fast.cpp": '#include <Eigen/Core>\n#include "hwy/highway.h"\n'
                                    '#include <immintrin.h>\n#include "kernels/target.h"\n',
            "kernels/target.h": "#include <cuda_runtime.h>\n#include <sys/mman.h>\n",
            "shrinkers/shrink.cpp": '#include "model/mask.h"\n#include <fcntl.h>\n',
            "properties/verdict.h": '#include "model/mask.h"\n#include <rapidcheck.h>\n',
            "reports/page.cpp": '#include "properties/verdict.h"\n#include <kainjow/a.hpp>\n',
            "tests/model/mask_test.cpp": '#include "model/mask.h"\n#include <gtest/gtest.h>\n',
            "kvcheck.cpp": '#include "reports/page.h"\n#include <CLI/CLI.hpp>\n',
            "reports/CMakeLists.txt": "target_link_libraries(r PUBLIC kvcheck::run_record)\n",
        }), [])

    def test_the_judge_and_the_judged_never_meet(self):
        self.assert_direct("model/a.h", '"kernels/target.h"', "model may not see kernels/target.h")
        self.assert_direct("kernels/a.cu", '"model/mask.h"', "kernels may not see model/mask.h")
        self.assert_direct("kernels/a/b.h", "<model/mask.h>", "kernels may not see model/mask.h")

    def test_a_room_below_never_sees_the_room_above(self):
        for room, above in (("model", "shrinkers/shrink.h"), ("model", "properties/verdict.h"),
                            ("kernels", "properties/verdict.h"), ("shrinkers", "kernels/target.h"),
                            ("shrinkers", "properties/verdict.h"), ("properties", "reports/page.h"),
                            ("kernels", "reports/page.h"), ("model", "tests/support/a.h")):
            self.assert_direct(f"{room}/a.cpp", f'"{above}"', f"{room} may not see {above}")

    def test_reports_see_the_record_alone(self):
        for header in ("properties/check.h", "kernels/target.h", "shrinkers/shrink.h"):
            self.assert_direct("reports/page.cpp", f'"{header}"', f"reports may not see {header}")

    def test_what_is_seen_through_another_header_counts(self):
        found = self.violations({
            "reports/page.cpp": '#include "properties/run_record.h"\n',
            "properties/run_record.h": '#include "properties/search.h"\n',
            "properties/search.h": '#include "kernels/target.h"\n',
            "kernels/target.h": "",
        })
        self.assertEqual(found, [
            "reports/page.cpp: reports sees properties/search.h through "
            "reports/page.cpp -> properties/run_record.h"])

    def test_headers_that_include_each_other_end(self):
        self.assertEqual(self.violations({
            "model/a.h": '#include "model/b.h"\n', "model/b.h": '#include "model/a.h"\n'}), [])

    def test_third_party_code_stays_in_its_rooms(self):
        for path, header, name in (
                ("model/a.cpp", "<Eigen/Core>", "Eigen"),
                ("model/a.cpp", "<boost/context/fiber.hpp>", "Boost"),
                ("model/a.cpp", "<unistd.h>", "system"),
                ("model/a.cpp", "<immintrin.h>", "SIMD"),
                ("kernels/a.cpp", "<rapidcheck.h>", "RapidCheck"),
                ("kernels/a.cpp", "<CLI/CLI.hpp>", "CLI11"),
                ("shrinkers/a.cpp", "<boost/multiprecision/cpp_int.hpp>", "Boost.Multiprecision"),
                ("shrinkers/a.cpp", "<rapidcheck/Gen.h>", "RapidCheck"),
                ("properties/a.cpp", "<cuda_runtime.h>", "CUDA"),
                ("properties/a.cpp", "<tbb/task.h>", "oneTBB"),
                ("properties/a.cpp", "<kainjow/mustache.hpp>", "kainjow"),
                ("reports/a.cpp", "<sys/time.h>", "system"),
                ("reports/a.cpp", "<gtest/gtest.h>", "GoogleTest"),
                ("kvcheck.cpp", '"hwy/highway.h"', "Highway")):
            room = layering.room_of(path)
            self.assert_direct(path, header, f"{room} may not use {name} ({header[1:-1]})")

    def test_code_that_nobody_named_is_refused(self):
        message = "is neither a path from the root nor known third-party code"
        for header in ('"mask.h"', '"../kernels/target.h"', "<absl/strings/cat.hpp>", '"vector"'):
            self.assert_direct("model/a.cpp", header, f"{header[1:-1]} {message}")

    def test_build_files_link_what_the_table_allows(self):
        for room, other in (("model", "kernels"), ("kernels", "model"), ("reports", "properties"),
                            ("shrinkers", "kernels"), ("properties", "reports")):
            found = self.violations({
                f"{room}/CMakeLists.txt": f"# kvcheck::any\nlink(a kvcheck::{other})\n"})
            self.assertEqual(
                found, [f"{room}/CMakeLists.txt:2: {room} may not link kvcheck::{other}"])


if __name__ == "__main__":
    unittest.main()
