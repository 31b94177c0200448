// The attn_mask as a hash of absolute positions.
#include "model/mask.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <variant>

#include "model/counter_hash.h"

namespace kvcheck::model {
namespace {

enum Purpose : std::uint64_t { kHidePair = 1, kHideRow = 2, kBias = 3 };

/// One query row in this many is hidden whole.
constexpr std::uint64_t kEmptyRowEvery = 4;

/// Seed of the mask that `head` of `entry` sees: a mask of low rank is the same for all of them.
std::uint64_t plane(const Scenario& scenario, Purpose purpose, std::int64_t entry,
                    std::int64_t head) {
  const MaskSpec& mask = scenario.mask;
  return counter_hash(mask.seed, purpose,
                      mask.rank >= 4 && !mask.one_entry ? scenario.fill.first_entry + entry : 0,
                      mask.rank >= 3 && !mask.one_head ? head : 0);
}

/// What stands for the query where all queries share one row of the mask.
std::int64_t row_of(const MaskSpec& mask, Position query) {
  return mask.rank == 1 || mask.one_query ? 0 : query.value;
}

/// Element of a literal mask, broadcast from the right.
double literal_element(const LiteralTensor& tensor, std::int64_t entry, std::int64_t head,
                       std::int64_t query, std::int64_t key) {
  const std::int64_t coordinates[] = {entry, head, query, key};
  const std::size_t rank = tensor.shape.size();
  std::int64_t flat = 0;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t length = tensor.shape[d];
    flat = flat * length + (length == 1 && d + 1 < rank ? 0 : coordinates[4 - rank + d]);
  }
  return tensor.values[static_cast<std::size_t>(flat)];
}

/// What the hashes of one row's cells begin with.
std::uint64_t row_hash(const Scenario& scenario, Purpose purpose, std::int64_t entry,
                       std::int64_t head, Position query) {
  return counter_hash(plane(scenario, purpose, entry, head), row_of(scenario.mask, query));
}

bool hides_row(const Scenario& scenario, std::int64_t entry, std::int64_t head, Position query) {
  return scenario.mask.empty_rows &&
         row_hash(scenario, kHideRow, entry, head, query) % kEmptyRowEvery == 0;
}

bool has_biases(const Scenario& scenario) {
  return scenario.mask.kind == MaskKind::additive && !is_position_fill(scenario.fill.kind);
}

/// Columns of the mask of a step.
std::int64_t mask_columns(const Scenario& scenario, const Timeline& timeline, std::size_t step) {
  std::int64_t columns = scenario.nonpad_kv_seqlen ? timeline.buffer_rows() : 0;
  for (const EntryStep& entry : timeline.steps()[step].entries) {
    columns = std::max(columns, entry.length);
  }
  return std::max<std::int64_t>(0, columns - scenario.mask.missing_columns);
}

}  // namespace

bool mask_hides(const Scenario& scenario, std::int64_t entry, std::int64_t head, Position query,
                Position key) {
  if (scenario.mask.kind == MaskKind::none) return false;
  if (scenario.op == Operator::gqa && query == key) return false;
  return MaskRow::hides_pair(scenario.mask.hidden_percent,
                             row_hash(scenario, kHidePair, entry, head, query), key) ||
         hides_row(scenario, entry, head, query);
}

double mask_bias(const Scenario& scenario, std::int64_t entry, std::int64_t head, Position query,
                 Position key) {
  return has_biases(scenario) ? MaskRow::bias_of(row_hash(scenario, kBias, entry, head, query), key)
                              : 0;
}

MaskRow::MaskRow(const Scenario& scenario, const Timeline& timeline, std::size_t step,
                 std::int64_t entry, std::int64_t head, std::int64_t query)
    : scenario_(scenario),
      step_(step),
      entry_(entry),
      head_(head),
      query_(query),
      columns_(std::numeric_limits<std::int64_t>::max()) {
  const MaskSpec& mask = scenario.mask;
  if (mask.kind == MaskKind::none) return;
  literal_ = scenario.fill.kind == FillKind::literal;
  if (mask.missing_columns > 0 || literal_) columns_ = mask_columns(scenario, timeline, step);
  if (literal_) return;
  hidden_percent_ = mask.hidden_percent;
  const auto& around = timeline.steps()[step].entries[static_cast<std::size_t>(entry)];
  const Position position{around.origin.value + query};
  if (scenario.op == Operator::gqa) own_ = position.value;
  hides_all_ = hides_row(scenario, entry, head, position);
  pairs_ = row_hash(scenario, kHidePair, entry, head, position);
  biased_ = has_biases(scenario);
  if (biased_) biases_ = row_hash(scenario, kBias, entry, head, position);
}

MaskCell MaskRow::literal_at(std::int64_t key) const {
  if (key >= columns_) return {true, 0};
  const auto& append = std::get<Append>(scenario_.steps[step_]);
  const double element = literal_element(append.tensors.mask, entry_, head_, query_, key);
  if (scenario_.mask.kind == MaskKind::boolean) return {element == 0, 0};
  const bool hides = std::isinf(element) && element < 0;
  return {hides, hides ? 0 : round_to(scenario_.element_type, element)};
}

MaskCell mask_cell(const Scenario& scenario, const Timeline& timeline, std::size_t step,
                   std::int64_t entry, std::int64_t head, std::int64_t query, Position key) {
  return MaskRow(scenario, timeline, step, entry, head, query).at(key);
}

std::vector<std::int64_t> mask_shape(const Scenario& scenario, const Timeline& timeline,
                                     std::size_t step) {
  const MaskSpec& mask = scenario.mask;
  std::int64_t queries = 0;
  for (const EntryStep& entry : timeline.steps()[step].entries) {
    queries = std::max(queries, entry.queries);
  }
  const std::array<std::int64_t, 4> whole{
      mask.one_entry ? 1 : scenario.batch, mask.one_head ? 1 : scenario.query_heads,
      mask.one_query ? 1 : queries, mask_columns(scenario, timeline, step)};
  return {whole.end() - mask.rank, whole.end()};
}

}  // namespace kvcheck::model
