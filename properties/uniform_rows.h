// Uniform rows: what attention gives where every logit is 0 and every value 0 or 1.
//
// n keys of weight 1 beside a sink of weight e, c of them with the value 1, give c / (n + e). The
// bound is that of the exact model, and rows of the same n, c and e share it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "model/error_bound.h"
#include "model/scenario.h"

namespace kvcheck::properties {

/// What the sink of a head weighs where a key with logit 0 weighs 1; 0 where there is none.
double sink_mass(const model::Scenario& launch, std::int64_t head);

/// All that rows of equal keys depend on, but for their number.
struct UniformCase {
  /// \pre the profile is that of the oracle for `launch`, whose cache is not quantised
  UniformCase(const model::Scenario& launch, const model::ArithmeticProfile& profile);

  model::ArithmeticProfile profile;
  std::int64_t head_size = 0;
  std::int64_t lanes = 0;  ///< Of a value: 1, or 2 for any other number.
  double softcap = 0;
  std::vector<double> sinks;  ///< sink_mass() of each head, or of all; empty where there is none.
  friend bool operator==(const UniformCase&, const UniformCase&) = default;
};

/// Whether one key more could hide in a lane. It changes one that shows c of n keys from c/n to
/// c/(n+1) or (c+1)/(n+1), and hides when even the larger change stays within the bound. `mass` is
/// n and what the sink weighs. In a single lane the key may be either, so the smaller counts; but
/// beside one key or none some digit changes by the larger.
bool lane_hides_a_key(double output, double bound, std::int64_t lanes, std::int64_t keys,
                      double mass);

class UniformRows {
 public:
  /// One output element, right to a few units of double, and how far a target may be from it.
  struct Lane {
    double output = 0, bound = 0;
    /// Where the values are v > 1 in place of 1, an element within v times this is clearly within
    /// its bound: what underflow adds to a bound does not grow with the values.
    double scaled_bound = 0;
    bool hides_a_key = false;  ///< See lane_hides_a_key(); false where the row sees no key.
  };

  explicit UniformRows(UniformCase of);

  /// The rows of a case, with what was worked out for an earlier one on this thread that is equal.
  static std::shared_ptr<UniformRows> of(UniformCase wanted);

  /// A lane in which `lit` of the `keys` keys that `head` sees have the value 1, the others 0.
  /// Valid until the next call.
  /// \pre 0 <= lit <= keys
  const Lane& lane(std::int64_t head, std::int64_t keys, std::int64_t lit) {
    if (last_ != nullptr && last_->keys == keys && last_->sink_of == sink_of(head) && lit < kFew &&
        last_->few[static_cast<std::size_t>(lit)].bound > 0) {
      return last_->few[static_cast<std::size_t>(lit)];
    }
    return find(head, keys, lit);
  }

 private:
  static constexpr std::int64_t kFew = 4;

  /// Rows of one sink and number of keys.
  struct Shared {
    std::int64_t sink_of = 0;  // The head whose sink it is.
    std::int64_t keys = 0;
    std::array<Lane, kFew> few;                        // [lit], with the bound 0 until asked.
    std::vector<std::pair<std::int64_t, Lane>> lanes;  // By more lit keys, as far as asked.
  };

  /// The head whose sink the rows of `head` have.
  std::int64_t sink_of(std::int64_t head) const { return case_.sinks.size() > 1 ? head : 0; }
  double mass_of(std::int64_t sink) const {
    return case_.sinks.empty() ? 0 : case_.sinks[static_cast<std::size_t>(sink)];
  }
  const Lane& find(std::int64_t head, std::int64_t keys, std::int64_t lit);

  Shared& shared(std::int64_t head, std::int64_t keys);
  void set_row(const Shared& shared);
  Lane made(const Shared& shared, std::int64_t lit);

  UniformCase case_;
  model::RowBound bound_;
  double store_spacing_;  // What the store of a subnormal output may add to a bound.
  std::map<std::pair<std::int64_t, std::int64_t>, Shared> rows_;
  Shared* last_ = nullptr;           // The one asked for last.
  const Shared* current_ = nullptr;  // The one that bound_ is set to.
  std::vector<model::KeyTerm> terms_;
};

}  // namespace kvcheck::properties
