// Lookup and repair of literal tensors.
#include "model/literal.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <variant>

#include "model/mask.h"

namespace kvcheck::model {
namespace {

double element(const LiteralTensor& tensor, std::initializer_list<std::int64_t> at) {
  std::int64_t flat = 0;
  std::size_t dimension = 0;
  for (const std::int64_t i : at) {
    if (i >= tensor.shape[dimension]) return 0;
    flat = flat * tensor.shape[dimension++] + i;
  }
  return tensor.values[static_cast<std::size_t>(flat)];
}

/// `tensor` cut or filled up to `shape`.
LiteralTensor resized(const LiteralTensor& tensor, const std::vector<std::int64_t>& shape,
                      double missing) {
  LiteralTensor out{shape, {}};
  std::int64_t size = 1;
  for (const std::int64_t length : shape) size *= length;
  out.values.assign(static_cast<std::size_t>(size), missing);
  if (tensor.shape.size() != shape.size()) return out;
  std::vector<std::int64_t> at(shape.size(), 0);
  for (double& value : out.values) {
    std::int64_t flat = 0;
    bool inside = true;
    for (std::size_t d = 0; d < at.size(); ++d) {
      inside = inside && at[d] < tensor.shape[d];
      flat = flat * tensor.shape[d] + at[d];
    }
    if (inside) value = tensor.values[static_cast<std::size_t>(flat)];
    for (std::size_t d = at.size(); d-- > 0 && ++at[d] == shape[d];) at[d] = 0;
  }
  return out;
}

void fit(LiteralTensor& tensor, const std::vector<std::int64_t>& shape, double missing) {
  if (shape.empty()) {
    tensor = {};
  } else if (tensor.shape != shape) {
    tensor = resized(tensor, shape, missing);
  }
}

/// More than any scenario file can hold.
constexpr double kMostElements = 1 << 22;

double elements(const std::vector<std::int64_t>& shape) {
  double count = shape.empty() ? 0 : 1;
  for (const std::int64_t length : shape) count *= static_cast<double>(length);
  return count;
}

/// Whether the tensors of all steps stay within kMostElements.
bool can_be_spelled_out(const Scenario& scenario, const Timeline& timeline) {
  double count = 0;
  for (std::size_t step = 0; step < scenario.steps.size(); ++step) {
    const StepShapes shapes = literal_shapes(scenario, timeline, step);
    count += elements(shapes.q) + elements(shapes.k) + elements(shapes.v) + elements(shapes.mask);
  }
  return count <= kMostElements;
}

std::int64_t most(const std::vector<std::int64_t>& counts) {
  return *std::max_element(counts.begin(), counts.end());
}

}  // namespace

LiteralFill::LiteralFill(const Scenario& scenario, const Timeline& timeline)
    : scenario_(&scenario) {
  for (std::size_t step = 0; step < scenario.steps.size(); ++step) {
    const auto* append = std::get_if<Append>(&scenario.steps[step]);
    const auto* past = std::get_if<Past>(&scenario.steps[step]);
    if (append == nullptr && past == nullptr) continue;
    const StepTensors& tensors = append != nullptr ? append->tensors : past->tensors;
    const auto& counts = append != nullptr ? append->tokens : past->tokens;
    for (std::size_t b = 0; b < counts.size(); ++b) {
      const std::int64_t first = append != nullptr ? timeline.steps()[step].entries[b].past : 0;
      for (std::int64_t i = 0; i < counts[b]; ++i) {
        places_[{static_cast<std::int64_t>(b), first + i,
                 append != nullptr ? append->generation : 0}] = {&tensors, i};
      }
    }
  }
}

double LiteralFill::stored(LiteralTensor StepTensors::*tensor, std::int64_t entry,
                           std::int64_t kv_head, Token token, std::int64_t lane) const {
  const auto found = places_.find({entry, token.position.value, token.generation});
  if (found == places_.end()) return 0;
  const Place& place = found->second;
  return round_to(scenario_->element_type,
                  element(place.tensors->*tensor, {entry, place.token, kv_head, lane}));
}

double LiteralFill::key(std::int64_t entry, std::int64_t kv_head, Token token,
                        std::int64_t lane) const {
  return stored(&StepTensors::k, entry, kv_head, token, lane);
}

double LiteralFill::value(std::int64_t entry, std::int64_t kv_head, Token token,
                          std::int64_t lane) const {
  return stored(&StepTensors::v, entry, kv_head, token, lane);
}

double LiteralFill::query(std::size_t step, std::int64_t entry, std::int64_t query_head,
                          std::int64_t query, std::int64_t lane) const {
  const auto& append = std::get<Append>(scenario_->steps[step]);
  return round_to(scenario_->element_type,
                  element(append.tensors.q, {entry, query, query_head, lane}));
}

StepShapes literal_shapes(const Scenario& s, const Timeline& timeline, std::size_t step) {
  StepShapes shapes;
  const auto kv = [&](std::int64_t tokens) {
    if (tokens == 0) return;
    shapes.k = {s.batch, tokens, s.kv_heads, s.head_size};
    shapes.v = {s.batch, tokens, s.kv_heads, s.value_head_size};
  };
  if (const auto* append = std::get_if<Append>(&s.steps[step])) {
    kv(most(append->tokens));
    if (most(append->queries) == 0) return shapes;
    shapes.q = {s.batch, most(append->queries), s.query_heads, s.head_size};
    if (s.mask.kind != MaskKind::none) shapes.mask = mask_shape(s, timeline, step);
  } else if (const auto* past = std::get_if<Past>(&s.steps[step])) {
    kv(most(past->tokens));
  }
  return shapes;
}

void fit_literals(Scenario& scenario) {
  FillKind& fill = scenario.fill.kind;
  // Every repair comes by here, and few scenarios are literal.
  std::optional<Timeline> timeline;
  if (fill == FillKind::literal) timeline.emplace(scenario);
  if (timeline && !can_be_spelled_out(scenario, *timeline)) fill = FillKind::random;
  const bool literal = fill == FillKind::literal;
  std::int64_t rollbacks = 0;
  for (std::size_t step = 0; step < scenario.steps.size(); ++step) {
    auto* append = std::get_if<Append>(&scenario.steps[step]);
    auto* past = std::get_if<Past>(&scenario.steps[step]);
    if (append == nullptr && past == nullptr) {
      ++rollbacks;
      continue;
    }
    if (append != nullptr && literal) append->generation = rollbacks;
    StepTensors& tensors = append != nullptr ? append->tensors : past->tensors;
    const StepShapes shapes = literal ? literal_shapes(scenario, *timeline, step) : StepShapes{};
    fit(tensors.q, shapes.q, 0);
    fit(tensors.k, shapes.k, 0);
    fit(tensors.v, shapes.v, 0);
    fit(tensors.mask, shapes.mask, scenario.mask.kind == MaskKind::boolean ? 1 : 0);
  }
}

}  // namespace kvcheck::model
