// The intermediate that a session asks for.
#include "kernels/cpu/intermediate.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

#include "kernels/cpu/element.h"

namespace kvcheck::kernels {

using namespace std::string_view_literals;

Intermediate::Intermediate(const SessionConfig& config, std::span<const EntryPlan> plans,
                           std::int64_t queries)
    : stage_(config.qk_output),
      gqa_(config.op == "gqa"sv),
      heads_(config.query_heads),
      queries_(queries) {
  if (stage_ == "none") return;
  columns_ = config.nonpad_kv_seqlen ? config.capacity : 0;
  for (const EntryPlan& plan : plans) columns_ = std::max(columns_, plan.length());
  tensor_ = Tensor::zeros(config.element_type, {config.batch, heads_, queries, columns_});
}

void Intermediate::begin_row(std::int64_t entry, std::int64_t head, std::int64_t query,
                             std::int64_t first_position, KeyRange reach) {
  if (!tensor_) return;
  go_to_row(entry, head, query, first_position);
  if (stage_ != "biased") return;
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  const std::int64_t begin = gqa_ ? reach.begin : -first_position;
  const std::int64_t end = gqa_ ? reach.end : columns_ - first_position;
  if (begin >= end) return;
  hidden_.resize(std::max(hidden_.size(), static_cast<std::size_t>(end - begin)), kHidden);
  store_run(begin, hidden_.data(), end - begin);
}

void Intermediate::store_run(std::int64_t row, const float* values, std::int64_t count) {
  const std::int64_t column = row + first_position_;
  // Only a planted fault leaves them.
  const std::int64_t begin = std::max<std::int64_t>(column, 0);
  const std::int64_t end = std::min(column + count, columns_);
  if (begin >= end) return;
  encode_row(tensor_->type, values + (begin - column), static_cast<std::size_t>(end - begin),
             tensor_->bytes.data() +
                 static_cast<std::size_t>(first_element_ + begin) * element_bytes(tensor_->type));
}

void Intermediate::store(std::int64_t row, double value) {
  const std::int64_t column = row + first_position_;
  if (column < 0 || column >= columns_) return;  // Only a planted fault leaves them.
  if (tensor_->type == ElementType::f32) {
    const auto number = static_cast<float>(value);
    std::memcpy(
        tensor_->bytes.data() + static_cast<std::size_t>(first_element_ + column) * sizeof number,
        &number, sizeof number);
    return;
  }
  const std::size_t bytes = element_bytes(tensor_->type);
  encode_element(tensor_->type, value,
                 tensor_->bytes.data() + static_cast<std::size_t>(first_element_ + column) * bytes);
}

}  // namespace kvcheck::kernels
