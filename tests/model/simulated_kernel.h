// A simulated attention kernel whose arithmetic is dialled in, and whose faults are planted.
//
// It shares the data and the visible sets with the model but none of its arithmetic: every
// operation is rounded to the accumulator type, in the order that real kernels use.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "model/error_bound.h"
#include "model/mask.h"
#include "model/oracle.h"
#include "model/visibility.h"

namespace kvcheck::model {

enum class Fault {
  none,
  extra_newer,
  extra_older,
  missing_newest,
  missing_oldest,
  wrong_scale,
  padded_sum
};

/// How a kernel computes one row.
struct KernelStyle {
  ElementType accumulator = ElementType::f32;
  ElementType weights = ElementType::f32;  ///< Type of P before P.V.
  std::int64_t block = 0;                  ///< Keys per block of an online softmax; 0 = two-pass.
  std::int64_t splits = 1;                 ///< Parts of the keys, merged at the end.
  bool base_two = false;
  bool scale_on_operands = false;
  bool normalise_first = false;  ///< Two-pass: divides the weights, not the output.
  bool backwards = false;        ///< Sums from the newest key to the oldest.
  Fault fault = Fault::none;

  /// The profile that a maintainer of this kernel would declare, for outputs of `type`.
  ArithmeticProfile profile(ElementType type) const {
    ArithmeticProfile p;
    p.accumulator_roundoff = unit_roundoff(accumulator);
    p.exp_error = 2 * unit_roundoff(accumulator);
    p.probability_roundoff = weights == accumulator ? 0 : unit_roundoff(weights);
    p.base_two = base_two;
    p.scale_on_operands = scale_on_operands;
    p.max_rescales = block > 0 ? 1 << 20 : 0;
    p.splits = splits;
    p.output_type = type;
    return p;
  }
};

class SimulatedKernel {
 public:
  SimulatedKernel(Oracle& oracle, KernelStyle style, std::uint64_t seed = 1)
      : oracle_(oracle), style_(style), noise_(seed) {}

  /// Output lanes of one row, stored in the scenario's element type.
  std::vector<double> row(std::size_t step, std::int64_t entry, std::int64_t query,
                          std::int64_t head) {
    const Scenario& s = oracle_.scenario();
    const auto lanes = static_cast<std::size_t>(s.value_head_size);
    std::vector<Position> keys = seen(step, entry, query, head);
    if (keys.empty()) return std::vector<double>(lanes, 0.0);
    if (style_.backwards) std::reverse(keys.begin(), keys.end());
    std::vector<double> logits;
    std::vector<std::vector<double>> values;
    for (const Position key : keys) {
      logits.push_back(logit(step, entry, query, head, key));
      values.emplace_back(lanes);
      oracle_.fill().value_row(entry, kv_head(head), token(step, entry, key), values.back());
    }
    Part whole = part(logits, values, 0, keys.size() / static_cast<std::size_t>(style_.splits));
    for (std::int64_t i = 1; i < style_.splits; ++i) {
      const auto n = keys.size();
      const auto parts = static_cast<std::size_t>(style_.splits);
      const auto at = static_cast<std::size_t>(i);
      merge(whole, part(logits, values, n * at / parts, n * (at + 1) / parts));
    }
    return finish(whole, s.element_type);
  }

 private:
  struct Part {
    double top = -std::numeric_limits<double>::infinity();
    double sum = 0;
    std::vector<double> output;
  };

  double r(double x) const { return round_to(style_.accumulator, x); }

  /// exp of the accumulator type with an error of up to 1 ulp.
  double e(double x) {
    const double u = unit_roundoff(style_.accumulator);
    const double wobble = (static_cast<double>(noise_() >> 11) * 0x1p-53 - 0.5) * 1.9 * u;
    return r((style_.base_two ? std::exp2(x) : std::exp(x)) * (1 + (x == 0 ? 0 : wobble)));
  }

  std::int64_t kv_head(std::int64_t head) const {
    return head / (oracle_.scenario().query_heads / oracle_.scenario().kv_heads);
  }

  Token token(std::size_t step, std::int64_t entry, Position key) const {
    const auto& around = oracle_.timeline().steps()[step].entries[static_cast<std::size_t>(entry)];
    const bool live = key.value >= 0 && key.value < around.length;
    return {key, live ? oracle_.timeline().generation(step, entry, key) : 0};
  }

  std::vector<Position> seen(std::size_t step, std::int64_t entry, std::int64_t query,
                             std::int64_t head) const {
    auto keys = visible_positions(oracle_.scenario(), oracle_.timeline(), step, entry, head, query);
    if (keys.empty()) return keys;
    if (style_.fault == Fault::extra_newer) keys.push_back({keys.back().value + 1});
    if (style_.fault == Fault::extra_older && keys.front().value > 0) {
      keys.insert(keys.begin(), {keys.front().value - 1});
    }
    if (style_.fault == Fault::missing_newest && keys.size() > 1) keys.pop_back();
    if (style_.fault == Fault::missing_oldest && keys.size() > 1) keys.erase(keys.begin());
    return keys;
  }

  double logit(std::size_t step, std::int64_t entry, std::int64_t query, std::int64_t head,
               Position key) const {
    const Scenario& s = oracle_.scenario();
    double scale = r(s.scale.value_or(1.0 / std::sqrt(static_cast<double>(s.head_size))));
    if (style_.fault == Fault::wrong_scale) scale = r(scale * 1.06);
    const double root = r(std::sqrt(scale));
    std::vector<double> q(static_cast<std::size_t>(s.head_size));
    std::vector<double> k(q.size());
    oracle_.fill().query_row(step, entry, head, query, q);
    oracle_.fill().key_row(entry, kv_head(head), token(step, entry, key), k);
    double dot = 0;
    for (std::size_t c = 0; c < q.size(); ++c) {
      const double product =
          style_.scale_on_operands ? r(r(q[c] * root) * r(k[c] * root)) : r(q[c] * k[c]);
      dot = r(dot + product);
    }
    const auto& around = oracle_.timeline().steps()[step].entries[static_cast<std::size_t>(entry)];
    const double bias = mask_bias(s, entry, head, {around.origin.value + query}, key);
    const double factor = style_.base_two ? std::log2(std::exp(1.0)) : 1.0;
    const double scaled = style_.scale_on_operands ? r(dot * factor) : r(dot * r(scale * factor));
    return bias == 0 ? scaled : r(scaled + r(bias * factor));
  }

  Part part(const std::vector<double>& logits, const std::vector<std::vector<double>>& values,
            std::size_t begin, std::size_t end) {
    Part p;
    p.output.assign(values.front().size(), 0.0);
    const std::size_t block =
        style_.block > 0 ? static_cast<std::size_t>(style_.block) : std::max<std::size_t>(1, end);
    for (std::size_t b = begin; b < end; b += block) {
      const std::size_t stop = std::min(end, b + block);
      const double top =
          std::max(p.top, *std::max_element(logits.begin() + b, logits.begin() + stop));
      if (p.sum > 0 && top > p.top) rescale(p, e(r(p.top - top)));
      p.top = top;
      for (std::size_t j = b; j < stop; ++j) add(p, e(r(logits[j] - top)), values[j]);
    }
    return p;
  }

  void add(Part& p, double weight, const std::vector<double>& value) {
    p.sum = r(p.sum + weight);
    if (style_.normalise_first) {
      weights_.push_back(weight);
      rows_.push_back(value);
      return;
    }
    const double stored = round_to(style_.weights, weight);
    for (std::size_t c = 0; c < value.size(); ++c) {
      p.output[c] = r(p.output[c] + r(stored * value[c]));
    }
  }

  void rescale(Part& p, double factor) {
    p.sum = r(p.sum * factor);
    for (double& x : p.output) x = r(x * factor);
  }

  void merge(Part& whole, Part other) {
    if (other.sum == 0) return;
    if (whole.sum == 0) {
      whole = other;
      return;
    }
    const double top = std::max(whole.top, other.top);
    rescale(whole, e(r(whole.top - top)));
    rescale(other, e(r(other.top - top)));
    whole.top = top;
    whole.sum = r(whole.sum + other.sum);
    for (std::size_t c = 0; c < whole.output.size(); ++c) {
      whole.output[c] = r(whole.output[c] + other.output[c]);
    }
  }

  std::vector<double> finish(Part& p, ElementType type) {
    if (style_.fault == Fault::padded_sum) p.sum = r(p.sum + e(r(0 - p.top)));
    if (style_.normalise_first) {
      const double reciprocal = r(1 / p.sum);
      for (std::size_t j = 0; j < rows_.size(); ++j) {
        const double weight = round_to(style_.weights, r(weights_[j] * reciprocal));
        for (std::size_t c = 0; c < p.output.size(); ++c) {
          p.output[c] = r(p.output[c] + r(weight * rows_[j][c]));
        }
      }
    }
    for (double& x : p.output) {
      x = round_to(type, style_.normalise_first ? x : r(x / p.sum));
    }
    weights_.clear();
    rows_.clear();
    return p.output;
  }

  Oracle& oracle_;
  KernelStyle style_;
  std::mt19937_64 noise_;
  std::vector<double> weights_;
  std::vector<std::vector<double>> rows_;
};

/// Largest bound ratio of every judged output of the scenario, and how many there were.
struct Ratios {
  double largest = 0;
  std::int64_t elements = 0;
};

inline Ratios judge(const Scenario& scenario, const KernelStyle& style, std::uint64_t seed = 1) {
  KernelStyle honest = style;
  honest.fault = Fault::none;
  Oracle oracle(scenario, honest.profile(scenario.element_type));
  SimulatedKernel kernel(oracle, style, seed);
  Ratios ratios;
  for (std::size_t step = 0; step < scenario.steps.size(); ++step) {
    const TimelineStep& state = oracle.timeline().steps()[step];
    if (!state.defined || !std::holds_alternative<Append>(scenario.steps[step])) continue;
    for (std::int64_t entry = 0; entry < scenario.batch; ++entry) {
      for (std::int64_t q = 0; q < state.entries[static_cast<std::size_t>(entry)].queries; ++q) {
        for (std::int64_t head = 0; head < scenario.query_heads; ++head) {
          const std::vector<double> row = kernel.row(step, entry, q, head);
          for (std::size_t c = 0; c < row.size(); ++c) {
            ratios.largest = std::max(
                ratios.largest,
                oracle.bound_ratio(step, entry, q, head, static_cast<std::int64_t>(c), row[c]));
            ++ratios.elements;
          }
        }
      }
    }
  }
  return ratios;
}

}  // namespace kvcheck::model
