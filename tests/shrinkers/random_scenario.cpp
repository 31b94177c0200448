// Large random valid scenarios for the tests of the search.
#include "tests/shrinkers/random_scenario.h"

#include <algorithm>
#include <array>
#include <random>

namespace kvcheck::shrinkers::testing {
namespace {

using model::Append;
using model::Past;
using model::Rollback;
using model::Scenario;

/// Draws by remainder: the standard distributions differ between libraries.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed * 0x9e3779b97f4a7c15ull + 1) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(0, 99) < percent; }
  template <class T, std::size_t N>
  T one_of(const std::array<T, N>& choices) {
    return choices[static_cast<std::size_t>(between(0, N - 1))];
  }
  std::vector<std::int64_t> counts(std::int64_t batch, std::int64_t low, std::int64_t high) {
    const bool ragged = chance(60);
    std::vector<std::int64_t> list(static_cast<std::size_t>(batch), between(low, high));
    if (ragged) {
      for (auto& n : list) n = between(low, high);
    }
    return list;
  }

 private:
  std::mt19937_64 engine_;
};

void draw_sizes(Dice& dice, Scenario& s) {
  s.batch = dice.between(1, 4);
  s.kv_heads = dice.between(1, 8);
  s.query_heads = s.kv_heads * dice.between(1, 4);
  s.head_size = dice.one_of(std::array<std::int64_t, 7>{1, 8, 16, 24, 64, 80, 128});
  s.value_head_size = dice.chance(50) ? s.head_size : dice.between(1, 64);
  s.element_type = dice.one_of(std::array{model::ElementType::f32, model::ElementType::f16,
                                          model::ElementType::bf16, model::ElementType::f64});
}

void draw_cache(Dice& dice, Scenario& s) {
  const std::int64_t window = dice.between(1, 24);
  if (dice.chance(60)) {
    s.cache = {model::LayoutKind::block, window + dice.between(0, 16), window};
  } else {
    s.cache.capacity = dice.chance(50) ? 0 : dice.between(1, 200);
    if (dice.chance(50)) s.cache.window_size = window;
  }
  s.share_buffers = dice.chance(70);
}

void draw_attention(Dice& dice, Scenario& s) {
  s.opset = dice.chance(50) ? 23 : 24;
  s.causal = dice.chance(70);
  s.nonpad_kv_seqlen = dice.chance(30);
  s.mask.kind = dice.one_of(
      std::array{model::MaskKind::none, model::MaskKind::boolean, model::MaskKind::additive});
  s.mask.rank = static_cast<int>(dice.between(2, 4));
  s.mask.hidden_percent = static_cast<int>(dice.between(0, 100));
  s.mask.empty_rows = dice.chance(30);
  s.mask.seed = static_cast<std::uint64_t>(dice.between(0, 1000));
}

void draw_steps(Dice& dice, Scenario& s) {
  if (dice.chance(40)) s.steps.push_back(Past{dice.counts(s.batch, 0, 30)});
  const std::int64_t count = dice.between(2, 12);
  std::int64_t rollbacks = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (dice.chance(25)) {
      s.steps.push_back(Rollback{dice.counts(s.batch, 1, 12)});
      ++rollbacks;
      continue;
    }
    Append append;
    append.tokens = dice.counts(s.batch, 1, 40);
    append.queries = s.op == model::Operator::gqa ? append.tokens : dice.counts(s.batch, 1, 10);
    if (dice.chance(15)) append.queries.assign(append.queries.size(), 0);
    append.generation = rollbacks;
    s.steps.push_back(std::move(append));
  }
}

}  // namespace

Scenario random_scenario(model::Operator op, std::uint64_t seed) {
  Dice dice(seed);
  Scenario s;
  s.op = op;
  draw_sizes(dice, s);
  if (op == model::Operator::gqa) {
    draw_cache(dice, s);
  } else {
    draw_attention(dice, s);
    s.cache.capacity = s.nonpad_kv_seqlen ? dice.between(1, 200) : 0;
  }
  draw_steps(dice, s);
  if (dice.chance(30)) s.scale = 0.25;
  s.fill.kind = dice.one_of(
      std::array{model::FillKind::random, model::FillKind::needles, model::FillKind::position_code,
                 model::FillKind::position_block, model::FillKind::position_digits});
  s.fill.seed = static_cast<std::uint64_t>(dice.between(0, 1000));
  s.fill.index = dice.between(0, 3);
  s.poison = dice.one_of(std::array{model::Poison::zero, model::Poison::finite, model::Poison::huge,
                                    model::Poison::nan});
  s = model::normalise(std::move(s));
  // A scenario whose steps all cancelled out gets one, so that every seed gives a valid one.
  if (s.steps.empty()) s.steps.push_back(Append{{1}, {1}, 0});
  return model::normalise(std::move(s));
}

Scenario plain_scenario(std::vector<model::Step> steps) {
  Scenario s;
  s.head_size = 1;
  s.value_head_size = 1;
  s.fill.kind = model::FillKind::position_code;
  s.poison = model::Poison::zero;
  s.steps = std::move(steps);
  s.batch =
      std::visit([](const auto& step) { return static_cast<std::int64_t>(step.tokens.size()); },
                 s.steps.at(0));
  return s;
}

std::string steps_text(const Scenario& scenario) {
  std::string text;
  for (const model::Step& step : scenario.steps) {
    text += (text.empty() ? "" : "; ") + describe(step);
  }
  return text;
}

}  // namespace kvcheck::shrinkers::testing
