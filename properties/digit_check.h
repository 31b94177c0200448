// Digit check: whether every query attends the keys that it should, by launches that show digits of
// their positions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/target.h"
#include "model/scenario.h"
#include "model/timeline.h"
#include "properties/drawn_rows.h"
#include "properties/execution.h"
#include "properties/read_back.h"
#include "properties/uniform_rows.h"

namespace kvcheck::properties {

struct DigitCheck {
  std::optional<DigitMismatch> mismatch;
  /// True when one key more or less could hide within the error bound of the outputs.
  bool blind = false;
  /// Every query that sees a key showed that it reads its own KV head and no other of the batch.
  bool tells_heads = false;
  std::int64_t queries = 0;
  std::string problem;  ///< Why a launch gave no answer; empty otherwise.

  /// Nothing contradicts the contract, and nothing could hide.
  bool clear() const { return problem.empty() && queries > 0 && !mismatch && !blind; }
};

/// What the scenario is asked under another mask.
struct OtherMask {
  model::MaskSpec mask;
  Interposer interposer;  ///< May change the cells of the mask.
  /// Puts the keys that the query sees under it in the place of those that it sees in the scenario.
  std::function<void(MeasuredQuery&)> see;
};

/// The launches of one scenario, and what they share.
class DigitLaunches {
 public:
  /// All outlive the launches. \pre fixed_tensors_reason(scenario) is empty, the target has outputs
  DigitLaunches(kernels::Target& target, const model::Scenario& scenario,
                const model::Timeline& timeline);

  /// Launches the scenario with zero logits, once for all digits or once for each; on first use. A
  /// query whose outputs are clearly within the bounds of uniform_rows.h passes; the exact model
  /// decides the others.
  const DigitCheck& check();

  /// Whether every query under another mask is clearly right, by uniform_rows.h alone; false says
  /// nothing.
  bool clearly_right(const OtherMask& other);

 private:
  DigitCheck launch(const std::vector<model::Scenario>& coded, std::optional<DrawnRows>& drawn);

  kernels::Target& target_;
  const model::Scenario& scenario_;
  const model::Timeline& timeline_;
  std::int64_t length_;
  std::vector<model::Scenario> coded_;  // Under the fills that together show every digit.
  std::shared_ptr<UniformRows> rows_;
  std::optional<DrawnRows> drawn_;  // Under coded_.
  std::optional<DigitCheck> check_;
};

/// DigitLaunches::check() of a scenario by itself.
DigitCheck check_digits(kernels::Target& target, const model::Scenario& scenario);

}  // namespace kvcheck::properties
