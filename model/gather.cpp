// Gathering of one row.
#include "model/gather.h"

#include <algorithm>

#include "model/mask.h"
#include "model/parameters.h"
#include "model/visibility.h"

namespace kvcheck::model {

Gatherer::Gatherer(const Scenario& scenario, const Timeline& timeline, const Fill& fill,
                   double roundoff, const Reading& reading)
    : scenario_(scenario),
      timeline_(timeline),
      reading_(reading),
      operands_(scenario, timeline, fill, roundoff, reading),
      heads_see_the_same_(reading.visible == nullptr && reading.held == nullptr &&
                          heads_see_alike(scenario)) {}

bool Gatherer::same_tokens(const QueryPlace& place) const {
  return heads_see_the_same_ && held_ && held_->step == place.step && held_->entry == place.entry &&
         held_->query == place.query;
}

const AttentionRowInput& Gatherer::row(std::size_t step, std::int64_t entry, std::int64_t head,
                                       std::int64_t query) {
  const QueryPlace place{scenario_, timeline_, step, entry, head, query};
  if (!same_tokens(place)) {
    if (reading_.visible != nullptr) {
      positions_ = reading_.visible(place);
    } else {
      visible_positions(scenario_, timeline_, step, entry, head, query, positions_);
    }
    hold(place);
    held_ = {step, entry, query};
  }
  fill_row(place);
  fill_biases(place);
  if (reading_.distort != nullptr) reading_.distort(place, input_);
  return input_;
}

const AttentionRowInput& Gatherer::row_over(const QueryPlace& place,
                                            std::span<const Position> positions) {
  positions_.assign(positions.begin(), positions.end());
  held_.reset();
  hold(place);
  fill_row(place);
  input_.biases.assign(positions_.size(), 0.0);
  return input_;
}

void Gatherer::hold(const QueryPlace& place) {
  find_tokens(place);
  keys_are_exact_ = values_are_exact_ = true;
  for (const TokenRows* token : tokens_) {
    keys_are_exact_ = keys_are_exact_ && token->key_doubts.empty();
    values_are_exact_ = values_are_exact_ && token->value_doubts.empty();
  }
}

void Gatherer::find_tokens(const QueryPlace& place) {
  tokens_.clear();
  if (reading_.held != nullptr) {
    for (const Position position : positions_) {
      tokens_.push_back(&operands_.stored(reading_.held(place, position)));
    }
    return;
  }
  timeline_.written(place.step, place.entry, positions_, written_);
  for (std::size_t j = 0; j < positions_.size(); ++j) {
    const Written& brought = written_[j];
    tokens_.push_back(
        &operands_.stored({place.entry, {positions_[j], brought.generation}, brought.step}));
  }
}

void Gatherer::fill_row(const QueryPlace& place) {
  const std::int64_t kv_head = reading_.kv_head != nullptr
                                   ? reading_.kv_head(place)
                                   : place.head / (scenario_.query_heads / scenario_.kv_heads);
  const auto key_at = static_cast<std::size_t>(kv_head * scenario_.head_size);
  const auto value_at = static_cast<std::size_t>(kv_head * scenario_.value_head_size);
  operands_.query(place.step, place.entry, place.head, place.query, query_);
  input_.query.swap(query_.high);
  input_.query_low.swap(query_.low);
  input_.query_doubts.swap(query_.doubts);
  input_.scale = scenario_.scale;
  input_.softcap = scenario_.softcap;
  input_.cap_after_bias = false;
  input_.sink.reset();
  if (scenario_.head_sink) {
    input_.sink = sink_logit(scenario_, place.head);
  } else if (scenario_.smooth_softmax) {
    input_.sink = 0.0;
  }
  const std::size_t count = tokens_.size();
  input_.keys.resize(count);
  input_.values.resize(count);
  for (std::size_t j = 0; j < count; ++j) {
    input_.keys[j] = tokens_[j]->keys.data() + key_at;
    input_.values[j] = tokens_[j]->values.data() + value_at;
  }
  fill_doubts(keys_are_exact_, &TokenRows::key_doubts, key_at, input_.key_doubts);
  fill_doubts(values_are_exact_, &TokenRows::value_doubts, value_at, input_.value_doubts);
}

/// Tokens of a past may be exact where those of later steps are not.
void Gatherer::fill_doubts(bool exact, std::pmr::vector<double> TokenRows::*doubts, std::size_t at,
                           std::vector<const double*>& out) const {
  out.clear();
  if (exact) return;
  for (const TokenRows* token : tokens_) {
    out.push_back((token->*doubts).empty() ? nullptr : (token->*doubts).data() + at);
  }
}

void Gatherer::fill_biases(const QueryPlace& place) {
  input_.biases.assign(positions_.size(), 0.0);
  if (reading_.bias != nullptr) {
    for (std::size_t j = 0; j < positions_.size(); ++j) {
      input_.biases[j] = reading_.bias(place, positions_[j]);
    }
  } else if (scenario_.mask.kind == MaskKind::additive) {
    const MaskRow mask(scenario_, timeline_, place.step, place.entry, place.head, place.query);
    for (std::size_t j = 0; j < positions_.size(); ++j) {
      input_.biases[j] = mask.at(positions_[j]).bias;
    }
  }
}

}  // namespace kvcheck::model
