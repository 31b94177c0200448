// The intermediate that a session asks for: logits or probabilities, [B,Nq,S,T].
//
// gqa writes 0 for keys that a query may not see, and -infinity for those that the bias alone
// hides from the logits (contract of GroupQueryAttention, 1.4.10). attention: raw and softcapped
// scores of every key, biased logits with -infinity for hidden ones, probabilities with 0 (ONNX
// Attention, qk_matmul_output_mode).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/cpu/cache.h"
#include "kernels/cpu/key_range.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

class Intermediate {
 public:
  /// \param queries most of any entry. Columns: longest present length, or the buffer's rows with
  /// nonpad_kv_seqlen.
  Intermediate(const SessionConfig& config, std::span<const EntryPlan> plans, std::int64_t queries);

  /// Whether it wants scores of keys that the query does not see.
  bool of_all_keys() const { return stage_ == "raw" || stage_ == "softcapped"; }

  /// The row that put() writes to, with what it holds where nothing is put. `reach` = rows that the
  /// query may see before the mask; row 0 of the cache holds `first_position`.
  void begin_row(std::int64_t entry, std::int64_t head, std::int64_t query,
                 std::int64_t first_position, KeyRange reach);

  /// Makes the row that put() writes to another one that was begun before.
  void go_to_row(std::int64_t entry, std::int64_t head, std::int64_t query,
                 std::int64_t first_position) {
    first_element_ = ((entry * heads_ + head) * queries_ + query) * columns_;
    first_position_ = first_position;
  }

  /// Stores a number of the key in `row` of the cache if `stage` is what is asked for.
  template <class Real>
  void put(std::string_view stage, std::int64_t row, Real value) {
    if (tensor_ && stage == stage_) store(row, static_cast<double>(value));
  }

  /// The same of a number that is at the stage asked for. \pre a stage is asked for
  void store(std::int64_t row, double value);
  /// The same of the keys in `count` neighbouring rows.
  void store_run(std::int64_t row, const float* values, std::int64_t count);

  std::optional<Tensor> take() { return std::move(tensor_); }

 private:
  std::string_view stage_;  // Of the config, which outlives the step.
  bool gqa_;
  std::int64_t heads_, queries_, columns_ = 0;
  std::optional<Tensor> tensor_;
  std::int64_t first_element_ = 0;
  std::int64_t first_position_ = 0;
  std::vector<float> hidden_;  // -infinity, as often as a row had need of it.
};

}  // namespace kvcheck::kernels
