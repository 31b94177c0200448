// The attn_mask as a hash of absolute positions.
#include "model/mask.h"

#include <algorithm>
#include <cmath>
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

}  // namespace

bool mask_hides(const Scenario& scenario, std::int64_t entry, std::int64_t head, Position query,
                Position key) {
  const MaskSpec& mask = scenario.mask;
  if (mask.kind == MaskKind::none) return false;
  if (scenario.op == Operator::gqa && query == key) return false;
  const std::int64_t row = row_of(mask, query);
  const std::uint64_t pair = counter_hash(plane(scenario, kHidePair, entry, head), row, key.value);
  if (static_cast<int>(pair % 100) < mask.hidden_percent) return true;
  if (!mask.empty_rows) return false;
  return counter_hash(plane(scenario, kHideRow, entry, head), row) % kEmptyRowEvery == 0;
}

double mask_bias(const Scenario& scenario, std::int64_t entry, std::int64_t head, Position query,
                 Position key) {
  const MaskSpec& mask = scenario.mask;
  if (mask.kind != MaskKind::additive || is_position_fill(scenario.fill.kind)) return 0;
  const std::uint64_t hash =
      counter_hash(plane(scenario, kBias, entry, head), row_of(mask, query), key.value);
  // Multiples of 1/32 up to 2 take 7 significant bits, which every element type has.
  return static_cast<double>(static_cast<std::int64_t>(hash % 129) - 64) / 32.0;
}

namespace {

/// Columns of the mask of a step.
std::int64_t mask_columns(const Scenario& scenario, const Timeline& timeline, std::size_t step) {
  std::int64_t columns = scenario.nonpad_kv_seqlen ? timeline.buffer_rows() : 0;
  for (const EntryStep& entry : timeline.steps()[step].entries) {
    columns = std::max(columns, entry.length);
  }
  return std::max<std::int64_t>(0, columns - scenario.mask.missing_columns);
}

}  // namespace

MaskCell mask_cell(const Scenario& scenario, const Timeline& timeline, std::size_t step,
                   std::int64_t entry, std::int64_t head, std::int64_t query, Position key) {
  const MaskSpec& mask = scenario.mask;
  if (mask.kind == MaskKind::none) return {};
  if (mask.missing_columns > 0 || scenario.fill.kind == FillKind::literal) {
    if (key.value >= mask_columns(scenario, timeline, step)) return {true, 0};
  }
  if (scenario.fill.kind == FillKind::literal) {
    const auto& append = std::get<Append>(scenario.steps[step]);
    const double element = literal_element(append.tensors.mask, entry, head, query, key.value);
    if (mask.kind == MaskKind::boolean) return {element == 0, 0};
    const bool hides = std::isinf(element) && element < 0;
    return {hides, hides ? 0 : round_to(scenario.element_type, element)};
  }
  const auto& around = timeline.steps()[step].entries[static_cast<std::size_t>(entry)];
  const Position position{around.origin.value + query};
  if (mask_hides(scenario, entry, head, position, key)) return {true, 0};
  return {false, mask_bias(scenario, entry, head, position, key)};
}

std::vector<std::int64_t> mask_shape(const Scenario& scenario, const Timeline& timeline,
                                     std::size_t step) {
  const MaskSpec& mask = scenario.mask;
  std::int64_t queries = 0;
  for (const EntryStep& entry : timeline.steps()[step].entries) {
    queries = std::max(queries, entry.queries);
  }
  const std::vector<std::int64_t> whole{
      mask.one_entry ? 1 : scenario.batch, mask.one_head ? 1 : scenario.query_heads,
      mask.one_query ? 1 : queries, mask_columns(scenario, timeline, step)};
  return {whole.end() - mask.rank, whole.end()};
}

}  // namespace kvcheck::model
