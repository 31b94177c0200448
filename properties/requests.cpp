// Tensors from fills.
#include "properties/requests.h"

#include <algorithm>
#include <limits>

#include "model/mask.h"
#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

using kernels::Tensor;
using model::Scenario;

/// Writes elements in order; the type of the tensor is one of the model's.
class Writer {
 public:
  explicit Writer(Tensor& tensor)
      : where_(tensor.bytes.data()),
        type_(to_model(tensor.type)),
        width_(kernels::element_bytes(tensor.type)) {}
  void put(double value) {
    model::store_element(type_, value, where_);
    where_ += width_;
  }

 private:
  std::byte* where_;
  model::ElementType type_;
  std::size_t width_;
};

/// Attention without nonpad_kv_seqlen has no buffer, hence no unspecified rows.
bool has_unspecified_rows(const Scenario& scenario) {
  return scenario.op == model::Operator::gqa || scenario.nonpad_kv_seqlen;
}

Tensor mask_tensor(const Scenario& scenario, const model::Timeline& timeline, std::size_t step) {
  const std::vector<std::int64_t> shape = mask_shape(scenario, timeline, step);
  const bool boolean = scenario.mask.kind == model::MaskKind::boolean;
  Tensor tensor = Tensor::zeros(
      boolean ? kernels::ElementType::boolean : to_kernel(scenario.element_type), shape);
  // Dimensions that the rank lacks have one element, whose cells all share.
  std::vector<std::int64_t> whole(4 - shape.size(), 1);
  whole.insert(whole.end(), shape.begin(), shape.end());
  const double hidden = -std::numeric_limits<double>::infinity();
  std::optional<Writer> writer;
  if (!boolean) writer.emplace(tensor);
  std::size_t flat = 0;
  for (std::int64_t b = 0; b < whole[0]; ++b) {
    for (std::int64_t h = 0; h < whole[1]; ++h) {
      for (std::int64_t i = 0; i < whole[2]; ++i) {
        for (std::int64_t j = 0; j < whole[3]; ++j) {
          const model::MaskCell cell = mask_cell(scenario, timeline, step, b, h, i, {j});
          if (boolean) {
            tensor.bytes[flat++] = std::byte{cell.hides ? std::uint8_t{0} : std::uint8_t{1}};
          } else {
            writer->put(cell.hides ? hidden : cell.bias);
          }
        }
      }
    }
  }
  return tensor;
}

}  // namespace

kernels::StepRequest step_request(const Scenario& scenario, const model::Timeline& timeline,
                                  const model::Fill& fill, std::size_t step) {
  const auto& append = std::get<model::Append>(scenario.steps[step]);
  const auto& entries = timeline.steps()[step].entries;
  const auto type = to_kernel(scenario.element_type);
  const std::int64_t tokens = *std::max_element(append.tokens.begin(), append.tokens.end());
  const std::int64_t queries = *std::max_element(append.queries.begin(), append.queries.end());
  const double padding = fill.poison(scenario.poison);

  kernels::StepRequest request;
  request.tokens = append.tokens;
  request.queries = append.queries;
  request.query =
      Tensor::zeros(type, {scenario.batch, queries, scenario.query_heads, scenario.head_size});
  request.key =
      Tensor::zeros(type, {scenario.batch, tokens, scenario.kv_heads, scenario.head_size});
  request.value =
      Tensor::zeros(type, {scenario.batch, tokens, scenario.kv_heads, scenario.value_head_size});
  Writer query(request.query), key(request.key), value(request.value);
  for (std::int64_t b = 0; b < scenario.batch; ++b) {
    const auto at = static_cast<std::size_t>(b);
    for (std::int64_t i = 0; i < queries; ++i) {
      for (std::int64_t h = 0; h < scenario.query_heads; ++h) {
        for (std::int64_t c = 0; c < scenario.head_size; ++c) {
          query.put(i < append.queries[at] ? fill.query(step, b, h, i, c) : padding);
        }
      }
    }
    for (std::int64_t i = 0; i < tokens; ++i) {
      const bool real = i < append.tokens[at];
      const model::Token token{{entries[at].past + i}, append.generation};
      for (std::int64_t h = 0; h < scenario.kv_heads; ++h) {
        for (std::int64_t c = 0; c < scenario.head_size; ++c) {
          key.put(real ? fill.key(b, h, token, c) : padding);
        }
        for (std::int64_t c = 0; c < scenario.value_head_size; ++c) {
          value.put(real ? fill.value(b, h, token, c) : padding);
        }
      }
    }
  }
  if (scenario.mask.kind != model::MaskKind::none) {
    request.mask = mask_tensor(scenario, timeline, step);
  }
  if (has_unspecified_rows(scenario)) {
    const auto layout_rows = [&](std::size_t b) {
      return step == 0 ? 0 : timeline.steps()[step - 1].entries[b].resident;
    };
    kernels::PoisonRows poison;
    poison.value = padding;
    for (std::size_t b = 0; b < entries.size(); ++b) poison.first_row.push_back(layout_rows(b));
    request.poison = poison;
  }
  return request;
}

kernels::LoadRequest load_request(const Scenario& scenario, const model::Timeline& timeline,
                                  const model::Fill& fill, std::size_t step) {
  const auto& past = std::get<model::Past>(scenario.steps[step]);
  const auto& entries = timeline.steps()[step].entries;
  const auto type = to_kernel(scenario.element_type);
  const std::int64_t rows =
      has_unspecified_rows(scenario) ? timeline.buffer_rows() : past.tokens.front();
  const double poison = fill.poison(scenario.poison);

  kernels::LoadRequest request;
  request.lengths = past.tokens;
  request.rows.key =
      Tensor::zeros(type, {scenario.batch, scenario.kv_heads, rows, scenario.head_size});
  request.rows.value =
      Tensor::zeros(type, {scenario.batch, scenario.kv_heads, rows, scenario.value_head_size});
  Writer key(request.rows.key), value(request.rows.value);
  for (std::int64_t b = 0; b < scenario.batch; ++b) {
    const auto& entry = entries[static_cast<std::size_t>(b)];
    for (std::int64_t h = 0; h < scenario.kv_heads; ++h) {
      for (std::int64_t r = 0; r < rows; ++r) {
        const bool live = r < entry.resident;
        const model::Token token{{entry.first_position.value + r}, 0};
        for (std::int64_t c = 0; c < scenario.head_size; ++c) {
          key.put(live ? fill.key(b, h, token, c) : poison);
        }
        for (std::int64_t c = 0; c < scenario.value_head_size; ++c) {
          value.put(live ? fill.value(b, h, token, c) : poison);
        }
      }
    }
  }
  return request;
}

}  // namespace kvcheck::properties
