// Counts of roundings.
#include "model/arithmetic_profile.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvcheck::model {
namespace {

/// Scale as 1/sqrt(head_size) and the product with it; the same under roots on both operands.
constexpr double kScaleRoundings = 3;
constexpr double kRootScaleRoundings = 6;

/// A reciprocal and a product, in place of a division.
constexpr double kDivisionRoundings = 2;

double real(std::int64_t count) { return static_cast<double>(count); }

/// Depth of one block: chains side by side, merged pairwise.
double block_depth(double count, std::int64_t ways) {
  if (ways <= 0) return count - 1;
  const double chains = std::min(real(ways), count);
  return std::ceil(count / chains) - 1 + std::ceil(std::log2(chains));
}

}  // namespace

ArithmeticProfile double_profile() {
  ArithmeticProfile profile;
  profile.accumulator_roundoff = 0x1p-53;
  profile.exp_error = 0x1p-52;
  profile.tanh_error = 0x1p-51;
  profile.output_type = ElementType::f64;
  return profile;
}

double sum_depth(double count, std::int64_t ways, std::int64_t block) {
  if (count <= 1) return 0;
  const double size = real(block);
  if (block <= 0 || size >= count) return block_depth(count, ways);
  return block_depth(size, ways) + std::ceil(count / size) - 1;
}

double compound_roundoff(double count, double roundoff) {
  if (count == 0 || roundoff == 0) return 0;
  if (roundoff >= 1) return count > 0 ? std::numeric_limits<double>::infinity() : 0;
  return std::expm1(-count * std::log1p(-roundoff));
}

double operation_roundoff(const ArithmeticProfile& profile) {
  return profile.accumulator_roundoff * (profile.truncates ? 2 : 1);
}

double store_roundoff(const ArithmeticProfile& profile, ElementType type) {
  const double roundoff = unit_roundoff(type);
  return roundoff > operation_roundoff(profile) ? roundoff : 0;
}

double effective_count(double count, double deviations) {
  return deviations > 0 ? std::min(count, deviations * std::sqrt(count)) : count;
}

RowErrors row_errors(const ArithmeticProfile& p, std::int64_t head_size, std::int64_t keys,
                     double deviations) {
  const double u = operation_roundoff(p);
  const auto error = [&](double count) {
    return 1 + compound_roundoff(effective_count(count, deviations), u);
  };
  RowErrors out;
  const double count = real(keys);
  const double merges = std::min(real(std::max<std::int64_t>(p.splits, 1)), count) - 1;
  const double tiles = std::ceil(count / real(std::max<std::int64_t>(p.rescale_block, 1)));
  const double rises = std::min(real(p.max_rescales), tiles - 1);
  out.rescales = std::min(rises + (p.merges_by_lse ? 0 : merges), count - 1);
  out.two_pass = p.max_rescales == 0 && merges == 0;
  out.normalises = p.max_rescales == 0 && (merges == 0 || p.merges_by_lse);

  const double narrowed = 1 + compound_roundoff(1, p.product_roundoff);
  out.dot_roundings = sum_depth(real(head_size), p.dot_ways, p.dot_block) +
                      (p.exact_products ? 0 : 1) + real(p.dequantise_roundings) +
                      (p.scale_on_operands ? kRootScaleRoundings : kScaleRoundings);
  out.dot =
      error(out.dot_roundings) * narrowed * (1 + compound_roundoff(2, p.operand_roundoff)) - 1;

  const double adds = sum_depth(count, 0, p.value_block) + out.rescales + merges;
  out.sum = error(adds) - 1;
  // Splits that are merged by their log-sum-exp are divided, then multiplied by their weight.
  double divisions = out.two_pass ? kDivisionRoundings : 0;
  if (p.merges_by_lse) divisions = kDivisionRoundings + 1;
  const double cast = p.sums_stored_weights ? 0 : p.probability_roundoff;
  out.pv = error(adds + 1 + divisions + real(p.dequantise_roundings)) * narrowed *
               (1 + compound_roundoff(1, p.operand_roundoff)) * (1 + compound_roundoff(1, cast)) -
           1;
  out.store =
      error(out.two_pass ? 0 : kDivisionRoundings) * (1 + store_roundoff(p, p.output_type)) - 1;
  return out;
}

}  // namespace kvcheck::model
