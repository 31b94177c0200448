// Temptation: what a target must refuse, asked of a session between two steps of a scenario.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/target.h"
#include "model/scenario.h"
#include "model/timeline.h"
#include "properties/case.h"
#include "properties/tensor_change.h"

namespace kvcheck::properties {

/// Asks what must be refused and remembers what was not: to drop more tokens than there are and, of
/// a cache that keeps every token, to take or load more than the buffer has rows.
class Temptation {
 public:
  /// The step to ask before, by the content of the scenario: not the first, where nothing could
  /// change; empty where the contract defines fewer than two.
  static std::optional<std::size_t> place_of(const model::Scenario& scenario,
                                             const model::Timeline& timeline);
  /// Whether the target must refuse any of it.
  static bool has_questions(const kernels::Capabilities& target, const model::Scenario& scenario);

  /// \param changes of the requests that the session takes (tensor_change.h)
  /// \pre what is given outlives the temptation
  Temptation(const kernels::Capabilities& target, const model::Scenario& scenario,
             const model::Timeline& timeline, const TensorChanges& changes);

  /// Before which step the session is asked; empty = before none.
  const std::optional<std::size_t>& place() const { return place_; }

  /// Asks a session that has taken all steps before `step`, if that is the place.
  void ask(std::size_t step, kernels::Session& session);

  std::int64_t asked() const { return asked_; }
  /// What was accepted, or broke the target; empty where all was refused.
  const std::optional<Judgement>& failure() const { return failure_; }

 private:
  void ask_rollback(kernels::Session& session);
  void ask_append(kernels::Session& session);
  void ask_load(kernels::Session& session);
  template <class T>
  void judge(const kernels::Answer<T>& answer, const std::string& what);

  const kernels::Capabilities& target_;
  const model::Scenario& scenario_;
  const model::Timeline& timeline_;
  const TensorChanges& changes_;
  std::optional<std::size_t> place_;
  std::vector<std::int64_t> lengths_;  // Of every entry before the step.
  std::int64_t asked_ = 0;
  std::optional<Judgement> failure_;
};

}  // namespace kvcheck::properties
