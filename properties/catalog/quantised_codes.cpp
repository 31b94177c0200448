// cache.quantised_codes: what a quantised cache stores of a value.
// code = clamp(round_half_even(x / scale)) to [-128, 127], [-8, 7], or the nearest f8e4m3 within
// +-448. Scales are powers of two here, so x / scale is exact and every code is certain: rows of
// zeros, of ties, beyond the range, and of exact codes, compared as bytes with those codes.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "model/counter_hash.h"
#include "model/quantisation.h"
#include "properties/catalog.h"
#include "properties/catalog/interposed.h"
#include "properties/row_content.h"

namespace kvcheck::properties {
namespace {

using model::QuantisationKind;

/// Largest code that ties and exact codes use: with half a code it fits the 8 bits of bf16.
std::int64_t reach(QuantisationKind kind) {
  return kind == QuantisationKind::int8 ? 60 : kind == QuantisationKind::int4 ? 7 : 15;
}

double scale_at(bool per_channel, std::int64_t kv_head, std::int64_t lane) {
  return per_channel ? std::ldexp(1.0, static_cast<int>(-3 - (kv_head + lane) % 3)) : 0x1p-4;
}

/// x / scale of one lane: all that the codes depend on.
double steps_of(QuantisationKind kind, std::int64_t position, std::int64_t kv_head,
                std::int64_t lane) {
  const std::uint64_t hash = model::counter_hash(77, position, kv_head, lane);
  const auto code = static_cast<double>(
      static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(2 * reach(kind) + 1)) -
      reach(kind));
  switch ((position + kv_head) % 4) {
    case 0:
      return 0;
    case 1:  // Between two codes: of f8e4m3, which has four significant bits, an odd fifth one.
      if (kind == QuantisationKind::fp8) return std::ldexp(16 + std::abs(code), -3);
      return code + 0.5;
    case 2: {
      constexpr std::array kBeyond{127.5, -128.5, 300.0, -1000.0, 7.5, -8.5, 464.0, -2048.0};
      return kBeyond[(hash >> 8) % kBeyond.size()];
    }
    default:
      return code;
  }
}

double code_of(QuantisationKind kind, double steps) {
  switch (kind) {
    case QuantisationKind::int8:
      return std::clamp(std::nearbyint(steps), -128.0, 127.0);
    case QuantisationKind::int4:
      return std::clamp(std::nearbyint(steps), -8.0, 7.0);
    default:
      return model::round_to_fp8(std::clamp(steps, -448.0, 448.0));
  }
}

class Codes {
 public:
  explicit Codes(const Case& c)
      : c_(c),
        kind_(c.scenario().cache.quantisation.kind),
        per_channel_(c.scenario().cache.quantisation.per_channel),
        keys_(!c.scenario().rotary && !c.scenario().qk_norm) {}

  /// Whether the keys are stored as they are given.
  bool keys() const { return keys_; }

  void configure(kernels::SessionConfig& config) const {
    for (kernels::Tensor* scale :
         {&config.quantisation.key_scale, &config.quantisation.value_scale}) {
      const std::int64_t lanes = per_channel_ ? config.head_size : 1;
      for (std::int64_t i = 0; i < scale->elements(); ++i) {
        const auto value = static_cast<float>(scale_at(per_channel_, i / lanes, i % lanes));
        std::memcpy(scale->bytes.data() + static_cast<std::size_t>(i) * sizeof value, &value,
                    sizeof value);
      }
    }
  }

  void replace(std::size_t step, kernels::StepRequest& request) const {
    const auto& s = c_.scenario();
    for (std::int64_t b = 0; b < s.batch; ++b) {
      const auto e = static_cast<std::size_t>(b);
      for (std::int64_t i = 0; i < request.tokens[e]; ++i) {
        const std::int64_t position = c_.timeline().steps()[step].entries[e].past + i;
        for (std::int64_t h = 0; h < s.kv_heads; ++h) {
          const std::int64_t row = (b * request.key.shape[1] + i) * s.kv_heads + h;
          if (keys_) put_row(request.key, row, values(position, h));
          put_row(request.value, row, values(position + 1, h));
        }
      }
    }
  }

  /// The first byte of a row that is wrong, and how.
  struct Wrong {
    std::int64_t byte;
    std::string words;
  };
  /// Empty where the row has the codes of the values at `position`.
  std::optional<Wrong> difference(std::span<const std::byte> row, std::int64_t position,
                                  std::int64_t kv_head) const {
    std::vector<double> codes;
    for (std::int64_t l = 0; l < c_.scenario().head_size; ++l) {
      codes.push_back(code_of(kind_, steps_of(kind_, position, kv_head, l)));
    }
    std::vector<std::byte> expected(row.size());
    model::store_row(kind_, codes, expected);
    const auto [a, b] = std::ranges::mismatch(row, expected);
    if (a == row.end()) return std::nullopt;
    const auto byte = static_cast<std::int64_t>(a - row.begin());
    const std::int64_t lane = kind_ == QuantisationKind::int4 ? 2 * byte : byte;
    return Wrong{
        byte, fmt::format(
                  "byte {} is {:#04x}, not {:#04x} (lane {}: {} times the scale has code {})", byte,
                  std::to_integer<unsigned>(*a), std::to_integer<unsigned>(*b), lane,
                  steps_of(kind_, position, kv_head, lane), codes[static_cast<std::size_t>(lane)])};
  }

 private:
  std::vector<double> values(std::int64_t position, std::int64_t kv_head) const {
    std::vector<double> row;
    for (std::int64_t l = 0; l < c_.scenario().head_size; ++l) {
      row.push_back(steps_of(kind_, position, kv_head, l) * scale_at(per_channel_, kv_head, l));
    }
    return row;
  }

  const Case& c_;
  QuantisationKind kind_;
  bool per_channel_, keys_;
};

/// Judges the rows of one entry that step `step` has brought and that are still there after it.
std::optional<Judgement> wrong_codes(Case& c, const Codes& codes, const kernels::CacheRows& rows,
                                     std::size_t step, std::int64_t entry, std::int64_t& compared) {
  const auto& state = c.timeline().steps()[step].entries[static_cast<std::size_t>(entry)];
  const std::int64_t oldest = state.first_position.value;
  for (std::int64_t p = std::max(state.past, oldest); p < state.length; ++p) {
    if (p - oldest >= rows.key.shape[2]) break;
    for (std::int64_t h = 0; h < c.scenario().kv_heads; ++h, ++compared) {
      auto problem = codes.difference(row_bytes(rows.value, entry, h, p - oldest), p + 1, h);
      const bool value = problem.has_value();
      if (!value && codes.keys()) {
        problem = codes.difference(row_bytes(rows.key, entry, h, p - oldest), p, h);
      }
      if (!problem) continue;
      shrinkers::Hint hint;
      hint.step = static_cast<std::int64_t>(step);
      hint.entry = entry;
      hint.query_head = h * (c.scenario().query_heads / c.scenario().kv_heads);
      Judgement judgement = Judgement::failed(
          Kind::wrong_row,
          fmt::format("after step {} ({}) the {} of position {} of batch entry {}, KV head {}: {}",
                      step, model::describe(c.scenario().steps[step]), value ? "value" : "key", p,
                      entry, h, problem->words),
          hint);
      judgement.element = kernels::ElementPlace{
          value ? kernels::ElementPlace::Of::value : kernels::ElementPlace::Of::key, entry, h,
          p - oldest, problem->byte};
      return judgement;
    }
  }
  return std::nullopt;
}

Judgement judge(Case& c) {
  const Codes codes(c);
  Interposer interposer;
  interposer.config = [&](kernels::SessionConfig& config) { codes.configure(config); };
  interposer.append = [&](std::size_t step, kernels::StepRequest& request) {
    codes.replace(step, request);
  };
  const Execution run = execute_interposed(c, interposer);
  std::int64_t compared = 0;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const StepAnswer& answer = run.steps[i];
    if (!std::holds_alternative<model::Append>(c.scenario().steps[i]) || !answer.result.rows) {
      continue;
    }
    const RowContent shape(c.scenario(), c.timeline(), c.fill(), c.roundoff());
    if (!shape.shape_problem(*answer.result.rows).empty()) continue;  // Of another property.
    for (std::int64_t b = 0; b < c.scenario().batch; ++b) {
      if (auto wrong = wrong_codes(c, codes, *answer.result.rows, i, b, compared)) return *wrong;
    }
  }
  if (!run.complete) return Judgement::skipped(broke_off(c.scenario(), run));
  return compared > 0 ? Judgement{} : Judgement::skipped("no new row stays in the cache");
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities& target) {
  if (!target.rows) return "the target does not let its cache be read";
  return scenario.cache.quantisation.kind == QuantisationKind::none ? "the cache is not quantised"
                                                                    : "";
}

}  // namespace

Property quantised_codes_property() {
  return {"cache.quantised_codes",
          "A quantised cache stores the code that is nearest to value/scale, ties to "
          "even, clamped to the range: rows of zeros, ties, excess and exact codes have "
          "their bytes.",
          "truncation, ties away from zero, wrapped or asymmetric clamps, scales of "
          "another lane or head, nibbles in the wrong order, odd lanes",
          inapplicable,
          judge,
          "cache_int8|cache_int4|cache_fp8"};
}

}  // namespace kvcheck::properties
