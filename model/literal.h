// The literal fill: tensors that the steps of a scenario spell out.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::model {

/// Looks tokens up in the step that brought them. All values come rounded to the element type; what
/// no step holds is 0.
class LiteralFill {
 public:
  /// Both must outlive the fill. \pre the tensors have the shapes of StepTensors
  LiteralFill(const Scenario& scenario, const Timeline& timeline);

  double key(std::int64_t entry, std::int64_t kv_head, Token token, std::int64_t lane) const;
  double value(std::int64_t entry, std::int64_t kv_head, Token token, std::int64_t lane) const;
  double query(std::size_t step, std::int64_t entry, std::int64_t query_head, std::int64_t query,
               std::int64_t lane) const;

 private:
  struct Place {
    const StepTensors* tensors = nullptr;
    std::int64_t token = 0;
  };
  double stored(LiteralTensor StepTensors::*tensor, std::int64_t entry, std::int64_t kv_head,
                Token token, std::int64_t lane) const;

  const Scenario* scenario_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Place> places_;
};

/// Gives the tensors of a literal fill the shapes that the steps ask for: surplus is cut off, what
/// is missing becomes 0 (of a boolean mask 1), and generations are the default ones, by which
/// tokens of one position are told apart. A scenario too large to be spelled out takes the random
/// fill. Other fills lose their tensors.
void fit_literals(Scenario& scenario);

/// The shapes that step `step` asks for; empty shapes where it takes no such tensor.
struct StepShapes {
  std::vector<std::int64_t> q, k, v, mask;
};
StepShapes literal_shapes(const Scenario& scenario, const Timeline& timeline, std::size_t step);

}  // namespace kvcheck::model
