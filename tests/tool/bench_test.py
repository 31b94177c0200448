"""kvcheck bench from outside: records, exit codes, bad usage."""

import json
import pathlib

from cli_test import COUNTEREXAMPLE, HELD, UNDECIDED, CommandLine, unittest

FAKE_PEER = pathlib.Path(__file__).resolve().parents[1] / "kernels/bench/fake_peer.py"
SMALL = ("--rows", "overhead.*", "--time", "0.05")


class Benches(CommandLine):
    def test_a_record_has_what_scripts_rely_on(self):
        result = self.kvcheck("bench", *SMALL, "--peers", "none", "--json")
        self.assertEqual(result.returncode, HELD, result.stderr)
        record = json.loads(result.stdout)
        self.assertIn("cores", record["machine"])
        self.assertEqual(len(record["load"]), 2)
        (row,) = record["rows"]
        self.assertEqual((row["id"], row["what"]), ("overhead.f32.64/8/64.T2", "overhead"))
        self.assertEqual((row["shape"], row["element_type"], row["T"]), ("64/8/64", "f32", 2))
        self.assertGreater(row["ours_ms"], 0)
        self.assertEqual((row["peer"], row["peer_ms"], row["ratio"]), ("", None, None))
        self.assertEqual((row["quartiles"], row["noisy"]), ([], False))

    def test_a_peer_gives_a_ratio(self):
        result = self.kvcheck("bench", *SMALL, "--peer", f"exec:{FAKE_PEER}", "--json")
        (row,) = json.loads(result.stdout)["rows"]
        self.assertEqual(row["peer"], "fake 7.5", row)
        self.assertEqual(row["peer_ms"], 2)
        self.assertGreater(row["ratio"], 0)
        self.assertEqual(len(row["quartiles"]), 3)
        self.assertIn("against fake 7.5", result.stderr)

    def test_a_missing_peer_is_a_row_with_its_reason(self):
        result = self.kvcheck("bench", *SMALL, "--peer", "jax", "--json")
        self.assertEqual(result.returncode, HELD)
        (row,) = json.loads(result.stdout)["rows"]
        self.assertEqual((row["peer"], row["peer_ms"]), ("jax", None))
        self.assertIn("./kvcheck bench --peer jax sets it up", row["why"])

    def test_a_stored_record_gives_the_same_table_and_page(self):
        pages = [self.path / name for name in ("first.html", "second.html")]
        result = self.kvcheck("bench", *SMALL, "--peers", "none", "--json", "--html", pages[0])
        self.write("record.json", result.stdout)
        again = self.kvcheck("bench", "--from", "record.json", "--html", pages[1])
        self.assertEqual(again.returncode, HELD, again.stderr)
        self.assertIn("overhead.f32.64/8/64.T2", again.stdout)
        self.assertEqual(*(page.read_text() for page in pages))

    def test_a_wrong_output_is_a_counterexample(self):
        result = self.kvcheck("bench", *SMALL, "--peers", "none", "--target",
                              "cpu-naive+self_excluded")
        self.assertEqual(result.returncode, COUNTEREXAMPLE, result.stdout)
        self.assertIn("the timed output is wrong", result.stdout)

    def test_nothing_measured_is_undecided(self):
        result = self.kvcheck("bench", "--rows", "sharing.f32.64*T8192", "--time", "0.05",
                              "--target", "cpu-naive")
        self.assertEqual(result.returncode, UNDECIDED, result.stdout)
        self.assertIn("always shares", result.stdout)

    def test_rows_can_be_listed_and_chosen(self):
        every = self.kvcheck("bench", "--list").stdout.splitlines()
        self.assertEqual(len(every), len(set(every)))
        self.assertIn("decode.f32.64/8/64.T32768", every)
        self.assertIn("windowed.f32.64/8/64.W128.C384", every)
        quick = self.kvcheck("bench", "--list", "--quick").stdout.splitlines()
        self.assertTrue(0 < len(quick) < len(every) / 2)
        chosen = self.kvcheck("bench", "--list", "--rows", "prefill.f32.*,threads.*").stdout
        self.assertEqual({line.split(".")[0] for line in chosen.split()}, {"prefill", "threads"})

    def test_bad_usage_is_said(self):
        self.refused("bench", "--rows", "x*", words=["--rows x*", "--list"])
        self.refused("bench", "--peer", "torch", words=["torch", "onnxruntime, openvino, jax"])
        self.refused("bench", "--time", "-1", words=["--time -1", "above 0"])
        self.refused("bench", "--target", "cpu-none", words=["cpu-none"])
        self.refused("bench", "--from", "gone.json", words=["gone.json", "cannot be read"])
        self.write("bad.json", '{"rows": [{"ratio": "x"}]}')
        self.refused("bench", "--from", "bad.json", words=["bad.json", "rows[0].ratio"])


if __name__ == "__main__":
    unittest.main()
