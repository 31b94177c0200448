// Tensors from fills.
#include "properties/requests.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "model/mask.h"
#include "model/parameters.h"
#include "model/quantisation.h"
#include "model/rotary.h"
#include "properties/convert.h"
#include "properties/tensor_writer.h"

namespace kvcheck::properties {
namespace {

using kernels::Tensor;
using model::Scenario;

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
  std::optional<TensorWriter> writer;
  if (!boolean) writer.emplace(tensor);
  std::size_t flat = 0;
  for (std::int64_t b = 0; b < whole[0]; ++b) {
    for (std::int64_t h = 0; h < whole[1]; ++h) {
      for (std::int64_t i = 0; i < whole[2]; ++i) {
        const model::MaskRow row(scenario, timeline, step, b, h, i);
        for (std::int64_t j = 0; j < whole[3]; ++j) {
          const model::MaskCell cell = row.at({j});
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

/// i64 [B, columns]
Tensor position_tensor(const Scenario& scenario, const model::Timeline& timeline,
                       std::size_t step) {
  const auto rows = model::position_ids(scenario, timeline, step);
  const auto columns = static_cast<std::int64_t>(rows.front().size());
  Tensor tensor = Tensor::zeros(kernels::ElementType::i64, {scenario.batch, columns});
  std::byte* where = tensor.bytes.data();
  for (const auto& row : rows) {
    std::memcpy(where, row.data(), row.size() * sizeof(std::int64_t));
    where += row.size() * sizeof(std::int64_t);
  }
  return tensor;
}

/// The code of a poison: cut to the range, but for the NaN of fp8.
double poison_code(model::QuantisationKind kind, double poison) {
  const bool nan_stays = kind == model::QuantisationKind::fp8 && std::isnan(poison);
  return nan_stays ? poison : model::quantise(kind, 1, poison);
}

/// Rows of one side of a loaded cache, written one after the other as the cache stores them.
class RowWriter {
 public:
  RowWriter(const Scenario& scenario, model::CacheSide side, std::int64_t lanes, Tensor& tensor)
      : scenario_(scenario),
        kind_(scenario.cache.quantisation.kind),
        side_(side),
        rest_(tensor.bytes),
        row_(static_cast<std::size_t>(lanes)) {}

  /// Where the values of the next row go.
  std::span<double> row() { return row_; }

  void put_live(std::int64_t kv_head) {
    if (kind_ != model::QuantisationKind::none) {
      for (std::size_t c = 0; c < row_.size(); ++c) {
        const float scale =
            model::cache_scale(scenario_, side_, kv_head, static_cast<std::int64_t>(c));
        row_[c] = model::quantise(kind_, scale, row_[c]);
      }
    }
    store();
  }

  void put_poison(double poison) {
    if (kind_ != model::QuantisationKind::none) poison = poison_code(kind_, poison);
    std::fill(row_.begin(), row_.end(), poison);
    store();
  }

 private:
  void store() {
    if (kind_ != model::QuantisationKind::none) {
      const auto width =
          static_cast<std::size_t>(model::row_bytes(kind_, static_cast<std::int64_t>(row_.size())));
      model::store_row(kind_, row_, rest_.first(width));
      rest_ = rest_.subspan(width);
      return;
    }
    model::store_elements(scenario_.element_type, row_, rest_.data());
    rest_ = rest_.subspan(row_.size() * model::element_bytes(scenario_.element_type));
  }

  const Scenario& scenario_;
  model::QuantisationKind kind_;
  model::CacheSide side_;
  std::span<std::byte> rest_;
  std::vector<double> row_;
};

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
  TensorWriter query(request.query), key(request.key), value(request.value);
  std::vector<double> lanes(static_cast<std::size_t>(scenario.head_size));
  std::vector<double> value_lanes(static_cast<std::size_t>(scenario.value_head_size));
  const std::vector<double> padding_lanes(lanes.size(), padding);
  const std::vector<double> value_padding_lanes(value_lanes.size(), padding);
  for (std::int64_t b = 0; b < scenario.batch; ++b) {
    const auto at = static_cast<std::size_t>(b);
    for (std::int64_t i = 0; i < queries; ++i) {
      const bool real = i < append.queries[at];
      for (std::int64_t h = 0; h < scenario.query_heads; ++h) {
        if (real) fill.query_row(step, b, h, i, lanes);
        query.put_row(real ? lanes : padding_lanes);
      }
    }
    for (std::int64_t i = 0; i < tokens; ++i) {
      const bool real = i < append.tokens[at];
      const model::Token token{{entries[at].past + i}, append.generation};
      for (std::int64_t h = 0; h < scenario.kv_heads; ++h) {
        if (real) fill.key_row(b, h, token, lanes);
        if (real) fill.value_row(b, h, token, value_lanes);
        key.put_row(real ? lanes : padding_lanes);
        value.put_row(real ? value_lanes : value_padding_lanes);
      }
    }
  }
  if (scenario.mask.kind != model::MaskKind::none) {
    request.mask = mask_tensor(scenario, timeline, step);
  }
  if (scenario.rotary && scenario.rotary->position_ids) {
    request.position_ids = position_tensor(scenario, timeline, step);
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
  const auto type = storage_type(scenario);
  const std::int64_t rows =
      has_unspecified_rows(scenario) ? timeline.buffer_rows() : past.tokens.front();
  const double poison = fill.poison(scenario.poison);

  kernels::LoadRequest request;
  request.lengths = past.tokens;
  const auto tensor = [&](std::int64_t lanes) {
    return Tensor::zeros(type,
                         {scenario.batch, scenario.kv_heads, rows, stored_lanes(scenario, lanes)});
  };
  request.rows.key = tensor(scenario.head_size);
  request.rows.value = tensor(scenario.value_head_size);
  RowWriter key(scenario, model::CacheSide::key, scenario.head_size, request.rows.key);
  RowWriter value(scenario, model::CacheSide::value, scenario.value_head_size, request.rows.value);
  for (std::int64_t b = 0; b < scenario.batch; ++b) {
    const auto& entry = entries[static_cast<std::size_t>(b)];
    for (std::int64_t h = 0; h < scenario.kv_heads; ++h) {
      for (std::int64_t r = 0; r < rows; ++r) {
        if (r >= entry.resident) {
          key.put_poison(poison);
          value.put_poison(poison);
          continue;
        }
        const model::Token token{{entry.first_position.value + r}, 0};
        fill.key_row(b, h, token, key.row());
        fill.value_row(b, h, token, value.row());
        key.put_live(h);
        value.put_live(h);
      }
    }
  }
  return request;
}

}  // namespace kvcheck::properties
