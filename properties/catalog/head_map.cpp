// heads.map: query head h reads KV head h / (Nq/Nk) of its own batch entry.
// V = code(entry, KV head) in every row => o = code(b, h / (Nq/Nk)) whatever the weights are, since
// they sum up to 1. Codes are integers from 1 to 6 in each lane, so a quarter tells them apart at
// any precision, and the value that comes out names the head that was read.
#include <cmath>

#include <fmt/format.h>

#include "model/visibility.h"
#include "properties/catalog.h"
#include "properties/catalog/value_launch.h"
#include "properties/convert.h"
#include "properties/digit_check.h"

namespace kvcheck::properties {
namespace {

/// Digits that an int4 cache can hold.
constexpr std::int64_t kBase = 6;

/// The digit of (entry, KV head) that a lane shows, from 1 on.
std::int64_t code(const model::Scenario& s, std::int64_t entry, std::int64_t kv_head,
                  std::int64_t lane) {
  std::int64_t number = entry * s.kv_heads + kv_head;
  std::int64_t digits = 1;
  for (std::int64_t reach = kBase; reach < s.batch * s.kv_heads; reach *= kBase) ++digits;
  for (std::int64_t turn = lane % digits; turn > 0; --turn) number /= kBase;
  return 1 + number % kBase;
}

/// "KV head 1 of batch entry 0", or the value where no head has this code in the lane.
std::string read_instead(const model::Scenario& s, double observed, std::int64_t entry,
                         std::int64_t lane) {
  for (std::int64_t turn = 0; turn < s.batch; ++turn) {
    const std::int64_t b = (entry + turn) % s.batch;
    for (std::int64_t h = 0; h < s.kv_heads; ++h) {
      if (std::abs(observed - static_cast<double>(code(s, b, h, lane))) < 0.25) {
        return fmt::format("the code of KV head {} of batch entry {}", h, b);
      }
    }
  }
  return "the code of no KV head";
}

/// The first output of one query and head that is not the code.
std::optional<Judgement> wrong_head(Case& c, const kernels::Tensor& output, std::size_t step,
                                    std::int64_t entry, std::int64_t query, std::int64_t head) {
  const auto& s = c.scenario();
  const std::int64_t kv_head = head / (s.query_heads / s.kv_heads);
  for (std::int64_t l = 0; l < s.value_head_size; ++l) {
    const double observed = output_at(output, entry, query, head, l);
    const auto expected = static_cast<double>(code(s, entry, kv_head, l));
    if (std::abs(observed - expected) < 0.25) continue;
    if (model::visible_positions(s, c.timeline(), step, entry, head, query).empty()) return {};
    shrinkers::Hint hint;
    hint.step = static_cast<std::int64_t>(step);
    hint.entry = entry;
    hint.query_head = head;
    return Judgement::failed(
        Kind::leak,
        fmt::format("step {} ({}), batch entry {}, head {}, lane {}: with values that are {} in KV "
                    "head {}, the one of this head, the output is {:.9g}, {}",
                    step, model::describe(s.steps[step]), entry, head, l, expected, kv_head,
                    observed, read_instead(s, observed, entry, l)),
        hint);
  }
  return std::nullopt;
}

/// Whether the launches that show positions show the heads as well: their values differ from one KV
/// head to the next (digit_value()), by more than the bounds of all lanes.
bool shown_by_digits(Case& c) {
  if (!fixed_tensors_reason(c.scenario()).empty()) return false;
  const DigitCheck& check = c.digits().check();
  return check.tells_heads && check.queries > 0 && !check.mismatch && check.problem.empty();
}

Judgement judge(Case& c) {
  const auto& s = c.scenario();
  if (c.mode() == Case::Mode::bundled && shown_by_digits(c)) return {};
  const Interposer interposer =
      value_interposer(c, s, [&s](std::int64_t entry, std::int64_t kv_head, std::int64_t lane) {
        return static_cast<double>(code(s, entry, kv_head, lane));
      });
  const Execution run = execute_interposed(c, interposer, {.want_rows = false});
  bool any = false;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    if (run.steps[i].status != StepAnswer::Status::ok || !run.steps[i].result.output) continue;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      const auto& state = c.timeline().steps()[i].entries[static_cast<std::size_t>(b)];
      for (std::int64_t q = 0; q < state.queries; ++q) {
        for (std::int64_t h = 0; h < s.query_heads; ++h) {
          any = true;
          if (auto bad = wrong_head(c, *run.steps[i].result.output, i, b, q, h)) return *bad;
        }
      }
    }
  }
  if (!run.complete) return Judgement::skipped(broke_off(s, run));
  return any ? Judgement{} : Judgement::skipped("the scenario asks no query");
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities& target) {
  if (!target.outputs) return "the target computes no outputs";
  if (scenario.head_sink || scenario.smooth_softmax) return "a sink takes a share of the weights";
  return scenario.kv_heads * scenario.batch > 1 ? "" : "there is one KV head";
}

}  // namespace

Property head_map_property() {
  return {"heads.map",
          "Query head h of a batch entry reads KV head h / (Nq/Nk) of that entry: with a "
          "value that is constant in each KV head, that constant comes out.",
          "modulo for division, swapped heads or entries, groups of the wrong size, "
          "heads past the last whole group",
          inapplicable, judge};
}

}  // namespace kvcheck::properties
