// Random attention rows and random arithmetic for tests.
#pragma once

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "model/arithmetic_profile.h"
#include "model/attention_row.h"

namespace kvcheck::model {

/// A row whose operands it holds itself, so it stays where it is.
class RandomRow {
 public:
  /// Up to 40 keys of up to 20 lanes; logits from none at all to hundreds, values of any size, with
  /// and without softcap, bias, sink and operands that may be held otherwise.
  explicit RandomRow(std::mt19937_64& random) : random_(random) {
    const auto keys = static_cast<std::size_t>(pick(1, 40));
    const auto head_size = static_cast<std::size_t>(pick(1, 20));
    lanes = static_cast<std::size_t>(pick(1, 20));
    const double logits = pick_size({0, 1e-30, 0.1, 1, 30, 1e5});
    const double values = pick_size({0, 1e-38, 1, 1, 1e30});
    input.query = numbers(head_size, logits);
    for (std::size_t j = 0; j < keys; ++j) {
      rows_.push_back(numbers(head_size, 1));
      rows_.push_back(numbers(lanes, values));
    }
    for (std::size_t j = 0; j < keys; ++j) {
      input.keys.push_back(rows_[2 * j].data());
      input.values.push_back(rows_[2 * j + 1].data());
    }
    input.biases = numbers(keys, pick(0, 2) == 0 ? 2 : 0);
    if (pick(0, 2) == 0) input.softcap = pick_size({0.5, 5, 50});
    if (pick(0, 2) == 0) input.sink = numbers(1, 4).front();
    if (pick(0, 3) == 0) input.scale = pick_size({0.01, 1, -0.3});
    if (pick(0, 3) == 0) {
      query_doubts_ = numbers(head_size, 1e-6 * logits);
      for (double& doubt : query_doubts_) doubt = std::abs(doubt);
      input.query_doubts = query_doubts_;
    }
  }
  RandomRow(const RandomRow&) = delete;
  RandomRow& operator=(const RandomRow&) = delete;

  std::size_t lanes = 0;
  AttentionRowInput input;

 private:
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  double pick_size(const std::vector<double>& sizes) { return sizes[random_() % sizes.size()]; }
  std::vector<double> numbers(std::size_t count, double size) {
    std::vector<double> out(count);
    for (double& number : out) number = size * normal_(random_);
    return out;
  }

  std::mt19937_64& random_;
  std::normal_distribution<double> normal_;
  std::vector<std::vector<double>> rows_;
  std::vector<double> query_doubts_;
};

/// Arithmetic with any of the habits that a target may declare.
inline ArithmeticProfile random_profile(std::mt19937_64& random) {
  const auto chance = [&](unsigned of) { return random() % of == 0; };
  ArithmeticProfile p;
  p.truncates = chance(6);
  if (chance(6)) p.operand_roundoff = 0x1p-11;
  if (chance(6)) p.product_roundoff = 0x1p-11;
  if (chance(6)) p.logit_roundoff = 0x1p-11;
  if (chance(4)) p.probability_roundoff = 0x1p-11;
  p.sums_stored_weights = chance(6);
  p.exp_flushes = chance(2);
  p.base_two = chance(4);
  p.fused_shift = chance(4);
  p.scale_on_operands = chance(4);
  p.exact_products = chance(4);
  p.dot_ways = chance(2) ? 8 : 0;
  p.dot_block = chance(4) ? 8 : 0;
  p.value_block = chance(2) ? 16 : 0;
  if (chance(2)) p.max_rescales = 1 << 20;
  p.rescale_block = chance(2) ? 16 : 1;
  p.splits = chance(2) ? 2 : 1;
  p.merges_by_lse = chance(6);
  p.output_type = chance(2) ? ElementType::f32 : chance(2) ? ElementType::f16 : ElementType::bf16;
  return p;
}

}  // namespace kvcheck::model
