// From the fill's numbers to the operands of attention.
#include "model/operands.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include <boost/multiprecision/cpp_bin_float.hpp>

#include "model/counter_hash.h"
#include "model/parameters.h"
#include "model/quantisation.h"
#include "model/twofold.h"

namespace kvcheck::model {
namespace {

using Quad = boost::multiprecision::cpp_bin_float_quad;

/// Roundings of a rotated lane: two products and a sum.
constexpr double kTurnRoundings = 3;

/// Roundings of a normalised lane beside those of the mean: root, reciprocal, two products.
constexpr double kNormRoundings = 5;

/// x * factor + y * other, right to about 2^-104 of the products.
Twofold turned(Twofold x, double factor, Twofold y, double other) {
  const double p = x.high * factor;
  const double q = y.high * other;
  const Twofold sum = sum_of(p, q);
  const double low = std::fma(x.high, factor, -p) + std::fma(y.high, other, -q) + x.low * factor +
                     y.low * other + sum.low;
  return sum_of(sum.high, low);
}

Twofold split(const Twofold& number) { return number; }

Twofold split(const Quad& number) {
  const auto high = static_cast<double>(number);
  return {high, static_cast<double>(Quad(number - high))};
}

/// x * weight / sqrt(mean(x^2) + epsilon) in place.
template <class Real>
void normalise_lanes(QueryRow& row, const std::vector<double>& weights, double epsilon) {
  Real squares = 0;
  for (const double lane : row.high) squares = squares + Real(lane) * Real(lane);
  const Real mean = squares / Real(static_cast<double>(row.high.size()));
  const Real root = sqrt(Real(mean + Real(epsilon)));
  for (std::size_t c = 0; c < row.high.size(); ++c) {
    const Twofold lane = split(Real(Real(Real(row.high[c]) * Real(weights[c])) / root));
    row.high[c] = lane.high;
    row.low[c] = lane.low;
  }
}

double low_of(const QueryRow& row, std::size_t lane) {
  return row.low.empty() ? 0.0 : row.low[lane];
}

}  // namespace

Operands::Operands(const Scenario& scenario, const Timeline& timeline, const Fill& fill,
                   double roundoff, const Reading& reading)
    : scenario_(&scenario),
      timeline_(&timeline),
      fill_(&fill),
      roundoff_(roundoff),
      reading_(&reading) {
  if (scenario.rotary) rotary_.emplace(scenario, reading.other_pairs);
}

std::size_t Operands::NameHash::operator()(const HeldToken& name) const {
  return static_cast<std::size_t>(counter_hash(static_cast<std::uint64_t>(name.entry),
                                               name.token.position.value, name.token.generation,
                                               name.step));
}

bool Operands::SameName::operator()(const HeldToken& a, const HeldToken& b) const {
  return a.entry == b.entry && a.token == b.token && a.step == b.step;
}

std::int64_t Operands::turn_of(std::size_t step, std::int64_t entry, std::int64_t token,
                               bool key) const {
  if (reading_->rotary_position != nullptr) {
    return reading_->rotary_position(*scenario_, *timeline_, step, entry, token, key);
  }
  return rotary_position(*scenario_, *timeline_, step, entry, token);
}

void Operands::norm(QueryRow& row, bool key) {
  const std::size_t lanes = row.high.size();
  std::vector<double>& weights = norm_weights_[key ? 1 : 0];
  for (std::size_t c = weights.size(); c < lanes; ++c) {
    weights.push_back(norm_weight(*scenario_, key ? NormSide::key : NormSide::query,
                                  static_cast<std::int64_t>(c)));
  }
  row.low.resize(lanes);
  const double epsilon = scenario_->qk_norm->epsilon;
  if (epsilon > 0 && Twofold::in_range(epsilon) &&
      std::ranges::all_of(row.high, Twofold::in_range)) {
    normalise_lanes<Twofold>(row, weights, epsilon);
  } else {
    normalise_lanes<Quad>(row, weights, epsilon);
  }
  const double roundings = (static_cast<double>(lanes) + 2) / 2 + kNormRoundings;
  // Between norm and rotary embedding a target may store the row in the element type.
  const double stored = unit_roundoff(scenario_->element_type);
  const double error = 1.02 * roundings * roundoff_ + stored;
  row.doubts.resize(lanes);
  for (std::size_t c = 0; c < lanes; ++c) row.doubts[c] = std::abs(row.high[c]) * error;
}

/// Heads of one token follow each other.
std::span<const Turn> Operands::turns_at(std::int64_t position) {
  if (turns_position_ != position) {
    turns_.clear();
    for (std::int64_t pair = 0; pair < rotary_->pairs(); ++pair) {
      turns_.push_back(rotary_->turn(position, pair));
    }
    turns_position_ = position;
  }
  return turns_;
}

void Operands::rotate(QueryRow& row, std::int64_t position) {
  row.low.resize(row.high.size(), 0.0);
  row.doubts.resize(row.high.size(), 0.0);
  const double error = kTurnRoundings * roundoff_ * 1.01;
  const std::span<const Turn> turns = turns_at(position);
  for (std::int64_t pair = 0; pair < rotary_->pairs(); ++pair) {
    const auto [a, b] = rotary_->lanes(pair);
    const Turn turn = turns[static_cast<std::size_t>(pair)];
    const double cos = std::abs(turn.cos);
    const double sin = std::abs(turn.sin);
    const Twofold x{row.high[a], row.low[a]};
    const Twofold y{row.high[b], row.low[b]};
    const double x_size = std::abs(x.high);
    const double y_size = std::abs(y.high);
    const Twofold at_a = turned(x, turn.cos, y, -turn.sin);
    const Twofold at_b = turned(y, turn.cos, x, turn.sin);
    const double doubt_a =
        error * (x_size * cos + y_size * sin) + row.doubts[a] * cos + row.doubts[b] * sin;
    const double doubt_b =
        error * (y_size * cos + x_size * sin) + row.doubts[b] * cos + row.doubts[a] * sin;
    row.high[a] = at_a.high, row.low[a] = at_a.low, row.doubts[a] = doubt_a;
    row.high[b] = at_b.high, row.low[b] = at_b.low, row.doubts[b] = doubt_b;
  }
}

/// What the operator is given of one query and head.
void Operands::give_query(std::size_t step, std::int64_t entry, std::int64_t query_head,
                          std::int64_t query, std::span<double> row) {
  if (source_ == nullptr) return fill_->query_row(step, entry, query_head, query, row);
  // Heads of one query follow each other.
  const QueryName name{step, entry, query};
  if (shared_query_name_ != name) {
    const auto& around = timeline_->steps()[step].entries[static_cast<std::size_t>(entry)];
    const Token place{{around.origin.value + query},
                      std::get<Append>(scenario_->steps[step]).generation};
    const auto rows = source_->queries(*fill_, step, entry, query, place);
    shared_query_.resize(static_cast<std::size_t>(scenario_->query_heads) * row.size());
    load_elements(scenario_->element_type, rows.data(), shared_query_);
    shared_query_name_ = name;
  }
  const auto first = static_cast<std::size_t>(query_head) * row.size();
  std::ranges::copy(std::span(shared_query_).subspan(first, row.size()), row.begin());
}

void Operands::query(std::size_t step, std::int64_t entry, std::int64_t query_head,
                     std::int64_t query, QueryRow& row) {
  row.high.resize(static_cast<std::size_t>(scenario_->head_size));
  row.low.clear();
  row.doubts.clear();
  give_query(step, entry, query_head, query, row.high);
  if (scenario_->qk_norm && !reading_->without_norm) norm(row, false);
  if (rotary_) rotate(row, turn_of(step, entry, query, false));
  // A target may store the turned query in the element type.
  for (std::size_t c = 0; c < row.doubts.size(); ++c) {
    row.doubts[c] += unit_roundoff(scenario_->element_type) * std::abs(row.high[c]);
  }
}

/// What the operator is given of one token, for all heads.
void Operands::give_rows(const HeldToken& token, TokenRows& rows) const {
  if (source_ != nullptr) {
    const ElementType type = scenario_->element_type;
    load_elements(type, source_->keys(*fill_, token.entry, token.token).data(), rows.keys);
    load_elements(type, source_->values(*fill_, token.entry, token.token).data(), rows.values);
    return;
  }
  const auto key_lanes = static_cast<std::size_t>(scenario_->head_size);
  const auto value_lanes = static_cast<std::size_t>(scenario_->value_head_size);
  for (std::int64_t head = 0; head < scenario_->kv_heads; ++head) {
    const auto at = static_cast<std::size_t>(head);
    fill_->key_row(token.entry, head, token.token,
                   std::span(rows.keys).subspan(at * key_lanes, key_lanes));
    fill_->value_row(token.entry, head, token.token,
                     std::span(rows.values).subspan(at * value_lanes, value_lanes));
  }
}

/// Turns keys as they are given into keys as the cache stores them.
void Operands::store_keys(const HeldToken& token, TokenRows& rows) {
  const bool computed = (scenario_->qk_norm || rotary_) &&
                        std::holds_alternative<Append>(scenario_->steps[token.step]);
  if (!computed) {
    round_row(scenario_->element_type, rows.keys);
    return;
  }
  const auto& around =
      timeline_->steps()[token.step].entries[static_cast<std::size_t>(token.entry)];
  const auto lanes = static_cast<std::size_t>(scenario_->head_size);
  rows.key_doubts.resize(rows.keys.size(), 0.0);
  QueryRow& row = key_row_;
  for (std::size_t first = 0; first < rows.keys.size(); first += lanes) {
    row.high.assign(rows.keys.begin() + static_cast<std::ptrdiff_t>(first),
                    rows.keys.begin() + static_cast<std::ptrdiff_t>(first + lanes));
    row.low.clear();
    row.doubts.clear();
    if (scenario_->qk_norm && !reading_->without_norm) norm(row, true);
    if (rotary_) {
      rotate(row, turn_of(token.step, token.entry, token.token.position.value - around.past, true));
    }
    row.doubts.resize(lanes, 0.0);
    for (std::size_t c = 0; c < lanes; ++c) {
      // The double nearest to high + low decides the rounding but for ties that the doubt covers.
      const double exact = row.high[c] + low_of(row, c);
      const double stored = round_to(scenario_->element_type, exact);
      rows.keys[first + c] = stored;
      const double below = round_to(scenario_->element_type, exact - row.doubts[c]);
      const double above = round_to(scenario_->element_type, exact + row.doubts[c]);
      rows.key_doubts[first + c] = std::max(above - stored, stored - below);
    }
  }
}

void Operands::quantise_rows(TokenRows& rows) const {
  const QuantisationKind kind = scenario_->cache.quantisation.kind;
  const auto pass = [&](std::pmr::vector<double>& row, std::pmr::vector<double>& doubts,
                        CacheSide side, std::int64_t lanes) {
    doubts.resize(row.size(), 0.0);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const float scale = cache_scale(*scenario_, side, at / lanes, at % lanes);
      const CodeRange codes =
          quantise_interval(kind, scale, row[i] - doubts[i], row[i] + doubts[i]);
      const double code = quantise(kind, scale, row[i]);
      row[i] = code * static_cast<double>(scale);  // Exact in double.
      doubts[i] = std::abs(static_cast<double>(scale)) *
                      std::max(codes.highest - code, code - codes.lowest) +
                  roundoff_ * std::abs(row[i]);
    }
  };
  pass(rows.keys, rows.key_doubts, CacheSide::key, scenario_->head_size);
  pass(rows.values, rows.value_doubts, CacheSide::value, scenario_->value_head_size);
}

/// Where the rows of a token that its step did bring are noted; null for others.
const TokenRows** Operands::shortcut(const HeldToken& token) {
  const std::size_t batch = static_cast<std::size_t>(scenario_->batch);
  const auto entry = static_cast<std::size_t>(token.entry);
  const auto* append = std::get_if<Append>(&scenario_->steps[token.step]);
  if (entry >= batch || token.token.generation != (append != nullptr ? append->generation : 0)) {
    return nullptr;
  }
  const EntryStep& around = timeline_->steps()[token.step].entries[entry];
  const std::int64_t at = token.token.position.value - around.past;
  if (at < 0 || token.token.position.value >= around.length) return nullptr;
  // A past may be longer than memory, of which a window asks for the end alone.
  constexpr std::int64_t kMostNoted = 4096;
  if (around.length - around.past > kMostNoted) return nullptr;
  if (shortcuts_.empty()) shortcuts_.resize(scenario_->steps.size() * batch);
  auto& tokens = shortcuts_[token.step * batch + entry];
  if (tokens.empty()) tokens.resize(static_cast<std::size_t>(around.length - around.past));
  return &tokens[static_cast<std::size_t>(at)];
}

const TokenRows& Operands::stored(const HeldToken& token) {
  if (const TokenRows** known = shortcut(token)) {
    if (*known == nullptr) {
      TokenRows& rows = noted_rows_.emplace_back(&memory_);
      make(token, rows);
      *known = &rows;
    }
    return **known;
  }
  const auto [place, is_new] = rows_.try_emplace(token, &memory_);
  if (is_new) make(token, place->second);
  return place->second;
}

void Operands::make(const HeldToken& token, TokenRows& rows) {
  const auto heads = static_cast<std::size_t>(scenario_->kv_heads);
  const auto value_lanes = static_cast<std::size_t>(scenario_->value_head_size);
  rows.keys.resize(heads * static_cast<std::size_t>(scenario_->head_size));
  rows.values.resize(heads * value_lanes);
  if (token.token.position.value < 0) return;  // Nobody wrote it.
  give_rows(token, rows);
  store_keys(token, rows);
  const bool quantised = scenario_->cache.quantisation.kind != QuantisationKind::none;
  if (quantised && !reading_->without_quantisation) quantise_rows(rows);
}

}  // namespace kvcheck::model
