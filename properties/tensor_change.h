// Tensor changes: the same case told to a target in other numbers or another order, and its
// answers told back, so that they compare with those of the case as it is.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/target.h"
#include "model/scenario.h"

namespace kvcheck::properties {

/// A change of what a session is given; `answer` and `rows` undo it in what comes back.
class TensorChange {
 public:
  virtual ~TensorChange() = default;
  virtual void config(kernels::SessionConfig&) const {}
  virtual void step(kernels::StepRequest&) const {}
  virtual void load(kernels::LoadRequest&) const {}
  /// Tokens per entry.
  virtual void rollback(std::vector<std::int64_t>&) const {}
  virtual void answer(kernels::StepResult&) const {}
  virtual void rows(kernels::CacheRows&) const {}
};

using TensorChanges = std::vector<std::shared_ptr<const TensorChange>>;

/// Entry i of what the target sees is entry order[i] of the scenario. Where position_ids have more
/// columns than tokens the operator reads them across entries, so that no order is like another.
/// \pre `order` is a permutation of the entries
std::shared_ptr<const TensorChange> reorder_entries(std::vector<std::int64_t> order);

/// KV head i is KV head kv_order[i], query head i is query head query_order[i].
/// \pre both are permutations, and each query head keeps its KV head
std::shared_ptr<const TensorChange> reorder_heads(std::vector<std::int64_t> query_order,
                                                  std::vector<std::int64_t> kv_order);

/// Padding tokens and padding queries hold `value`.
std::shared_ptr<const TensorChange> fill_padding(double value);

/// Values times 2^exponent, and so outputs; with a quantised cache the scale of values as well,
/// so that the codes stay. \pre no value overflows
std::shared_ptr<const TensorChange> scale_values(const model::Scenario& scenario, int exponent);

/// Queries times 2^exponent and the scale of logits times 2^-exponent. \pre no query overflows
std::shared_ptr<const TensorChange> scale_queries(int exponent);

/// Puts slice order[i] of dimension `dimension` in place i.
void reorder(kernels::Tensor& tensor, std::size_t dimension,
             const std::vector<std::int64_t>& order);

}  // namespace kvcheck::properties
