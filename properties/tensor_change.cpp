// Reordering, filling and scaling of tensors.
#include "properties/tensor_change.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "model/wide_loops.h"
#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

using kernels::Tensor;
using Order = std::vector<std::int64_t>;

/// Bytes of a tensor in whose place a thread keeps memory.
constexpr std::size_t kMostKept = std::size_t{1} << 20;

Order inverse(const Order& order) {
  Order result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    result[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  return result;
}

bool is_identity(const Order& order) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

Order picked(const Order& values, const Order& order) {
  Order result;
  result.reserve(order.size());
  for (const std::int64_t from : order) result.push_back(values[static_cast<std::size_t>(from)]);
  return result;
}

/// Dimension of a mask counted from the last, where it has that many and more than one element.
void reorder_mask(std::optional<Tensor>& mask, std::size_t from_last, const Order& order) {
  if (!mask || mask->shape.size() < from_last) return;
  const std::size_t dimension = mask->shape.size() - from_last;
  if (mask->shape[dimension] > 1) reorder(*mask, dimension, order);
}

class EntryOrder final : public TensorChange {
 public:
  explicit EntryOrder(Order order) : order_(std::move(order)), back_(inverse(order_)) {}

  void step(kernels::StepRequest& request) const override {
    for (Tensor* tensor : {&request.query, &request.key, &request.value}) {
      reorder(*tensor, 0, order_);
    }
    request.tokens = picked(request.tokens, order_);
    request.queries = picked(request.queries, order_);
    reorder_mask(request.mask, 4, order_);
    if (request.position_ids) reorder(*request.position_ids, 0, order_);
    if (request.poison) request.poison->first_row = picked(request.poison->first_row, order_);
  }
  void load(kernels::LoadRequest& request) const override {
    request.lengths = picked(request.lengths, order_);
    reorder(request.rows.key, 0, order_);
    reorder(request.rows.value, 0, order_);
  }
  void rollback(Order& tokens) const override { tokens = picked(tokens, order_); }
  void answer(kernels::StepResult& result) const override {
    for (auto* tensor : {&result.output, &result.visible, &result.qk}) {
      if (*tensor) reorder(**tensor, 0, back_);
    }
  }
  void rows(kernels::CacheRows& rows) const override {
    reorder(rows.key, 0, back_);
    reorder(rows.value, 0, back_);
  }

 private:
  Order order_, back_;
};

class HeadOrder final : public TensorChange {
 public:
  HeadOrder(Order query, Order kv)
      : query_(std::move(query)),
        kv_(std::move(kv)),
        query_back_(inverse(query_)),
        kv_back_(inverse(kv_)) {}

  void config(kernels::SessionConfig& config) const override {
    if (config.head_sink) reorder(*config.head_sink, 0, query_);
    if (!config.quantisation.per_channel) return;
    reorder(config.quantisation.key_scale, 0, kv_);
    reorder(config.quantisation.value_scale, 0, kv_);
  }
  void step(kernels::StepRequest& request) const override {
    reorder(request.query, 2, query_);
    reorder(request.key, 2, kv_);
    reorder(request.value, 2, kv_);
    reorder_mask(request.mask, 3, query_);
  }
  void load(kernels::LoadRequest& request) const override {
    reorder(request.rows.key, 1, kv_);
    reorder(request.rows.value, 1, kv_);
  }
  void answer(kernels::StepResult& result) const override {
    if (result.output) reorder(*result.output, 2, query_back_);
    if (result.qk) reorder(*result.qk, 1, query_back_);
  }
  void rows(kernels::CacheRows& rows) const override {
    reorder(rows.key, 1, kv_back_);
    reorder(rows.value, 1, kv_back_);
  }

 private:
  Order query_, kv_, query_back_, kv_back_;
};

class Padding final : public TensorChange {
 public:
  explicit Padding(double value) : value_(value) {}

  void step(kernels::StepRequest& request) const override {
    fill(request.query, request.queries);
    fill(request.key, request.tokens);
    fill(request.value, request.tokens);
  }

 private:
  /// Of a tensor [B,S,heads,lanes], what lies past counts[b].
  void fill(Tensor& tensor, const Order& counts) const {
    const std::int64_t token = tensor.shape[2] * tensor.shape[3];
    const std::size_t width = kernels::element_bytes(tensor.type);
    for (std::size_t b = 0; b < counts.size(); ++b) {
      const std::int64_t first = static_cast<std::int64_t>(b) * tensor.shape[1];
      for (std::int64_t i = (first + counts[b]) * token; i < (first + tensor.shape[1]) * token;
           ++i) {
        model::store_element(to_model(tensor.type), value_,
                             tensor.bytes.data() + static_cast<std::size_t>(i) * width);
      }
    }
  }

  double value_;
};

/// Elements with `fraction` bits behind the exponent, times 2^exponent by their exponents alone;
/// what would overflow stays. False, and all as it was, where a subnormal number comes or goes.
template <class Bits>
KVCHECK_INTO_WIDE_LOOPS bool scale_exponents(std::span<std::byte> bytes, int fraction,
                                             int exponent) {
  constexpr int kAll = 8 * sizeof(Bits);
  using Field = std::conditional_t<kAll == 64, std::int64_t, std::int32_t>;
  const auto top = static_cast<Field>((Bits{1} << (kAll - 1 - fraction)) - 1);
  const std::size_t count = bytes.size() / sizeof(Bits);
  const auto load = [&](std::size_t i) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i * sizeof bits, sizeof bits);
    return bits;
  };
  // A zero stays one, and so does what is infinite or no number.
  const auto field_of = [&](Bits bits) { return static_cast<Field>(bits >> fraction) & top; };
  const auto stays = [&](Bits bits) {
    return static_cast<Bits>(bits << 1) == 0 || field_of(bits) == top;
  };
  Bits subnormal = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Bits bits = load(i);
    const Field field = field_of(bits);
    const bool small = !stays(bits) && (field == 0 || field + exponent <= 0);
    subnormal = static_cast<Bits>(subnormal | (small ? 1 : 0));
  }
  if (subnormal != 0) return false;
  const auto more = static_cast<Bits>(static_cast<Bits>(exponent) << fraction);
  for (std::size_t i = 0; i < count; ++i) {
    const Bits bits = load(i);
    const bool same = stays(bits) || field_of(bits) + exponent >= top;
    const auto scaled = static_cast<Bits>(bits + (same ? Bits{0} : more));
    std::memcpy(bytes.data() + i * sizeof scaled, &scaled, sizeof scaled);
  }
  return true;
}

KVCHECK_WIDE_LOOPS bool scale_exponents(kernels::ElementType type, std::span<std::byte> bytes,
                                        int exponent) {
  switch (type) {
    case kernels::ElementType::f16:
      return scale_exponents<std::uint16_t>(bytes, 10, exponent);
    case kernels::ElementType::bf16:
      return scale_exponents<std::uint16_t>(bytes, 7, exponent);
    case kernels::ElementType::f64:
      return scale_exponents<std::uint64_t>(bytes, 52, exponent);
    default:
      return scale_exponents<std::uint32_t>(bytes, 23, exponent);
  }
}

/// Times 2^exponent, element by element; what would overflow, such as a poison, stays.
void scale(Tensor& tensor, int exponent) {
  if (scale_exponents(tensor.type, tensor.bytes, exponent)) return;
  const model::ElementType type = to_model(tensor.type);
  const std::size_t width = kernels::element_bytes(tensor.type);
  const double largest = model::largest_finite(type);
  for (std::size_t at = 0; at < tensor.bytes.size(); at += width) {
    const double number = model::load_element(type, tensor.bytes.data() + at);
    const double scaled = std::ldexp(number, exponent);
    if (!std::isfinite(number) || std::abs(scaled) > largest) continue;
    model::store_element(type, scaled, tensor.bytes.data() + at);
  }
}

class ValueScale final : public TensorChange {
 public:
  ValueScale(bool quantised, int exponent) : quantised_(quantised), exponent_(exponent) {}

  void config(kernels::SessionConfig& config) const override {
    if (quantised_) scale(config.quantisation.value_scale, exponent_);
  }
  void step(kernels::StepRequest& request) const override { scale(request.value, exponent_); }
  void load(kernels::LoadRequest& request) const override {
    if (!quantised_) scale(request.rows.value, exponent_);
  }
  void answer(kernels::StepResult& result) const override {
    if (result.output) scale(*result.output, -exponent_);
  }
  void rows(kernels::CacheRows& rows) const override {
    if (!quantised_) scale(rows.value, -exponent_);
  }

 private:
  bool quantised_;
  int exponent_;
};

class QueryScale final : public TensorChange {
 public:
  explicit QueryScale(int exponent) : exponent_(exponent) {}

  void config(kernels::SessionConfig& config) const override {
    if (config.scale == 0) config.scale = 1 / std::sqrt(static_cast<double>(config.head_size));
    config.scale = std::ldexp(config.scale, -exponent_);
  }
  void step(kernels::StepRequest& request) const override { scale(request.query, exponent_); }

 private:
  int exponent_;
};

}  // namespace

std::shared_ptr<const TensorChange> reorder_entries(Order order) {
  return std::make_shared<EntryOrder>(std::move(order));
}

std::shared_ptr<const TensorChange> reorder_heads(Order query_order, Order kv_order) {
  return std::make_shared<HeadOrder>(std::move(query_order), std::move(kv_order));
}

std::shared_ptr<const TensorChange> fill_padding(double value) {
  return std::make_shared<Padding>(value);
}

std::shared_ptr<const TensorChange> scale_values(const model::Scenario& scenario, int exponent) {
  return std::make_shared<ValueScale>(
      scenario.cache.quantisation.kind != model::QuantisationKind::none, exponent);
}

std::shared_ptr<const TensorChange> scale_queries(int exponent) {
  return std::make_shared<QueryScale>(exponent);
}

void reorder(Tensor& tensor, std::size_t dimension, const Order& order) {
  std::size_t outer = 1, inner = kernels::element_bytes(tensor.type);
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    if (d < dimension) outer *= static_cast<std::size_t>(tensor.shape[d]);
    if (d > dimension) inner *= static_cast<std::size_t>(tensor.shape[d]);
  }
  if (tensor.bytes.empty() || is_identity(order)) return;
  // Kept for the next one, but where it is large.
  thread_local std::vector<std::byte> kept;
  std::vector<std::byte> large;
  std::vector<std::byte>& from = tensor.bytes.size() <= kMostKept ? kept : large;
  from.assign(tensor.bytes.begin(), tensor.bytes.end());
  std::byte* to = tensor.bytes.data();
  for (std::size_t block = 0; block < outer; ++block) {
    for (const std::int64_t slice : order) {
      std::memcpy(to,
                  from.data() + (block * order.size() + static_cast<std::size_t>(slice)) * inner,
                  inner);
      to += inner;
    }
  }
}

}  // namespace kvcheck::properties
