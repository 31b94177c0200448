// values.finite: finite inputs give finite outputs and intermediates.
// |q|, |k|, |v| < infinity and unspecified rows without influence => no output is NaN or infinite,
// no intermediate is NaN or +infinity, and -infinity stands only for a key that is hidden.
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "properties/catalog.h"

namespace kvcheck::properties {
namespace {

/// The first element of `count` from `first` on that is NaN or infinite; -1 = none. By bits,
/// because every output of every case passes here.
std::int64_t first_not_finite(const kernels::Tensor& tensor, std::int64_t first,
                              std::int64_t count) {
  const auto scan = [&]<class Bits>(Bits exponent) -> std::int64_t {
    const std::byte* at = tensor.bytes.data() + static_cast<std::size_t>(first) * sizeof exponent;
    for (std::int64_t i = 0; i < count; ++i, at += sizeof exponent) {
      Bits bits;
      std::memcpy(&bits, at, sizeof bits);
      if ((bits & exponent) == exponent) return first + i;
    }
    return -1;
  };
  switch (tensor.type) {
    case kernels::ElementType::f16:
      return scan(std::uint16_t{0x7c00});
    case kernels::ElementType::bf16:
      return scan(std::uint16_t{0x7f80});
    case kernels::ElementType::f64:
      return scan(std::uint64_t{0x7ff0000000000000});
    default:
      return scan(std::uint32_t{0x7f800000});
  }
}

shrinkers::Hint hint_at(std::size_t step, std::int64_t entry, std::int64_t head) {
  shrinkers::Hint hint;
  hint.step = static_cast<std::int64_t>(step);
  hint.entry = entry;
  hint.query_head = head;
  return hint;
}

/// The first output of the step that is not finite.
std::optional<Judgement> bad_output(Case& c, std::size_t step, const kernels::Tensor& output) {
  const auto& s = c.scenario();
  const std::int64_t row = s.query_heads * s.value_head_size;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const auto& state = c.timeline().steps()[step].entries[static_cast<std::size_t>(b)];
    const std::int64_t first = b * output.shape[1] * row;
    const std::int64_t bad = first_not_finite(output, first, state.queries * row);
    if (bad < 0) continue;
    const std::int64_t i = bad - first, head = i % row / s.value_head_size;
    return Judgement::failed(
        Kind::not_finite,
        fmt::format("step {} ({}), batch entry {}, query at position {}, head {}, lane {}: the "
                    "output is {} although all inputs are finite",
                    step, model::describe(s.steps[step]), b, state.origin.value + i / row, head,
                    i % s.value_head_size, element(output, bad)),
        hint_at(step, b, head));
  }
  return std::nullopt;
}

/// The same of the intermediates; hidden keys may show as -infinity before the softmax.
std::optional<Judgement> bad_qk(Case& c, std::size_t step, const kernels::Tensor& qk) {
  const auto& s = c.scenario();
  const bool hides = s.qk_output == model::QkOutput::biased;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const auto& state = c.timeline().steps()[step].entries[static_cast<std::size_t>(b)];
    for (std::int64_t h = 0; h < s.query_heads; ++h) {
      for (std::int64_t q = 0; q < state.queries; ++q) {
        const std::int64_t first = ((b * qk.shape[1] + h) * qk.shape[2] + q) * qk.shape[3];
        for (std::int64_t key = 0; key < std::min(state.length, qk.shape[3]); ++key) {
          const double value = element(qk, first + key);
          if (std::isfinite(value) || (hides && std::isinf(value) && value < 0)) continue;
          return Judgement::failed(
              Kind::not_finite,
              fmt::format("step {} ({}), batch entry {}, query at position {}, head {}: qk_output "
                          "of key {} is {} although all inputs are finite",
                          step, model::describe(s.steps[step]), b, state.origin.value + q, h, key,
                          value),
              hint_at(step, b, h));
        }
      }
    }
  }
  return std::nullopt;
}

Judgement judge(Case& c) {
  const Execution& execution = c.execution();
  bool any = false;
  for (std::size_t i = 0; i < execution.steps.size(); ++i) {
    const StepAnswer& answer = execution.steps[i];
    if (answer.status != StepAnswer::Status::ok || !answer.result.output) continue;
    any = true;
    if (auto bad = bad_output(c, i, *answer.result.output)) return *bad;
    if (!answer.result.qk) continue;
    if (auto bad = bad_qk(c, i, *answer.result.qk)) return *bad;
  }
  if (!execution.complete) return Judgement::skipped(broke_off(c.scenario(), execution));
  return any ? Judgement{} : Judgement::skipped("the scenario asks no query");
}

}  // namespace

Property finite_values_property() {
  return {"values.finite",
          "Finite inputs give finite outputs and intermediates, logits and values at the ends of "
          "the range among them; -infinity stands only for a hidden key before the softmax.",
          "exp without the maximum, sums that overflow, finite stand-ins for -infinity, 0 * NaN, "
          "0/0",
          [](const model::Scenario&, const kernels::Capabilities& target) {
            return std::string(target.outputs ? "" : "the target computes no outputs");
          },
          judge};
}

}  // namespace kvcheck::properties
