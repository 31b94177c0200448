// Passes over cache, mask, flags and values: each setting towards its simplest.
#include <algorithm>
#include <array>

#include "shrinkers/edits.h"
#include "shrinkers/passes.h"

namespace kvcheck::shrinkers {
namespace {

using model::FillKind;
using model::LayoutKind;
using model::MaskKind;
using model::Scenario;

template <class Edit>
bool propose_edit(Attempt& attempt, Edit edit) {
  Scenario s = attempt.current();
  edit(s);
  return attempt.propose(s);
}

void reset_values(Scenario& s) {
  s.fill = {FillKind::position_code, 0, 0};
  s.poison = model::Poison::zero;
  s.element_type = model::ElementType::f32;
  s.opset = 23;  // normalise() raises it again where nonpad lengths need it.
  s = default_generations(std::move(s));
}

/// Tries the values of an enumeration that are simpler than the present one, simplest first.
template <class Enum, std::size_t N, class Place>
void try_simpler(Attempt& attempt, const std::array<Enum, N>& order, Place place) {
  for (const Enum simpler : order) {
    Scenario s = attempt.current();
    if (place(s) == simpler) return;
    place(s) = simpler;
    if (attempt.propose(s)) return;
  }
}

void shrink_fill(Attempt& attempt) {
  constexpr std::array kKinds{
      FillKind::position_code, FillKind::position_block, FillKind::position_digits,
      FillKind::needles,       FillKind::random,         FillKind::integers,
      FillKind::ties,          FillKind::selection,      FillKind::cancelling};
  for (const FillKind kind : kKinds) {
    if (attempt.current().fill.kind == kind) break;
    if (propose_edit(attempt, [kind](Scenario& s) { s.fill = {kind, s.fill.seed, 0}; })) break;
  }
  lower(attempt,
        {[](const Scenario& s) { return s.fill.index; },
         [](Scenario& s, std::int64_t index) { s.fill.index = index; }},
        0);
  propose_edit(attempt, [](Scenario& s) { s.fill.first_entry = 0; });
  propose_edit(attempt, [](Scenario& s) { s.fill.seed = 0; });
}

}  // namespace

void shrink_window(Attempt& attempt) {
  if (!attempt.current().cache.window_size) return;
  propose_edit(attempt, [](Scenario& s) { s.cache = {}; }) ||
      propose_edit(attempt,
                   [](Scenario& s) {
                     s.cache = {LayoutKind::full, s.cache.capacity, {}, 0, 0};
                   }) ||
      propose_edit(attempt, [](Scenario& s) { s.cache.layout = LayoutKind::full; });
  if (!attempt.current().cache.window_size) return;
  if (attempt.current().cache.layout == LayoutKind::block) {
    propose_edit(attempt, [](Scenario& s) { s.cache.window_size = s.cache.capacity; });
  }
  lower(attempt,
        {[](const Scenario& s) { return s.cache.window_size.value_or(1); },
         [](Scenario& s, std::int64_t window) { s.cache.window_size = window; }},
        1);
}

void shrink_capacity(Attempt& attempt) {
  if (attempt.current().cache.capacity == 0) return;
  const bool block = attempt.current().cache.layout == LayoutKind::block;
  if (!block && propose_edit(attempt, [](Scenario& s) { s.cache.capacity = 0; })) return;
  const Scenario& current = attempt.current();
  const std::int64_t floor = block ? *current.cache.window_size : longest_length(current);
  lower(attempt,
        {[](const Scenario& s) { return s.cache.capacity; },
         [](Scenario& s, std::int64_t capacity) { s.cache.capacity = capacity; }},
        std::max<std::int64_t>(1, floor));
}

void shrink_mask(Attempt& attempt) {
  try_simpler(attempt, std::array{MaskKind::none, MaskKind::boolean, MaskKind::additive},
              [](Scenario& s) -> MaskKind& { return s.mask.kind; });
  if (attempt.current().mask.kind == MaskKind::none) return;
  try_simpler(attempt, std::array{2, 3, 4}, [](Scenario& s) -> int& { return s.mask.rank; });
  propose_edit(attempt, [](Scenario& s) { s.mask.empty_rows = false; });
  lower(attempt,
        {[](const Scenario& s) -> std::int64_t { return s.mask.hidden_percent; },
         [](Scenario& s, std::int64_t share) { s.mask.hidden_percent = static_cast<int>(share); }},
        0);
  propose_edit(attempt, [](Scenario& s) { s.mask.seed = 0; });
}

void shrink_flags(Attempt& attempt) {
  propose_edit(attempt, [](Scenario& s) { s.nonpad_kv_seqlen = false; });
  // Without causality attention is simpler; of gqa that is a feature.
  propose_edit(attempt, [](Scenario& s) { s.causal = s.op == model::Operator::gqa; });
  propose_edit(attempt, [](Scenario& s) { s.scale.reset(); });
  propose_edit(attempt, [](Scenario& s) { s.share_buffers = true; });
}

void shrink_values(Attempt& attempt) {
  propose_edit(attempt, reset_values);
  shrink_fill(attempt);
  using model::ElementType;
  using model::Poison;
  try_simpler(attempt, std::array{Poison::zero, Poison::finite, Poison::huge, Poison::nan},
              [](Scenario& s) -> Poison& { return s.poison; });
  try_simpler(attempt,
              std::array{ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::f64},
              [](Scenario& s) -> ElementType& { return s.element_type; });
  propose_edit(attempt, [](Scenario& s) { s.opset = 23; });
  propose_edit(attempt, [](Scenario& s) { s = default_generations(std::move(s)); });
}

}  // namespace kvcheck::shrinkers
