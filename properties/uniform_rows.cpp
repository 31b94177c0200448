// Shares of equal keys, and their bounds.
#include "properties/uniform_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/parameters.h"

namespace kvcheck::properties {

double sink_mass(const model::Scenario& launch, std::int64_t head) {
  if (launch.head_sink) return std::exp(model::sink_logit(launch, head));
  return launch.smooth_softmax ? 1 : 0;
}

UniformCase::UniformCase(const model::Scenario& launch, const model::ArithmeticProfile& arithmetic)
    : profile(arithmetic),
      head_size(launch.head_size),
      lanes(std::min<std::int64_t>(launch.value_head_size, 2)),
      softcap(launch.softcap) {
  if (launch.head_sink) {
    for (std::int64_t head = 0; head < launch.query_heads; ++head) {
      sinks.push_back(sink_mass(launch, head));
    }
  } else if (launch.smooth_softmax) {
    sinks.push_back(sink_mass(launch, 0));
  }
}

UniformRows::UniformRows(UniformCase of)
    : case_(std::move(of)),
      bound_(case_.profile),
      store_spacing_(model::subnormal_half_spacing(case_.profile.output_type)) {}

std::shared_ptr<UniformRows> UniformRows::of(UniformCase wanted) {
  constexpr std::size_t kCases = 64, kRows = 4096;
  thread_local std::vector<std::shared_ptr<UniformRows>> kept;
  for (auto& rows : kept) {
    if (rows->case_ != wanted) continue;
    if (rows->rows_.size() > kRows) rows = std::make_shared<UniformRows>(std::move(wanted));
    return rows;
  }
  if (kept.size() == kCases) kept.clear();
  return kept.emplace_back(std::make_shared<UniformRows>(std::move(wanted)));
}

bool lane_hides_a_key(double output, double bound, std::int64_t lanes, std::int64_t keys,
                      double mass) {
  double part = 1 - output;
  if (lanes == 1) part = keys > 1 ? std::min(output, part) : std::max(output, part);
  return part / (mass + 1) <= 2 * bound;
}

const UniformRows::Lane& UniformRows::find(std::int64_t head, std::int64_t keys, std::int64_t lit) {
  static constexpr Lane kNothing;
  if (keys == 0) return kNothing;
  Shared& row = shared(head, keys);
  if (lit < kFew) {
    Lane& lane = row.few[static_cast<std::size_t>(lit)];
    if (lane.bound == 0) lane = made(row, lit);
    return lane;
  }
  for (const auto& [known, lane] : row.lanes) {
    if (known == lit) return lane;
  }
  return row.lanes.emplace_back(lit, made(row, lit)).second;
}

UniformRows::Shared& UniformRows::shared(std::int64_t head, std::int64_t keys) {
  const std::int64_t sink = sink_of(head);
  if (last_ != nullptr && last_->sink_of == sink && last_->keys == keys) return *last_;
  Shared& row = rows_[{sink, keys}];
  row.sink_of = sink;
  row.keys = keys;
  last_ = &row;
  return row;
}

void UniformRows::set_row(const Shared& shared) {
  if (current_ == &shared) return;
  current_ = &shared;
  const auto n = static_cast<double>(shared.keys);
  const double sink = mass_of(shared.sink_of);
  terms_.assign(static_cast<std::size_t>(shared.keys), {});
  for (auto& term : terms_) term.weight = 1 / (n + sink);
  double largest = 1;
  if (sink > 0) {
    const double logit = std::log(sink);
    model::KeyTerm term;
    term.product = term.score = logit;
    term.weight = sink / (n + sink);
    terms_.push_back(term);
    largest = std::max(largest, sink);
  }
  bound_.set_row(case_.head_size, terms_, (n + sink) / largest, case_.softcap);
}

UniformRows::Lane UniformRows::made(const Shared& shared, std::int64_t lit) {
  set_row(shared);
  const auto n = static_cast<double>(shared.keys);
  const auto c = static_cast<double>(lit);
  const double weight = terms_.front().weight;
  Lane lane;
  lane.output = c * weight;
  const double o = lane.output;
  model::LaneSums sums;
  sums.spread = weight * bound_.growth().front() * (c * (1 - o) + (n - c) * o);
  sums.magnitude = o;
  sums.values = c;
  sums.widest_error = 0;
  if (lit > 0) sums.widest = 1 - o;
  if (lit < shared.keys) sums.widest = std::max(sums.widest, o);
  if (terms_.size() > static_cast<std::size_t>(shared.keys)) {
    sums.spread += terms_.back().weight * o * bound_.growth().back();
    sums.widest = std::max(sums.widest, o);
  }
  const model::BoundTerms terms = bound_.terms(sums, o);
  lane.bound = terms.total();
  lane.scaled_bound =
      std::max(0.0, (1 - 0x1p-10) * (lane.bound - terms.underflow) - 2 * store_spacing_);
  lane.hides_a_key =
      lane_hides_a_key(o, lane.bound, case_.lanes, shared.keys, n + mass_of(shared.sink_of));
  return lane;
}

}  // namespace kvcheck::properties
