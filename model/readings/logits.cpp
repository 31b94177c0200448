// Wrong scale, softcap, sinks and sums.
#include <cmath>

#include "model/parameters.h"
#include "model/readings/seen.h"
#include "model/wrong_models.h"

namespace kvcheck::model {
namespace {

using namespace readings;

constexpr std::size_t kTile = 8;

void scale_twice(const QueryPlace&, AttentionRowInput& row) {
  const double scale = logit_scale<double>(row);
  row.scale = scale * scale;
}
void scale_missing(const QueryPlace&, AttentionRowInput& row) { row.scale = 1.0; }
void scale_of_values(const QueryPlace& place, AttentionRowInput& row) {
  row.scale = 1.0 / std::sqrt(static_cast<double>(place.scenario.value_head_size));
}
void scale_default(const QueryPlace&, AttentionRowInput& row) { row.scale.reset(); }
void scale_few_percent(const QueryPlace&, AttentionRowInput& row) {
  row.scale = logit_scale<double>(row) * 1.06;
}

void no_softcap(const QueryPlace&, AttentionRowInput& row) { row.softcap = 0; }
void softcap_after_bias(const QueryPlace&, AttentionRowInput& row) { row.cap_after_bias = true; }

void no_sink(const QueryPlace&, AttentionRowInput& row) { row.sink.reset(); }
void sink_of_zero(const QueryPlace&, AttentionRowInput& row) { row.sink = 0.0; }
void sink_of_first_head(const QueryPlace& place, AttentionRowInput& row) {
  row.sink = sink_logit(place.scenario, 0);
}
void sink_of_kv_head(const QueryPlace& place, AttentionRowInput& row) {
  const Scenario& s = place.scenario;
  row.sink = sink_logit(s, place.head / (s.query_heads / s.kv_heads));
}
void sink_scaled(const QueryPlace&, AttentionRowInput& row) {
  if (row.sink) row.sink = *row.sink * logit_scale<double>(row);
}

/// A key whose logit and value are 0, for each lane that fills up the last tile.
void padding_in_sum(const QueryPlace&, AttentionRowInput& row) {
  if (row.keys.empty()) return;
  static const std::vector<double> kZeros(static_cast<std::size_t>(kMaxShape), 0.0);
  while (row.keys.size() % kTile != 0) {
    row.keys.push_back(kZeros.data());
    row.values.push_back(kZeros.data());
    row.biases.push_back(0.0);
    if (!row.key_doubts.empty()) row.key_doubts.push_back(nullptr);
    if (!row.value_doubts.empty()) row.value_doubts.push_back(nullptr);
  }
}

void keep(AttentionRowInput& row, std::size_t count) {
  row.keys.resize(count);
  row.values.resize(count);
  row.biases.resize(count);
  if (!row.key_doubts.empty()) row.key_doubts.resize(count);
  if (!row.value_doubts.empty()) row.value_doubts.resize(count);
}

void last_tile_lost(const QueryPlace&, AttentionRowInput& row) {
  const std::size_t whole = row.keys.size() / kTile * kTile;
  if (whole > 0) keep(row, whole);
}

/// Two halves, each shifted by its own maximum, added up as if the maxima were the same.
void missing_rescale(const QueryPlace&, AttentionRowInput& row) {
  if (row.keys.size() < 2) return;
  AttentionRow<double> all;
  multiply(row, all);
  weigh(row, all);
  const std::size_t half = row.keys.size() / 2;
  const auto top = [&](std::size_t begin, std::size_t end) {
    return *std::max_element(all.logits.begin() + static_cast<std::ptrdiff_t>(begin),
                             all.logits.begin() + static_cast<std::ptrdiff_t>(end));
  };
  const double first = top(0, half);
  const double second = top(half, row.keys.size());
  for (std::size_t j = half; j < row.keys.size(); ++j) row.biases[j] += first - second;
}

void output_zero(const QueryPlace&, AttentionRowInput& row) {
  static const std::vector<double> kZeros(static_cast<std::size_t>(kMaxShape), 0.0);
  std::fill(row.values.begin(), row.values.end(), kZeros.data());
}

bool has_scale(const Scenario& s) { return s.scale.has_value(); }
bool other_value_size(const Scenario& s) { return s.head_size != s.value_head_size; }
bool capped(const Scenario& s) { return s.softcap != 0; }
bool capped_and_biased(const Scenario& s) {
  return s.softcap != 0 && s.mask.kind == MaskKind::additive;
}
bool sink(const Scenario& s) { return s.head_sink || s.smooth_softmax; }
bool head_sink(const Scenario& s) { return s.head_sink; }
bool grouped_sinks(const Scenario& s) { return s.head_sink && s.query_heads > s.kv_heads; }
bool several_sinks(const Scenario& s) { return s.head_sink && s.query_heads > 1; }

}  // namespace

std::vector<WrongModel> wrong_logits() {
  return {
      {"scale.twice", "applies the scale twice", always, distorts(scale_twice)},
      {"scale.missing", "leaves the scale out", always, distorts(scale_missing)},
      {"scale.six_percent", "has a scale that is 6 % too large", always,
       distorts(scale_few_percent)},
      {"scale.of_values", "takes the scale from the size of the values", other_value_size,
       distorts(scale_of_values)},
      {"scale.default", "takes the default scale in place of the given one", has_scale,
       distorts(scale_default)},
      {"softcap.ignored", "leaves softcap out", capped, distorts(no_softcap)},
      {"softcap.after_bias", "caps the logits after the bias", capped_and_biased,
       distorts(softcap_after_bias)},
      {"sink.ignored", "leaves the sink out of the sum", sink, distorts(no_sink)},
      {"sink.of_zero", "takes a head sink for smooth softmax", head_sink, distorts(sink_of_zero)},
      {"sink.of_first_head", "takes the sink of head 0 for every head", several_sinks,
       distorts(sink_of_first_head)},
      {"sink.scaled", "multiplies the sink by the logit scale", head_sink, distorts(sink_scaled)},
      {"sum.padding", "counts the padding of the last tile of 8 keys in the sum", always,
       distorts(padding_in_sum)},
      {"sum.last_tile_lost", "drops keys that do not fill a tile of 8", always,
       distorts(last_tile_lost)},
      {"sum.missing_rescale", "merges two halves without rescaling them to one maximum", always,
       distorts(missing_rescale)},
      {"output.zero", "answers zeros", always, distorts(output_zero)},
      {"sink.of_kv_head", "takes the sink of the KV head for that of the query head", grouped_sinks,
       distorts(sink_of_kv_head)},
  };
}

}  // namespace kvcheck::model
