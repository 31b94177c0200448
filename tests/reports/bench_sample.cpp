#include "tests/reports/bench_sample.h"

#include <string>
#include <utility>

namespace kvcheck::reports::samples {
namespace {

using properties::BenchRow;
using properties::GoalStatus;

BenchRow row(std::string id, std::string what, std::string shape, std::int64_t T, double ms) {
  BenchRow made;
  made.id = std::move(id);
  made.what = std::move(what);
  made.shape = std::move(shape);
  made.element_type = "f32";
  made.T = T;
  made.ours_ms = ms;
  made.ours_p10_ms = ms * .98;
  made.bound_ratio = .02;
  return made;
}

void against(BenchRow& made, std::string peer, double ms, double at_least, double aim) {
  made.peer = std::move(peer);
  made.peer_ms = ms;
  made.peer_p10_ms = ms * .97;
  made.ratio = ms / made.ours_ms;
  made.ratio_p10 = made.peer_p10_ms / made.ours_p10_ms;
  made.quartiles = {made.ratio * .99, made.ratio, made.ratio * 1.02};
  made.pairs = 5;
  made.at_least = at_least;
  made.aim = aim;
  made.status = properties::goal_status(made.ratio, at_least, aim);
}

void roof(BenchRow& made, double share) {
  made.fma_gflops = 105.5;
  made.read_gb_per_s = 29.25;
  made.roof = share;
  made.roof_at_least = .65;
  made.roof_aim = .8;
  made.roof_status = properties::goal_status(share, .65, .8);
  made.cache_bytes = 1 << 20;
  made.scratch_bytes = 5000;
}

}  // namespace

properties::BenchRecord bench_record() {
  properties::BenchRecord record;
  record.tool = "kvcheck 0.1.0";
  record.started = "2026-11-30T12:00:00Z";
  record.machine = "AMD EPYC <Zen 4>, 2 cores";
  record.compiler = "12.2.0";
  record.flags = "-O2";
  record.target = "cpu-flash 0.1.0";
  record.seconds = 61.4;
  record.load = {.5, 1.25};
  for (const auto& [T, ms] : {std::pair<std::int64_t, double>{512, .1}, {2048, .4}, {8192, 1.6}}) {
    const std::string id = "decode.f32.64/8/64.T" + std::to_string(T);
    BenchRow first = row(id, "decode", "64/8/64", T, ms);
    against(first, "onnxruntime 1.32.0", ms * 4.5, 4, 5.5);
    roof(first, .7);
    BenchRow second = row(id, "decode", "64/8/64", T, ms * 1.01);
    against(second, "openvino 2026.4.1", ms * .9, 1, 1.35);
    roof(second, .69);
    second.noisy = true;
    BenchRow third = row(id, "decode", "64/8/64", T, ms);
    third.peer = "jax";
    third.why = "its Python environment is not there; ./kvcheck bench --peer jax sets it up";
    third.at_least = 1;
    third.aim = 1.35;
    third.status = GoalStatus::not_measured;
    record.rows.insert(record.rows.end(), {first, second, third});
  }
  // 0.02 + 0.0001 * G / 2 + 0.02 / G: the optimum is sqrt(2 * 0.02 / 0.0001) = 20.
  for (const std::int64_t period : {1, 5, 17, 33, 129, 257}) {
    const auto G = static_cast<double>(period);
    BenchRow windowed = row("windowed.f32.64/8/64.W128.C" + std::to_string(127 + period),
                            "windowed", "64/8/64", 1024, .02 + .0001 * G / 2 + .02 / G);
    windowed.window = 128;
    windowed.capacity = 127 + period;
    against(windowed, "onnxruntime 1.32.0", .2, 3.5, 5);
    record.rows.push_back(windowed);
  }
  BenchRow naive = row("algorithm.f32.64/8/64.T512", "algorithm", "64/8/64", 512, .1);
  against(naive, "own full score matrix", 1.5, 0, 0);
  naive.scratch_bytes = 5000;
  naive.peer_scratch_bytes = 2000 * 1024;
  record.rows.push_back(naive);
  BenchRow wrong =
      row("decode.int8.64/8/64.T512", "decode", "64/8/64", 512, properties::kNotMeasured);
  wrong.bound_ratio = 12.5;
  wrong.why = "the output is 12.5 times its bound away from the exact one";
  record.rows.push_back(wrong);
  record.growth = properties::growth_of(record.rows);
  record.notes = {"interrupted after 17 of 84 rows"};
  return record;
}

}  // namespace kvcheck::reports::samples
