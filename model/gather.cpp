// Gathering of one row.
#include "model/gather.h"

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
                          (scenario.mask.kind == MaskKind::none || scenario.mask.rank <= 2 ||
                           scenario.mask.one_head)) {}

bool Gatherer::same_tokens(const QueryPlace& place) const {
  return heads_see_the_same_ && held_ && held_->step == place.step &&
         held_->entry == place.entry && held_->query == place.query;
}

const AttentionRowInput& Gatherer::row(std::size_t step, std::int64_t entry, std::int64_t head,
                                       std::int64_t query) {
  const QueryPlace place{scenario_, timeline_, step, entry, head, query};
  if (!same_tokens(place)) {
    positions_ = reading_.visible != nullptr
                     ? reading_.visible(place)
                     : visible_positions(scenario_, timeline_, step, entry, head, query);
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
  tokens_.clear();
  if (reading_.held != nullptr) {
    for (const Position position : positions_) {
      tokens_.push_back(&operands_.stored(reading_.held(place, position)));
    }
    return;
  }
  const auto written = timeline_.written(place.step, place.entry, positions_);
  for (std::size_t j = 0; j < positions_.size(); ++j) {
    tokens_.push_back(&operands_.stored(
        {place.entry, {positions_[j], written[j].generation}, written[j].step}));
  }
}

void Gatherer::fill_row(const QueryPlace& place) {
  const std::int64_t kv_head = reading_.kv_head != nullptr
                                   ? reading_.kv_head(place)
                                   : place.head / (scenario_.query_heads / scenario_.kv_heads);
  const auto key_at = static_cast<std::size_t>(kv_head * scenario_.head_size);
  const auto value_at = static_cast<std::size_t>(kv_head * scenario_.value_head_size);
  operands_.query(place.step, place.entry, place.head, place.query, query_);
  input_.query = query_.high;
  input_.query_low = query_.low;
  input_.query_doubts = query_.doubts;
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
  const bool key_doubts = count > 0 && !tokens_.front()->key_doubts.empty();
  const bool value_doubts = count > 0 && !tokens_.front()->value_doubts.empty();
  input_.keys.resize(count);
  input_.values.resize(count);
  input_.key_doubts.clear();
  input_.value_doubts.clear();
  bool any_key_doubt = key_doubts;
  for (std::size_t j = 0; j < count; ++j) {
    const TokenRows& token = *tokens_[j];
    input_.keys[j] = token.keys.data() + key_at;
    input_.values[j] = token.values.data() + value_at;
    any_key_doubt = any_key_doubt || !token.key_doubts.empty();
  }
  // Tokens of a past are exact where those of later steps are not.
  if (any_key_doubt) {
    for (const TokenRows* token : tokens_) {
      input_.key_doubts.push_back(token->key_doubts.empty() ? nullptr
                                                            : token->key_doubts.data() + key_at);
    }
  }
  if (value_doubts) {
    for (const TokenRows* token : tokens_) {
      input_.value_doubts.push_back(
          token->value_doubts.empty() ? nullptr : token->value_doubts.data() + value_at);
    }
  }
}

void Gatherer::fill_biases(const QueryPlace& place) {
  input_.biases.assign(positions_.size(), 0.0);
  if (reading_.bias == nullptr && scenario_.mask.kind != MaskKind::additive) return;
  for (std::size_t j = 0; j < positions_.size(); ++j) {
    input_.biases[j] = reading_.bias != nullptr
                           ? reading_.bias(place, positions_[j])
                           : mask_cell(scenario_, timeline_, place.step, place.entry, place.head,
                                       place.query, positions_[j])
                                 .bias;
  }
}

}  // namespace kvcheck::model
