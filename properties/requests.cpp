// Tensors from fills.
#include "properties/requests.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>

#include "model/mask.h"
#include "model/parameters.h"
#include "model/quantisation.h"
#include "model/rotary.h"
#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

using kernels::Tensor;
using model::Scenario;

/// What a tensor may hold, so that it can be made anew by Tensor::zeros.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 31;

/// Attention without nonpad_kv_seqlen has no buffer, hence no unspecified rows.
bool has_unspecified_rows(const Scenario& scenario) {
  return scenario.op == model::Operator::gqa || scenario.nonpad_kv_seqlen;
}

/// Makes `tensor` one of this type and shape, whose elements hold anything. Its memory is used
/// again.
void shape_tensor(kernels::ElementType type, std::span<const std::int64_t> shape, Tensor& tensor) {
  tensor.type = type;
  tensor.shape.assign(shape.begin(), shape.end());
  const std::int64_t elements = tensor.elements();
  const auto width = static_cast<std::int64_t>(kernels::element_bytes(type));
  // zeros() says why not.
  if (elements > kMostBytes / width) tensor = Tensor::zeros(type, tensor.shape);
  tensor.bytes.resize(static_cast<std::size_t>(elements * width));
}

void mask_tensor(const Scenario& scenario, const model::Timeline& timeline, std::size_t step,
                 DrawnRows& rows, Tensor& tensor) {
  const std::vector<std::int64_t> shape = mask_shape(scenario, timeline, step);
  const bool boolean = scenario.mask.kind == model::MaskKind::boolean;
  shape_tensor(boolean ? kernels::ElementType::boolean : to_kernel(scenario.element_type), shape,
               tensor);
  // Dimensions that the rank lacks have one element, whose cells all share.
  std::array<std::int64_t, 4> whole{1, 1, 1, 1};
  std::ranges::copy(shape, whole.end() - static_cast<std::ptrdiff_t>(shape.size()));
  std::byte* where = tensor.bytes.data();
  for (std::int64_t b = 0; b < whole[0]; ++b) {
    for (std::int64_t h = 0; h < whole[1]; ++h) {
      for (std::int64_t i = 0; i < whole[2]; ++i) {
        where = std::ranges::copy(rows.mask_row(scenario, timeline, step, b, h, i, whole[3]), where)
                    .out;
      }
    }
  }
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

/// Rows of one side of a loaded cache in codes, written one after the other.
class CodeWriter {
 public:
  CodeWriter(const Scenario& scenario, model::CacheSide side, std::int64_t lanes, Tensor& tensor)
      : scenario_(scenario),
        kind_(scenario.cache.quantisation.kind),
        side_(side),
        rest_(tensor.bytes),
        row_(static_cast<std::size_t>(lanes)) {}

  /// Where the values of the next row go.
  std::span<double> row() { return row_; }

  void put_live(std::int64_t kv_head) {
    for (std::size_t c = 0; c < row_.size(); ++c) {
      const float scale =
          model::cache_scale(scenario_, side_, kv_head, static_cast<std::int64_t>(c));
      row_[c] = model::quantise(kind_, scale, row_[c]);
    }
    store();
  }

  void put_poison(double poison) {
    std::fill(row_.begin(), row_.end(), poison_code(kind_, poison));
    store();
  }

 private:
  void store() {
    const auto width =
        static_cast<std::size_t>(model::row_bytes(kind_, static_cast<std::int64_t>(row_.size())));
    model::store_row(kind_, row_, rest_.first(width));
    rest_ = rest_.subspan(width);
  }

  const Scenario& scenario_;
  model::QuantisationKind kind_;
  model::CacheSide side_;
  std::span<std::byte> rest_;
  std::vector<double> row_;
};

/// The token that stands at `position` behind `in_front` more. Those have a generation of their
/// own, so that none is a token of the scenario; few are told apart, which spares drawing them.
model::Token loaded_token(std::int64_t position, std::int64_t in_front) {
  constexpr std::int64_t kToldApart = 8;
  if (position < in_front) return {{position % kToldApart}, -1};
  return {{position - in_front}, 0};
}

void load_codes(const Scenario& scenario, const model::TimelineStep& step, const model::Fill& fill,
                double poison, std::int64_t in_front, kernels::CacheRows& rows) {
  CodeWriter key(scenario, model::CacheSide::key, scenario.head_size, rows.key);
  CodeWriter value(scenario, model::CacheSide::value, scenario.value_head_size, rows.value);
  for (std::int64_t b = 0; b < scenario.batch; ++b) {
    const auto& entry = step.entries[static_cast<std::size_t>(b)];
    for (std::int64_t h = 0; h < scenario.kv_heads; ++h) {
      for (std::int64_t r = 0; r < rows.key.shape[2]; ++r) {
        if (r >= entry.resident) {
          key.put_poison(poison);
          value.put_poison(poison);
          continue;
        }
        const model::Token token = loaded_token(entry.first_position.value + r, in_front);
        fill.key_row(b, h, token, key.row());
        fill.value_row(b, h, token, value.row());
        key.put_live(h);
        value.put_live(h);
      }
    }
  }
}

/// Fills a tensor with one value, which is stored once.
void fill_with(double value, Tensor& tensor) {
  const std::size_t width = kernels::element_bytes(tensor.type);
  if (tensor.bytes.empty()) return;
  model::store_element(to_model(tensor.type), value, tensor.bytes.data());
  for (std::size_t done = width; done < tensor.bytes.size();) {
    const std::size_t count = std::min(done, tensor.bytes.size() - done);
    std::memcpy(tensor.bytes.data() + done, tensor.bytes.data(), count);
    done += count;
  }
}

/// Puts a token's rows of all KV heads, which lie one after the other, into row `row` of an entry.
void put_in_row(std::span<const std::byte> heads, std::int64_t entry, std::int64_t row,
                Tensor& tensor) {
  const std::int64_t count = tensor.shape[1];
  const std::size_t width = heads.size() / static_cast<std::size_t>(count);
  for (std::int64_t h = 0; h < count; ++h) {
    const auto at = static_cast<std::size_t>((entry * count + h) * tensor.shape[2] + row);
    std::memcpy(tensor.bytes.data() + at * width,
                heads.data() + static_cast<std::size_t>(h) * width, width);
  }
}

/// Puts the rows of one token into a tensor [B,S,heads,lanes].
void put_token(std::span<const std::byte> heads, std::int64_t entry, std::int64_t token,
               Tensor& tensor) {
  const auto at = static_cast<std::size_t>(entry * tensor.shape[1] + token);
  std::memcpy(tensor.bytes.data() + at * heads.size(), heads.data(), heads.size());
}

/// Makes `tensor` one of [B, count, heads, lanes] whose rows past an entry's count hold `padding`,
/// and the others anything.
void shape_padded(kernels::ElementType type, std::initializer_list<std::int64_t> shape,
                  const std::vector<std::int64_t>& counts, double padding, Tensor& tensor) {
  shape_tensor(type, shape, tensor);
  const std::int64_t count = *(shape.begin() + 1);
  const bool ragged = std::ranges::any_of(counts, [&](std::int64_t n) { return n < count; });
  if (ragged) fill_with(padding, tensor);
}

void poison_rows(const model::Timeline& timeline, std::size_t step, double value,
                 std::optional<kernels::PoisonRows>& poison) {
  if (!poison) poison.emplace();
  poison->value = value;
  poison->first_row.clear();
  for (std::size_t b = 0; b < timeline.steps()[step].entries.size(); ++b) {
    poison->first_row.push_back(step == 0 ? 0 : timeline.steps()[step - 1].entries[b].resident);
  }
}

}  // namespace

kernels::StepRequest step_request(const Scenario& scenario, const model::Timeline& timeline,
                                  const model::Fill& fill, std::size_t step) {
  DrawnRows rows(scenario);
  kernels::StepRequest request;
  step_request(scenario, timeline, fill, step, rows, request);
  return request;
}

void step_request(const Scenario& scenario, const model::Timeline& timeline,
                  const model::Fill& fill, std::size_t step, DrawnRows& rows,
                  kernels::StepRequest& request) {
  const auto& append = std::get<model::Append>(scenario.steps[step]);
  const auto& entries = timeline.steps()[step].entries;
  const auto type = to_kernel(scenario.element_type);
  const std::int64_t tokens = *std::max_element(append.tokens.begin(), append.tokens.end());
  const std::int64_t queries = *std::max_element(append.queries.begin(), append.queries.end());
  const double padding = fill.poison(scenario.poison);

  request.tokens = append.tokens;
  request.queries = append.queries;
  shape_padded(type, {scenario.batch, queries, scenario.query_heads, scenario.head_size},
               append.queries, padding, request.query);
  shape_padded(type, {scenario.batch, tokens, scenario.kv_heads, scenario.head_size}, append.tokens,
               padding, request.key);
  shape_padded(type, {scenario.batch, tokens, scenario.kv_heads, scenario.value_head_size},
               append.tokens, padding, request.value);
  for (std::int64_t b = 0; b < scenario.batch; ++b) {
    const auto at = static_cast<std::size_t>(b);
    for (std::int64_t i = 0; i < append.queries[at]; ++i) {
      const model::Token place{{entries[at].origin.value + i}, append.generation};
      put_token(rows.queries(fill, step, b, i, place), b, i, request.query);
    }
    for (std::int64_t i = 0; i < append.tokens[at]; ++i) {
      const model::Token token{{entries[at].past + i}, append.generation};
      put_token(rows.keys(fill, b, token), b, i, request.key);
      put_token(rows.values(fill, b, token), b, i, request.value);
    }
  }
  if (scenario.mask.kind == model::MaskKind::none) {
    request.mask.reset();
  } else {
    if (!request.mask) request.mask.emplace();
    mask_tensor(scenario, timeline, step, rows, *request.mask);
  }
  request.position_ids.reset();
  if (scenario.rotary && scenario.rotary->position_ids) {
    request.position_ids = position_tensor(scenario, timeline, step);
  }
  if (!has_unspecified_rows(scenario)) {
    request.poison.reset();
    return;
  }
  poison_rows(timeline, step, padding, request.poison);
}

kernels::LoadRequest load_request(const Scenario& scenario, const model::Timeline& timeline,
                                  const model::Fill& fill, std::size_t step) {
  DrawnRows rows(scenario);
  kernels::LoadRequest request;
  load_request(scenario, timeline, fill, step, rows, request);
  return request;
}

void load_request(const Scenario& scenario, const model::Timeline& timeline,
                  const model::Fill& fill, std::size_t step, DrawnRows& drawn,
                  kernels::LoadRequest& request, std::int64_t in_front) {
  const auto& past = std::get<model::Past>(scenario.steps[step]);
  const auto& entries = timeline.steps()[step].entries;
  const auto type = storage_type(scenario);
  const std::int64_t rows =
      has_unspecified_rows(scenario) ? timeline.buffer_rows() : past.tokens.front();
  const double poison = fill.poison(scenario.poison);

  request.lengths = past.tokens;
  const auto shape = [&](std::int64_t lanes, Tensor& tensor) {
    const std::int64_t lengths[] = {scenario.batch, scenario.kv_heads, rows,
                                    stored_lanes(scenario, lanes)};
    shape_tensor(type, lengths, tensor);
  };
  shape(scenario.head_size, request.rows.key);
  shape(scenario.value_head_size, request.rows.value);
  if (scenario.cache.quantisation.kind != model::QuantisationKind::none) {
    load_codes(scenario, timeline.steps()[step], fill, poison, in_front, request.rows);
    return;
  }
  if (std::ranges::any_of(entries, [&](const auto& entry) { return entry.resident < rows; })) {
    fill_with(poison, request.rows.key);
    fill_with(poison, request.rows.value);
  }
  for (std::int64_t b = 0; b < scenario.batch; ++b) {
    const auto& entry = entries[static_cast<std::size_t>(b)];
    for (std::int64_t r = 0; r < entry.resident; ++r) {
      const model::Token token = loaded_token(entry.first_position.value + r, in_front);
      put_in_row(drawn.keys(fill, b, token), b, r, request.rows.key);
      put_in_row(drawn.values(fill, b, token), b, r, request.rows.value);
    }
  }
}

}  // namespace kvcheck::properties
