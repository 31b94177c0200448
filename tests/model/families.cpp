// The families, each a few lines from a common start.
#include "tests/model/families.h"

#include <algorithm>
#include <cmath>

namespace kvcheck::model {
namespace {

using Counts = std::vector<std::int64_t>;

Append asks(const Counts& tokens) { return {tokens, tokens, 0}; }
Append fills(const Counts& tokens) { return {tokens, Counts(tokens.size(), 0), 0}; }

Scenario gqa(FillSpec fill, ElementType type) {
  Scenario s;
  s.query_heads = 4;
  s.kv_heads = 2;
  s.head_size = s.value_head_size = 16;
  s.element_type = type;
  s.fill = fill;
  return s;
}

Scenario attention(FillSpec fill, ElementType type, int opset) {
  Scenario s = gqa(fill, type);
  s.op = Operator::attention;
  s.opset = opset;
  s.value_head_size = 20;
  return s;
}

/// A windowed cache with W = n that has evicted, and a step of three tokens.
Scenario windowed(std::int64_t n, FillSpec fill, ElementType type) {
  Scenario s = gqa(fill, type);
  s.cache = {LayoutKind::block, n + 3, n, 0, 0};
  s.steps = {Past{{3 * n + 7}}, asks({1}), asks({3}), asks({1})};
  return s;
}

void add_gqa(std::vector<Family>& out, std::int64_t n, FillSpec fill, ElementType type) {
  Scenario decode = gqa(fill, type);
  decode.steps = {Past{{std::max<std::int64_t>(1, n - 3)}}, asks({3}), asks({1})};
  out.push_back({"decode", decode});
  out.push_back({"window", windowed(n, fill, type)});
  Scenario staged = windowed(n, fill, type);
  staged.cache.capacity = n;
  staged.steps = {Past{{2 * n}}, asks({3})};
  out.push_back({"staged", staged});
  Scenario rollback = gqa(fill, type);
  rollback.steps = {Past{{n}}, asks({2}), Rollback{{2}}, Append{{2}, {2}, 1}};
  out.push_back({"rollback", rollback});
  Scenario ragged = gqa(fill, type);
  ragged.batch = 2;
  ragged.steps = {Past{{n, n / 2 + 1}}, asks({1, 1})};
  out.push_back({"ragged", ragged});
  Scenario bias = windowed(n, fill, type);
  bias.mask = {MaskKind::additive, 4, 20, 5, false};
  bias.softcap = 3;
  out.push_back({"bias", bias});
  Scenario sink = decode;
  sink.head_sink = true;
  sink.fill.sink_logit = std::round(std::log(static_cast<double>(n)) * 8) / 8;
  sink.scale = 0.2;
  out.push_back({"sink", sink});
  Scenario rotary = windowed(n, fill, type);
  rotary.rotary = RotarySpec{};
  // Keys of a past are turned by whoever put them there, so the window is filled by steps; the
  // last ones evict, and their queries see keys that were stored before.
  rotary.steps = {fills({n + 2}), asks({1}), asks({1}), asks({2})};
  out.push_back({"rotary", rotary});
  Scenario ids = gqa(fill, type);
  ids.batch = 2;
  ids.rotary = RotarySpec{true, 8, PositionIds{1, 2, 1}};
  ids.steps = {fills({n, n}), asks({1, 1})};
  out.push_back({"position_ids", ids});
  Scenario lengths = ids;
  lengths.rotary->position_ids.reset();
  lengths.steps = {fills({n, n / 2 + 1}), asks({1, 1})};
  out.push_back({"rotary_ragged", lengths});
  Scenario norm = decode;
  norm.qk_norm = QkNormSpec{1e-3};
  norm.steps = {fills({n}), asks({1})};
  out.push_back({"norm", norm});
  Scenario quantised = decode;
  quantised.cache.quantisation = {QuantisationKind::int4, true};
  quantised.steps = {fills({n}), asks({1})};
  out.push_back({"int4", quantised});
}

void add_attention(std::vector<Family>& out, std::int64_t n, FillSpec fill, ElementType type) {
  Scenario past = attention(fill, type, 23);
  past.steps = {Past{{n - 1}}, Append{{2}, {1}, 0}, Append{{1}, {3}, 0}};
  past.scale = 0.3;
  out.push_back({"past", past});
  Scenario nonpad = attention(fill, type, 24);
  nonpad.batch = 2;
  nonpad.nonpad_kv_seqlen = true;
  nonpad.cache.capacity = n + 5;
  nonpad.steps = {Append{{n, 2}, {3, 3}, 0}};
  out.push_back({"nonpad", nonpad});
  Scenario open = nonpad;
  open.causal = false;
  out.push_back({"nonpad_open", open});
  Scenario boolean = attention(fill, type, 23);
  boolean.batch = 2;
  boolean.mask = {MaskKind::boolean, 4, 30, 5, true};
  boolean.steps = {Past{{n, n}}, Append{{2, 2}, {3, 3}, 0}};
  out.push_back({"boolean_mask", boolean});
  Scenario rank3 = boolean;
  rank3.mask.rank = 3;
  out.push_back({"rank_3_mask", rank3});
  Scenario additive = boolean;
  additive.mask.kind = MaskKind::additive;
  additive.scale = 0.3;
  out.push_back({"additive_mask", additive});
  Scenario right = attention(fill, type, 25);
  right.causal = false;
  right.cache.window_size = std::max<std::int64_t>(1, n / 2);
  right.right_window_size = n - n / 2;
  right.query_heads = right.kv_heads = 1;
  right.steps = {Past{{2 * n}}, Append{{n + 4}, {3}, 0}};
  out.push_back({"right_window", right});
}

}  // namespace

std::vector<Family> families(std::int64_t n, FillSpec fill, ElementType type) {
  std::vector<Family> out;
  add_gqa(out, n, fill, type);
  add_attention(out, n, fill, type);
  return out;
}

}  // namespace kvcheck::model
