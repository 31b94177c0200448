// causal-past: the comparison of onnxruntime pull request 34226, 50,688 configurations.
//
// The thread names the axes and two counts. Past, new keys, queries and causality have
// 3 * 4 * 3 * 2 = 72 combinations, of which the affected cell (causal, past 1 or 3, one query, 2 to
// 4 new keys) has 6; 50,688 / 72 = 4,224 / 6 = 704 combinations of everything else. Opset, batch
// and heads take 2 * 2 * 2 = 8 of these, the masks 8 (none; boolean of rank 2, 3 and 4 without and
// with rows that are hidden whole; float), which leaves 11 for rank of the inputs, softcap, element
// type, scale and intermediate. Here these 11 hold every pair of values of the five.
#include <array>
#include <memory>
#include <stdexcept>

#include "model/mask.h"
#include "properties/sweep/grid.h"

namespace kvcheck::properties {
namespace {

using model::ElementType;
using model::MaskKind;
using model::QkOutput;
using model::Scenario;

constexpr std::array<int, 2> kOpsets = {23, 24};
constexpr std::array<std::int64_t, 3> kPasts = {0, 1, 3};
constexpr std::int64_t kBatches = 2, kHeadCounts = 2, kQueries = 3, kTokens = 4;
constexpr std::int64_t kHeadSize = 4;

struct MaskChoice {
  const char* words;
  MaskKind kind;
  int rank;
  bool empty_rows;
};

constexpr std::array<MaskChoice, 8> kMasks = {{
    {"none", MaskKind::none, 2, false},
    {"boolean of rank 2", MaskKind::boolean, 2, false},
    {"boolean of rank 3", MaskKind::boolean, 3, false},
    {"boolean of rank 4", MaskKind::boolean, 4, false},
    {"boolean of rank 2 with whole rows hidden", MaskKind::boolean, 2, true},
    {"boolean of rank 3 with whole rows hidden", MaskKind::boolean, 3, true},
    {"boolean of rank 4 with whole rows hidden", MaskKind::boolean, 4, true},
    {"float of rank 4", MaskKind::additive, 4, false},
}};

struct Variation {
  int input_rank;
  bool softcap;
  ElementType type;
  bool scale;
  QkOutput qk;
};

/// Each intermediate once with some setting of the four others and once with the opposite one; of
/// any two of the four the settings are alike in one such pair and unlike in another.
constexpr std::array<Variation, 11> kVariations = {{
    {4, false, ElementType::f32, false, QkOutput::none},
    {3, true, ElementType::f16, true, QkOutput::none},
    {4, false, ElementType::f16, true, QkOutput::raw},
    {3, true, ElementType::f32, false, QkOutput::raw},
    {4, true, ElementType::f32, true, QkOutput::softcapped},
    {3, false, ElementType::f16, false, QkOutput::softcapped},
    {4, true, ElementType::f16, false, QkOutput::biased},
    {3, false, ElementType::f32, true, QkOutput::biased},
    {4, false, ElementType::f32, true, QkOutput::probabilities},
    {3, true, ElementType::f16, false, QkOutput::probabilities},
    {4, false, ElementType::f16, false, QkOutput::none},  // Half precision and nothing else.
}};

/// Index on each axis that is multiplied; the last changes fastest. What decides the graph of a
/// foreign kernel comes first, so that neighbours share it.
struct Place {
  std::int64_t variation, opset, mask, causal, past, heads, batch, queries, tokens;
};

constexpr std::array<std::int64_t, 9> kSizes = {
    kVariations.size(), kOpsets.size(), kMasks.size(), 2,      kPasts.size(),
    kHeadCounts,        kBatches,       kQueries,      kTokens};

constexpr std::int64_t count_of_all() {
  std::int64_t count = 1;
  for (const std::int64_t size : kSizes) count *= size;
  return count;
}
static_assert(count_of_all() == 50688);

Place place_of(std::int64_t index) {
  std::array<std::int64_t, kSizes.size()> digit{};
  for (std::size_t i = kSizes.size(); i-- > 0; index /= kSizes[i]) digit[i] = index % kSizes[i];
  return {digit[0], digit[1], digit[2], digit[3], digit[4], digit[5], digit[6], digit[7], digit[8]};
}

Scenario scenario_at(const Place& place, std::uint64_t seed) {
  const Variation& variation = kVariations[static_cast<std::size_t>(place.variation)];
  const MaskChoice& mask = kMasks[static_cast<std::size_t>(place.mask)];
  const std::int64_t past = kPasts[static_cast<std::size_t>(place.past)];
  const auto batch = static_cast<std::size_t>(place.batch + 1);
  Scenario s;
  s.op = model::Operator::attention;
  s.opset = kOpsets[static_cast<std::size_t>(place.opset)];
  s.batch = place.batch + 1;
  s.kv_heads = 2;
  s.query_heads = place.heads == 0 ? 2 : 4;
  s.head_size = s.value_head_size = kHeadSize;
  s.element_type = variation.type;
  s.causal = place.causal == 1;
  s.input_rank = variation.input_rank;
  if (variation.softcap) s.softcap = 2;
  if (variation.scale) s.scale = 0.3125;
  s.qk_output = variation.qk;
  s.mask.kind = mask.kind;
  s.mask.rank = mask.rank;
  s.mask.empty_rows = mask.empty_rows;
  s.fill.kind = model::FillKind::random;
  s.fill.seed = seed;
  if (past > 0) s.steps.emplace_back(model::Past{std::vector(batch, past), {}});
  s.steps.emplace_back(model::Append{
      std::vector(batch, place.tokens + 1), std::vector(batch, place.queries + 1), 0, {}});
  return s;
}

/// Whether the mask leaves the newest key open to the first query somewhere, hides something where
/// it has more than one cell, and, where it is to hide whole rows, hides one of several.
bool mask_can_tell(const Scenario& s, std::int64_t past, std::int64_t queries,
                   std::int64_t length) {
  const std::int64_t entries = s.mask.rank >= 4 ? s.batch : 1;
  const std::int64_t heads = s.mask.rank >= 3 ? s.query_heads : 1;
  bool newest_open = false, hides = false, hides_row = false;
  for (std::int64_t b = 0; b < entries; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t i = 0; i < queries; ++i) {
        std::int64_t hidden = 0;
        for (std::int64_t j = 0; j < length; ++j) {
          const bool cell = model::mask_hides(s, b, h, {past + i}, {j});
          hidden += cell ? 1 : 0;
          if (!cell && i == 0 && j == length - 1) newest_open = true;
        }
        hides = hides || hidden > 0;
        hides_row = hides_row || hidden == length;
      }
    }
  }
  const std::int64_t rows = entries * heads * queries;
  return newest_open && (hides || rows * length == 1) &&
         (hides_row || !s.mask.empty_rows || rows == 1);
}

/// First seed of a mask that can tell right from wrong: a mask that hides the very keys in question
/// would agree whatever the kernel does.
std::uint64_t telling_seed(const Place& place) {
  Scenario s = scenario_at(place, 0);
  const std::int64_t past = kPasts[static_cast<std::size_t>(place.past)];
  for (s.mask.seed = 0; s.mask.seed < 100000; ++s.mask.seed) {
    if (mask_can_tell(s, past, place.queries + 1, past + place.tokens + 1)) return s.mask.seed;
  }
  throw std::logic_error("causal-past: no seed gives a mask that tells right from wrong");
}

/// Seeds by mask and everything faster, causality apart.
class MaskSeeds {
 public:
  MaskSeeds() {
    seeds_.resize(kMasks.size() * static_cast<std::size_t>(kPerMask));
    for (std::int64_t mask = 1; mask < static_cast<std::int64_t>(kMasks.size()); ++mask) {
      for (std::int64_t rest = 0; rest < kPerMask; ++rest) {
        Place place = place_of(rest);
        place.mask = mask;
        seeds_[key(place)] = telling_seed(place);
      }
    }
  }
  std::uint64_t of(const Place& place) const { return seeds_[key(place)]; }

 private:
  static constexpr std::int64_t kPerMask =
      static_cast<std::int64_t>(kPasts.size()) * kHeadCounts * kBatches * kQueries * kTokens;
  static std::size_t key(const Place& p) {
    std::int64_t at = p.mask;
    at = at * static_cast<std::int64_t>(kPasts.size()) + p.past;
    at = (at * kHeadCounts + p.heads) * kBatches + p.batch;
    return static_cast<std::size_t>((at * kQueries + p.queries) * kTokens + p.tokens);
  }
  std::vector<std::uint64_t> seeds_;
};

Configuration configuration(std::int64_t index, const MaskSeeds& seeds) {
  const Place place = place_of(index);
  const Variation& variation = kVariations[static_cast<std::size_t>(place.variation)];
  Configuration made{scenario_at(place, static_cast<std::uint64_t>(index)), {}};
  made.scenario.mask.seed = seeds.of(place);
  for (const std::int64_t value :
       {place.opset, place.batch, place.heads, place.queries, place.tokens, place.past,
        place.causal, place.mask, std::int64_t{variation.input_rank == 4},
        std::int64_t{variation.softcap}, std::int64_t{variation.type == ElementType::f16},
        std::int64_t{variation.scale}, static_cast<std::int64_t>(variation.qk)}) {
    made.at.push_back(static_cast<std::int16_t>(value));
  }
  return made;
}

}  // namespace

Grid causal_past_grid() {
  Grid grid;
  grid.name = "causal-past";
  grid.statement =
      "Attention 23 and 24 with few queries, new keys and past keys, every kind of mask, both "
      "ranks of input, softcap, scale, two element types and every intermediate: the axes of "
      "onnxruntime pull request 34226.";
  grid.arithmetic =
      "2 opsets x 2 batches x 2 head counts x (3 query counts x 4 new key counts x 3 pasts x 2 "
      "causal) x 8 masks x 11 variations";
  GridAxis masks{"mask", {}, false};
  for (const MaskChoice& choice : kMasks) masks.values.emplace_back(choice.words);
  GridAxis intermediates{"qk_output", {}, false};
  for (const auto output : {QkOutput::none, QkOutput::raw, QkOutput::softcapped, QkOutput::biased,
                            QkOutput::probabilities}) {
    intermediates.values.emplace_back(model::to_string(output));
  }
  grid.axes = {number_axis("opset", {23, 24}),
               number_axis("batch", {1, 2}),
               {"heads", {"2 of 2", "4 on 2"}, false},
               number_axis("queries", {1, 2, 3}),
               number_axis("new keys", {1, 2, 3, 4}),
               number_axis("past", {0, 1, 3}),
               number_axis("is_causal", {0, 1}),
               std::move(masks),
               number_axis("input rank", {3, 4}),
               {"softcap", {"off", "2"}, false},
               {"element type", {"f32", "f16"}, false},
               {"scale", {"default", "0.3125"}, false},
               std::move(intermediates)};
  grid.count = count_of_all();
  grid.visible_sets = true;
  const auto seeds = std::make_shared<const MaskSeeds>();
  grid.at = [seeds](std::int64_t index) { return configuration(index, *seeds); };
  return grid;
}

}  // namespace kvcheck::properties
