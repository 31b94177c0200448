// Wrong readings of attn_mask and attention_bias.
#include "model/readings/seen.h"
#include "model/wrong_models.h"

namespace kvcheck::model {
namespace {

using namespace readings;

/// Cell for another place in the mask, bounded by what the entry has.
MaskCell cell(const QueryPlace& place, std::int64_t entry, std::int64_t head, std::int64_t query,
              std::int64_t key) {
  if (key < 0) return {};
  return mask_cell(place.scenario, place.timeline, place.step, entry, head, query, {key});
}

/// Visible set under cells chosen by `at(place, key)`.
template <class At>
std::vector<Position> seen_by(const QueryPlace& place, At at) {
  const Rule rule = right_rule(place);
  std::vector<Position> positions;
  for (std::int64_t j = rule.first; j <= rule.last; ++j) {
    if (!at(j).hides) positions.push_back({j});
  }
  return positions;
}

/// A reading whose mask takes every cell from another place.
template <MaskCell (*at)(const QueryPlace&, std::int64_t)>
Reading reads_cells() {
  Reading reading;
  reading.visible = [](const QueryPlace& place) {
    return seen_by(place, [&](std::int64_t j) { return at(place, j); });
  };
  reading.bias = [](const QueryPlace& place, Position key) { return at(place, key.value).bias; };
  return reading;
}

MaskCell of_first_entry(const QueryPlace& p, std::int64_t j) {
  return cell(p, 0, p.head, p.query, j);
}
MaskCell of_first_head(const QueryPlace& p, std::int64_t j) {
  return cell(p, p.entry, 0, p.query, j);
}
MaskCell of_first_query(const QueryPlace& p, std::int64_t j) {
  return cell(p, p.entry, p.head, 0, j);
}
MaskCell head_by_entry(const QueryPlace& p, std::int64_t j) {
  return cell(p, p.entry, std::min(p.entry, p.scenario.query_heads - 1), p.query, j);
}
MaskCell column_by_row(const QueryPlace& p, std::int64_t j) {
  return cell(p, p.entry, p.head, p.query, j - p.around().first_position.value);
}
MaskCell column_by_step(const QueryPlace& p, std::int64_t j) {
  const std::int64_t column = j - p.around().past;
  return column < 0 ? MaskCell{} : cell(p, p.entry, p.head, p.query, column);
}
MaskCell one_column_late(const QueryPlace& p, std::int64_t j) {
  return j == 0 ? MaskCell{} : cell(p, p.entry, p.head, p.query, j - 1);
}
MaskCell no_mask(const QueryPlace&, std::int64_t) { return {}; }
MaskCell only_hides(const QueryPlace& p, std::int64_t j) {
  return {cell(p, p.entry, p.head, p.query, j).hides, 0};
}
MaskCell only_adds(const QueryPlace& p, std::int64_t j) {
  return {false, cell(p, p.entry, p.head, p.query, j).bias};
}
/// A penalty that outweighs every logit, and that a row of hidden keys alone does not notice.
MaskCell by_finite(const QueryPlace& p, std::int64_t j) {
  const MaskCell right = cell(p, p.entry, p.head, p.query, j);
  return right.hides ? MaskCell{false, -1e4} : right;
}
MaskCell inverted(const QueryPlace& p, std::int64_t j) {
  return {!cell(p, p.entry, p.head, p.query, j).hides, 0};
}

/// The mask in place of causality and windows.
std::vector<Position> alone(const QueryPlace& place) {
  if (place.scenario.mask.kind == MaskKind::none) return seen(place, right_rule(place));
  return seen(place, {0, place.around().length - 1});
}

/// A row that sees nothing becomes the mean of all values.
std::vector<Position> empty_as_mean(const QueryPlace& place) {
  auto positions = seen(place, right_rule(place));
  if (!positions.empty()) return positions;
  for (std::int64_t j = 0; j < place.around().length; ++j) positions.push_back({j});
  return positions;
}

void equal_weights_where_empty(const QueryPlace& place, AttentionRowInput& row) {
  if (!seen(place, right_rule(place)).empty()) return;
  std::fill(row.query.begin(), row.query.end(), 0.0);
  row.query_low.clear();
  std::fill(row.biases.begin(), row.biases.end(), 0.0);
}

void scaled_bias(const QueryPlace&, AttentionRowInput& row) {
  const double scale = logit_scale<double>(row);
  for (double& bias : row.biases) bias *= scale;
}

void doubled_bias(const QueryPlace&, AttentionRowInput& row) {
  for (double& bias : row.biases) bias *= 2;
}

Reading empty_row_reading() {
  Reading reading = sees(empty_as_mean);
  reading.distort = equal_weights_where_empty;
  return reading;
}

bool masked(const Scenario& s) { return s.mask.kind != MaskKind::none; }
bool additive(const Scenario& s) { return s.mask.kind == MaskKind::additive; }
bool boolean(const Scenario& s) { return s.mask.kind == MaskKind::boolean; }
bool per_head(const Scenario& s) { return masked(s) && s.mask.rank >= 3 && !s.mask.one_head; }
bool per_entry(const Scenario& s) { return masked(s) && s.mask.rank == 4 && !s.mask.one_entry; }
bool evicting(const Scenario& s) { return masked(s) && s.cache.layout == LayoutKind::block; }
bool rank_three(const Scenario& s) { return per_head(s) && s.mask.rank == 3 && s.batch > 1; }
bool empty_rows(const Scenario& s) { return masked(s) || s.nonpad_kv_seqlen; }
bool limited(const Scenario& s) {
  return masked(s) && (s.causal || windowed(s) || s.right_window_size);
}

}  // namespace

std::vector<WrongModel> wrong_masks() {
  return {
      {"mask.of_first_entry", "reads the mask of entry 0 for every entry", per_entry,
       reads_cells<of_first_entry>()},
      {"mask.of_first_head", "reads the mask of head 0 for every head", per_head,
       reads_cells<of_first_head>()},
      {"mask.of_first_query", "reads the first row of the mask for every query", masked,
       reads_cells<of_first_query>()},
      {"mask.head_dimension_as_batch", "takes the first dimension of a rank-3 mask for the batch",
       rank_three, reads_cells<head_by_entry>()},
      {"mask.column_by_row", "reads the mask's columns by row of the buffer, not by position",
       evicting, reads_cells<column_by_row>()},
      {"mask.column_by_step", "aligns the mask's columns with the step, not with the sequence",
       masked, reads_cells<column_by_step>()},
      {"mask.one_column_late", "reads the mask one column to the left", masked,
       reads_cells<one_column_late>()},
      {"mask.ignored", "leaves the mask out", masked, reads_cells<no_mask>()},
      {"mask.values_ignored", "takes an additive mask for a boolean one", additive,
       reads_cells<only_hides>()},
      {"mask.hides_nothing", "adds the mask's finite values and hides nothing", additive,
       reads_cells<only_adds>()},
      {"mask.inverted", "hides what a boolean mask keeps", boolean, reads_cells<inverted>()},
      {"mask.alone", "lets the mask replace causality and windows", limited, sees(alone)},
      {"mask.empty_row_as_mean", "answers a row that sees nothing with the mean of the values",
       empty_rows, empty_row_reading()},
      {"bias.scaled", "multiplies the bias by the logit scale", additive, distorts(scaled_bias)},
      {"bias.twice", "adds the bias twice", additive, distorts(doubled_bias)},
      {"mask.hides_by_finite", "adds -10000 for a key that the mask hides", masked,
       reads_cells<by_finite>()},
  };
}

}  // namespace kvcheck::model
