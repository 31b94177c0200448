// Other values for the fields of a scenario.
#include "shrinkers/variations.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "shrinkers/edits.h"
#include "shrinkers/fields.h"

namespace kvcheck::shrinkers {
namespace {

using model::Append;
using model::Rollback;
using model::Scenario;

std::string parent(const std::string& field) { return field.substr(0, field.rfind('.')); }

/// Collects variations, leaving out what normalise() turns back or validate() refuses.
class Collector {
 public:
  explicit Collector(const Scenario& scenario) : scenario_(scenario) {}

  template <class Edit>
  void vary(const std::string& field, Area area, std::int64_t distance, Edit edit) {
    Scenario changed = scenario_;
    edit(changed);
    changed = model::normalise(std::move(changed));
    const std::string value = field_text(scenario_, field);
    const std::string other = field_text(changed, field);
    if (value == other || other.empty() || !model::validate(changed).empty()) return;
    // A step that was left with nothing is gone, and the field's name means another step now.
    if (area == Area::steps && !same_kinds(scenario_, changed)) return;
    add({field, value, other, std::move(changed), area, distance, 0});
  }

  /// Numbers, each an absolute value; what is below `least` or the present one is left out.
  void numbers(const std::string& field, Area area, std::int64_t value, std::int64_t least,
               std::initializer_list<std::int64_t> others,
               const std::function<void(Scenario&, std::int64_t)>& write) {
    for (const std::int64_t other : others) {
      if (other < least || other == value) continue;
      vary(field, area, std::abs(other - value), [&](Scenario& s) { write(s, other); });
    }
  }

  template <class Enum>
  void choices(const std::string& field, Area area, std::initializer_list<Enum> others,
               Enum& (*place)(Scenario&)) {
    for (const Enum other : others) {
      vary(field, area, 1, [&](Scenario& s) { place(s) = other; });
    }
  }

  void flag(const std::string& field, Area area, bool& (*place)(Scenario&)) {
    vary(field, area, 1, [&](Scenario& s) { place(s) = !place(s); });
  }

  void remove_step(std::size_t index) {
    Scenario changed = model::normalise(remove_steps(scenario_, index, 1));
    if (!model::validate(changed).empty()) return;
    // Farther than any change of one of its numbers by as much.
    const std::int64_t distance = largest(tokens_of(scenario_.steps[index])) + 1;
    add({fmt::format("steps[{}]", index), describe(scenario_.steps[index]), "removed",
         std::move(changed), Area::steps, distance, 0});
  }

  const Scenario& scenario() const { return scenario_; }
  std::vector<Variation> take() { return std::move(variations_); }

 private:
  void add(Variation variation) {
    const bool known =
        std::any_of(variations_.begin(), variations_.end(), [&](const Variation& other) {
          return other.field == variation.field && other.scenario == variation.scenario;
        });
    if (known) return;
    for (const std::string& name : changed_fields(scenario_, variation.scenario)) {
      const bool own = name == variation.field || (variation.other == "removed" && name == "steps");
      // Queries that follow their step's tokens are no change of their own.
      const bool follows = variation.area == Area::steps && parent(name) == parent(variation.field);
      variation.dragged += !own && !follows;
    }
    variations_.push_back(std::move(variation));
  }

  const Scenario& scenario_;
  std::vector<Variation> variations_;
};

void vary_sizes(Collector& c) {
  const Scenario& s = c.scenario();
  c.numbers("batch", Area::sizes, s.batch, 1, {s.batch - 1, s.batch + 1},
            [](Scenario& t, std::int64_t n) { t.batch = n; });
  c.numbers("query_heads", Area::sizes, s.query_heads, 1,
            {s.query_heads - s.kv_heads, s.query_heads + s.kv_heads},
            [](Scenario& t, std::int64_t n) { t.query_heads = n; });
  c.numbers("kv_heads", Area::sizes, s.kv_heads, 1, {s.kv_heads - 1, s.kv_heads + 1},
            [](Scenario& t, std::int64_t n) { t.kv_heads = n; });
  c.numbers("head_size", Area::sizes, s.head_size, 1, {s.head_size / 2, s.head_size * 2, 8},
            [](Scenario& t, std::int64_t n) { t.head_size = n; });
  if (s.op == model::Operator::attention) {
    c.numbers("value_head_size", Area::sizes, s.value_head_size, 1,
              {s.value_head_size / 2, s.value_head_size * 2},
              [](Scenario& t, std::int64_t n) { t.value_head_size = n; });
  }
  using enum model::ElementType;
  c.choices<model::ElementType>(
      "element_type", Area::values, {f32, f16, bf16, f64},
      [](Scenario & t) -> auto& { return t.element_type; });
}

void vary_cache(Collector& c) {
  const Scenario& s = c.scenario();
  const std::int64_t longest = longest_length(s);
  using enum model::LayoutKind;
  c.choices<model::LayoutKind>(
      "cache.layout", Area::cache, {full, block},
      [](Scenario & t) -> auto& { return t.cache.layout; });
  const std::int64_t capacity = s.cache.capacity;
  c.numbers("cache.capacity", Area::cache, capacity, 0,
            {capacity - 1, capacity + 1, capacity == 0 ? longest : capacity * 2, 0},
            [](Scenario& t, std::int64_t n) { t.cache.capacity = n; });
  if (s.op == model::Operator::attention) return;
  const auto write = [](Scenario& t, std::int64_t n) { t.cache.window_size = n; };
  if (s.cache.window_size) {
    const std::int64_t window = *s.cache.window_size;
    c.numbers("cache.window_size", Area::cache, window, 1, {window - 1, window + 1, window * 2},
              write);
    c.vary("cache.window_size", Area::cache, window, [](Scenario& t) {
      t.cache.window_size.reset();
      t.cache.layout = full;
    });
  } else {
    c.numbers("cache.window_size", Area::cache, longest + 1, 1, {longest, longest - 1, 1}, write);
  }
  c.flag("share_buffers", Area::flags, [](Scenario& t) -> bool& { return t.share_buffers; });
}

void vary_flags(Collector& c) {
  const Scenario& s = c.scenario();
  if (s.op == model::Operator::attention) {
    c.flag("causal", Area::flags, [](Scenario& t) -> bool& { return t.causal; });
    c.flag("nonpad_kv_seqlen", Area::flags,
           [](Scenario& t) -> bool& { return t.nonpad_kv_seqlen; });
    using enum model::MaskKind;
    c.choices<model::MaskKind>(
        "mask.kind", Area::flags, {none, boolean, additive},
        [](Scenario & t) -> auto& { return t.mask.kind; });
    c.numbers("mask.rank", Area::flags, s.mask.rank, 2, {2, 3, 4},
              [](Scenario& t, std::int64_t n) { t.mask.rank = static_cast<int>(n); });
    c.numbers("mask.hidden_percent", Area::flags, s.mask.hidden_percent, 0,
              {s.mask.hidden_percent - 1, 0, 50, 100},
              [](Scenario& t, std::int64_t n) { t.mask.hidden_percent = static_cast<int>(n); });
    c.vary("mask.seed", Area::values, 1, [](Scenario& t) { ++t.mask.seed; });
    c.vary("mask.seed", Area::values, 2, [](Scenario& t) { t.mask.seed += 2; });
    c.flag("mask.empty_rows", Area::flags, [](Scenario& t) -> bool& { return t.mask.empty_rows; });
  }
  for (const double scale : {1.0, 0.5}) {
    c.vary("scale", Area::values, 1, [scale](Scenario& t) { t.scale = scale; });
  }
  if (s.scale) c.vary("scale", Area::values, 1, [](Scenario& t) { t.scale.reset(); });
}

void vary_values(Collector& c) {
  const Scenario& s = c.scenario();
  using enum model::FillKind;
  c.choices<model::FillKind>(
      "fill.kind", Area::values, {position_code, position_block, needles, random},
      [](Scenario & t) -> auto& { return t.fill.kind; });
  for (const std::uint64_t more : {1u, 2u}) {
    c.vary("fill.seed", Area::values, more, [more](Scenario& t) { t.fill.seed += more; });
  }
  c.numbers("fill.index", Area::values, s.fill.index, 0, {s.fill.index - 1, s.fill.index + 1},
            [](Scenario& t, std::int64_t n) { t.fill.index = n; });
  using enum model::Poison;
  c.choices<model::Poison>(
      "poison", Area::values, {zero, finite, huge, nan},
      [](Scenario & t) -> auto& { return t.poison; });
  if (s.op == model::Operator::attention) {
    c.numbers("opset", Area::values, s.opset, 23, {23, 24},
              [](Scenario& t, std::int64_t n) { t.opset = static_cast<int>(n); });
  }
}

/// All entries by -1, +1 and doubled; a batch also entry by entry.
void vary_tokens(Collector& c, std::size_t i, const std::string& field) {
  const auto tokens = tokens_of(c.scenario().steps[i]);
  const auto move = [&](std::int64_t by) {
    c.vary(field, Area::steps, std::abs(by), [&](Scenario& t) {
      for (auto& n : tokens_of(t.steps[i])) n = std::max<std::int64_t>(0, n + by);
    });
  };
  move(-1);
  move(1);
  move(largest(tokens));
  if (tokens.size() == 1) return;
  for (std::size_t b = 0; b < tokens.size(); ++b) {
    for (const std::int64_t by : {-1, 1}) {
      c.vary(field, Area::steps, 1, [&](Scenario& t) {
        auto& n = tokens_of(t.steps[i])[b];
        n = std::max<std::int64_t>(0, n + by);
      });
    }
  }
}

void vary_queries(Collector& c, std::size_t i, const std::string& field) {
  const auto& append = std::get<Append>(c.scenario().steps[i]);
  const std::int64_t queries = largest(append.queries);
  const auto write = [i](Scenario& t, std::int64_t n) {
    auto& list = std::get<Append>(t.steps[i]).queries;
    list.assign(list.size(), n);
  };
  if (c.scenario().op == model::Operator::attention) {
    c.numbers(field, Area::steps, queries, 0, {queries - 1, queries + 1, 0}, write);
  } else {
    c.numbers(field, Area::steps, queries, 0, {queries > 0 ? 0 : 1}, write);
  }
}

void vary_steps(Collector& c) {
  const Scenario& s = c.scenario();
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    const std::string name = fmt::format("steps[{}]", i);
    vary_tokens(c, i, name + ".tokens");
    if (const auto* append = std::get_if<Append>(&s.steps[i])) {
      vary_queries(c, i, name + ".queries");
      // A generation tells tokens apart only where a position is written more than once.
      const bool rolled_back = std::any_of(s.steps.begin(), s.steps.end(), [](const auto& step) {
        return std::holds_alternative<Rollback>(step);
      });
      if (rolled_back) {
        c.numbers(
            name + ".generation", Area::steps, append->generation, 0,
            {append->generation - 1, append->generation + 1},
            [i](Scenario& t, std::int64_t n) { std::get<Append>(t.steps[i]).generation = n; });
      }
    }
    if (s.steps.size() > 1) c.remove_step(i);
  }
}

}  // namespace

std::vector<Variation> variations(const Scenario& scenario) {
  Collector collector(scenario);
  vary_sizes(collector);
  vary_cache(collector);
  vary_flags(collector);
  vary_values(collector);
  vary_steps(collector);
  return collector.take();
}

}  // namespace kvcheck::shrinkers
