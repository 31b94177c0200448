// How much smaller the bound of a row is in double than in the target's arithmetic.
//
// Every term of the bound is a sum of products of errors (of dot products, exponentials, sums,
// stores, subnormal spacings) with data and with factors that grow with the errors. So where each
// error in double is at most the share s <= 1 of the target's, so is every term: the smaller errors
// leave the factors no larger, and each term has an error as a factor. What keeps a term from
// shrinking along is looked at apart: the least growth, and the limits by the range of the values.
#include <algorithm>
#include <limits>

#include "model/error_bound.h"

namespace kvcheck::model {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

/// Covers the rounding of the bounds, and that growth_of() is right to 1e-4 on either side of the
/// place where its series ends.
constexpr double kSlack = 1.01;

double share(double finer, double coarser) {
  if (finer == 0) return 0;
  return coarser > 0 ? finer / coarser : kUnknown;
}

}  // namespace

double RowBound::share_of(RowBound& finer, std::int64_t head_size) const {
  // The weights' errors reach a limit that does not shrink with the errors.
  if (needs_widest() || !(widest_lambda_ < kLargestExponent)) return kUnknown;
  const std::size_t keys = error_.size();
  if (keys < shares_.size() && shares_[keys] >= 0) return shares_[keys];
  finer.look_up(head_size, keys);
  const RowErrors& fine = finer.errors_;
  const ArithmeticProfile& p = finer.profile_;
  double found = kUnknown;
  // None of these has a place in the argument.
  const bool plain = fine.rescales == 0 && !p.base_two && !p.fused_shift && !p.merges_by_lse &&
                     !p.sums_stored_weights && p.logit_roundoff == 0 && p.probability_roundoff == 0;
  if (plain) {
    // Over the row sum, which is at most the number of keys, in the target's arithmetic alone.
    const double lost =
        share((finer.weight_spacing_ + finer.spacing_) * static_cast<double>(keys), spacing_);
    found = kSlack *
            std::max({share(fine.dot, errors_.dot),
                      share(fine.dot_roundings * finer.spacing_, errors_.dot_roundings * spacing_),
                      share(finer.u_, u_), share(finer.two_roundings_, two_roundings_),
                      share(finer.cap_roundings_, cap_roundings_),
                      share(finer.exp_log_error_, exp_log_error_),
                      share(kLeastGrowth, exp_log_error_), share(fine.pv, errors_.pv),
                      share(fine.sum, errors_.sum), share(fine.store, errors_.store), lost,
                      share(finer.store_spacing_, store_spacing_)});
  }
  if (keys < kKept) {
    if (shares_.size() <= keys) shares_.resize(keys + 1, -1);
    shares_[keys] = found;
  }
  return found;
}

}  // namespace kvcheck::model
