// Random scenarios for tests: wild ones that break rules, and valid ones of small size.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <vector>

#include "model/scenario.h"

namespace kvcheck::model {

/// Draws scenarios; the same seed gives the same sequence on every machine.
class ScenarioSource {
 public:
  /// With `features` scenarios use everything that the operators have, otherwise what every target
  /// knows.
  explicit ScenarioSource(std::uint64_t seed, bool features = false)
      : engine_(seed), features_(features) {}

  /// In [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }

  bool chance(int percent) { return between(1, 100) <= percent; }

  /// Any field may be anything; most are small enough to be nearly valid.
  Scenario wild() {
    Scenario s = small();
    const std::int64_t changes = between(1, 6);
    for (std::int64_t i = 0; i < changes; ++i) mutate(s);
    return s;
  }

  /// Valid by repair of a small random scenario.
  Scenario valid() { return normalise(small()); }

  /// A valid scenario in which a few small things are different; often still valid.
  Scenario nudged() {
    Scenario s = valid();
    const Scenario other = small();
    for (std::int64_t n = between(1, 3); n > 0; --n) nudge(s, other);
    return s;
  }

  /// Small numbers everywhere; rules may be broken.
  Scenario small() {
    Scenario s;
    s.op = chance(50) ? Operator::gqa : Operator::attention;
    s.opset = static_cast<int>(between(23, 24));
    s.batch = between(1, 3);
    s.kv_heads = between(1, 3);
    s.query_heads = s.kv_heads * between(1, 3);
    s.head_size = between(1, 16);
    s.value_head_size = between(1, 16);
    s.element_type = static_cast<ElementType>(between(0, 3));
    s.cache.layout = chance(40)   ? LayoutKind::block
                     : chance(40) ? LayoutKind::full
                                  : static_cast<LayoutKind>(between(2, 5));
    s.cache.capacity = chance(30) ? 0 : between(1, 12);
    if (chance(70)) s.cache.window_size = between(1, 8);
    if (s.cache.layout == LayoutKind::sinks || chance(5)) s.cache.sink_tokens = between(0, 4);
    if (s.cache.layout == LayoutKind::paged || chance(5)) s.cache.page_size = between(1, 5);
    s.share_buffers = chance(50);
    s.causal = chance(70);
    s.nonpad_kv_seqlen = chance(40);
    if (chance(50)) {
      s.mask = {chance(50) ? MaskKind::boolean : MaskKind::additive,
                static_cast<int>(between(2, 4)), static_cast<int>(between(0, 100)), engine_(),
                chance(30)};
    }
    if (chance(50)) s.scale = static_cast<double>(engine_()) / 1e19;
    s.fill = {static_cast<FillKind>(between(0, 3)), engine_(), between(0, 3)};
    s.poison = static_cast<Poison>(between(0, 3));
    if (features_) add_features(s);
    if (chance(30)) s.steps.push_back(Past{counts(s.batch, 9)});
    for (std::int64_t n = between(0, 8); n > 0; --n) s.steps.push_back(step(s));
    return s;
  }

 private:
  void add_features(Scenario& s) {
    s.opset = static_cast<int>(between(23, 25));
    if (chance(20)) s.cache.window_size = between(0, 1);
    if (chance(30)) s.right_window_size = between(0, 4);
    s.input_rank = static_cast<int>(between(3, 4));
    s.packed_qkv = chance(20);
    s.mask.one_entry = chance(20);
    s.mask.one_head = chance(20);
    s.mask.one_query = chance(20);
    if (chance(20)) s.mask.rank = 1;
    if (chance(20)) s.mask.missing_columns = between(0, 3);
    if (chance(30)) s.softcap = static_cast<double>(between(1, 40)) / 8;
    s.smooth_softmax = chance(20);
    s.head_sink = chance(20);
    if (chance(10)) s.fill.sink_logit = static_cast<double>(between(-8, 80)) / 8;
    if (chance(30)) {
      s.rotary = RotarySpec{chance(50), between(0, s.head_size), {}};
      if (chance(50))
        s.rotary->position_ids = PositionIds{between(0, 5), between(0, 3), between(0, 2)};
    }
    if (chance(20)) s.qk_norm = QkNormSpec{1e-3};
    s.qk_output = static_cast<QkOutput>(between(0, 4));
    if (chance(20)) s.softmax_precision = static_cast<ElementType>(between(0, 3));
    if (chance(30)) {
      s.cache.quantisation = {static_cast<QuantisationKind>(between(1, 3)), chance(50)};
    }
    if (chance(10)) s.fill.kind = FillKind::literal;
    if (chance(20)) {
      s.launch = LaunchSpec{
          static_cast<LaunchOrder>(between(0, 4)), static_cast<std::uint64_t>(between(0, 9)),
          static_cast<LaunchKernel>(between(0, 4)), 16 * between(-1, 70), between(-1, 600)};
    }
  }

  std::vector<std::int64_t> counts(std::int64_t batch, std::int64_t largest) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(batch));
    const bool same = chance(60);
    for (auto& n : out) n = between(0, largest);
    if (same) out.assign(out.size(), out.front());
    return out;
  }

  Step step(const Scenario& s) {
    if (chance(25)) return Rollback{counts(s.batch, 4)};
    Append append{counts(s.batch, 5), {}, chance(80) ? 0 : between(0, 4)};
    append.queries = chance(80) ? append.tokens : counts(s.batch, 3);
    return append;
  }

  std::int64_t hostile() {
    constexpr std::int64_t kChoices[] = {std::numeric_limits<std::int64_t>::min(),
                                         -1,
                                         0,
                                         1,
                                         5,
                                         4096,
                                         4097,
                                         1LL << 28,
                                         kMaxLength,
                                         kMaxLength + 1,
                                         1000000000000000000,
                                         std::numeric_limits<std::int64_t>::max()};
    return kChoices[between(0, std::size(kChoices) - 1)];
  }

  void mutate(Scenario& s) {
    switch (between(0, 17)) {
      case 0:
        s.opset = static_cast<int>(between(-1, 30));
        break;
      case 1:
        s.batch = hostile();
        break;
      case 2:
        s.query_heads = hostile();
        break;
      case 3:
        s.kv_heads = hostile();
        break;
      case 4:
        s.head_size = hostile();
        break;
      case 5:
        s.value_head_size = hostile();
        break;
      case 6:
        s.cache.capacity = hostile();
        break;
      case 7:
        s.cache.window_size = hostile();
        break;
      case 8:
        s.mask.rank = static_cast<int>(between(-1, 9));
        break;
      case 9:
        s.mask.hidden_percent = static_cast<int>(between(-200, 200));
        break;
      case 10:
        s.scale = chance(50) ? -1.0 : std::numeric_limits<double>::quiet_NaN();
        break;
      case 11:
        s.fill.index = hostile();
        break;
      case 12:
        s.op = s.op == Operator::gqa ? Operator::attention : Operator::gqa;
        break;
      case 13:
        s.steps.clear();
        break;
      case 14:
        s.steps.push_back(Past{{hostile()}});
        break;
      case 15:
        s.cache.sink_tokens = hostile();
        break;
      case 16:
        s.cache.page_size = hostile();
        break;
      default:
        mutate_step(s);
        break;
    }
  }

  void mutate_feature(Scenario& s) {
    const double broken = chance(50) ? -1.0 : std::numeric_limits<double>::quiet_NaN();
    switch (between(0, 7)) {
      case 0:
        s.rotary = RotarySpec{false, hostile(), PositionIds{hostile(), hostile(), hostile()}};
        break;
      case 1:
        s.right_window_size = hostile();
        break;
      case 2:
        s.mask.missing_columns = hostile();
        break;
      case 3:
        s.softcap = broken;
        break;
      case 4:
        s.qk_norm = QkNormSpec{broken};
        break;
      case 5:
        s.input_rank = static_cast<int>(between(-1, 9));
        break;
      case 6:
        s.fill.kind = FillKind::literal;
        break;
      default:
        s.mask.kind = static_cast<MaskKind>(between(0, 2));
        s.mask.one_entry = s.mask.one_head = s.mask.one_query = true;
        break;
    }
  }

  /// Takes one field from `other`, or moves one count by one.
  void nudge(Scenario& s, const Scenario& other) {
    switch (between(0, 12)) {
      case 0:
        s.cache.capacity += between(-1, 2);
        break;
      case 12:
        (chance(50) ? s.cache.sink_tokens : s.cache.page_size) += between(-1, 1);
        break;
      case 1:
        s.cache.window_size = other.cache.window_size;
        break;
      case 2:
        s.mask = other.mask;
        break;
      case 3:
        s.fill = other.fill;
        break;
      case 4:
        s.scale = other.scale;
        break;
      case 5:
        s.poison = other.poison;
        break;
      case 6:
        s.share_buffers = other.share_buffers;
        break;
      case 7:
        s.causal = other.causal;
        break;
      case 8:
        s.value_head_size = other.value_head_size;
        break;
      case 9:
        s.query_heads = other.query_heads;
        break;
      default:
        nudge_step(s);
    }
  }

  void nudge_step(Scenario& s) {
    Step& step = s.steps[static_cast<std::size_t>(
        between(0, static_cast<std::int64_t>(s.steps.size()) - 1))];
    const std::int64_t by = between(-1, 1);
    const auto at = static_cast<std::size_t>(between(0, s.batch - 1));
    const bool all = chance(50);
    const auto move = [&](std::vector<std::int64_t>& counts) {
      for (std::size_t b = 0; b < counts.size(); ++b) counts[b] += all || b == at ? by : 0;
    };
    if (auto* append = std::get_if<Append>(&step)) {
      move(append->tokens);
      if (chance(70)) move(append->queries);
      append->generation = between(0, 3);
    } else if (auto* past = std::get_if<Past>(&step)) {
      move(past->tokens);
    } else {
      move(std::get<Rollback>(step).tokens);
    }
  }

  void mutate_step(Scenario& s) {
    if (s.steps.empty()) return;
    Step& step = s.steps[static_cast<std::size_t>(
        between(0, static_cast<std::int64_t>(s.steps.size()) - 1))];
    if (auto* append = std::get_if<Append>(&step)) {
      auto& list = chance(50) ? append->tokens : append->queries;
      if (chance(30)) list.clear();
      list.push_back(hostile());
      if (chance(30)) append->generation = hostile();
    } else if (auto* past = std::get_if<Past>(&step)) {
      past->tokens = {hostile(), hostile()};
    } else {
      std::get<Rollback>(step).tokens.front() = hostile();
    }
  }

  std::mt19937_64 engine_;
  bool features_;
};

}  // namespace kvcheck::model
