// heads.permutation: the order of heads changes nothing but the order of the answers.
#include <algorithm>
#include <numeric>

#include "properties/catalog.h"
#include "properties/draw.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kPromise = "order_bits";

std::vector<std::int64_t> reversed(std::int64_t count) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

/// KV heads in the order `kv`, each with its query heads, which stand in the order `group`.
std::shared_ptr<const TensorChange> heads(const std::vector<std::int64_t>& kv,
                                          const std::vector<std::int64_t>& group) {
  std::vector<std::int64_t> query;
  for (const std::int64_t head : kv) {
    for (const std::int64_t member : group) {
      query.push_back(head * static_cast<std::int64_t>(group.size()) + member);
    }
  }
  return reorder_heads(std::move(query), kv);
}

std::vector<std::int64_t> in_order(std::int64_t count) {
  std::vector<std::int64_t> order = reversed(count);
  std::reverse(order.begin(), order.end());
  return order;
}

/// The first query head of each group behind the others, which no reversal gives.
std::vector<std::int64_t> rotated(std::int64_t count) {
  std::vector<std::int64_t> order = in_order(count);
  std::rotate(order.begin(), order.begin() + 1, order.end());
  return order;
}

/// out(perm(heads)) = perm(out(heads)), for every perm that keeps each query head's KV head.
Judgement judge(Case& c) {
  const std::int64_t kv = c.scenario().kv_heads, group = c.scenario().query_heads / kv;
  std::vector<Variant> variants;
  const auto add = [&](const char* words, const auto& kv_order, const auto& group_order) {
    variants.push_back(unchanged(c));
    variants.back().words = words;
    variants.back().options.changes = {heads(kv_order, group_order)};
  };
  if (kv > 1) add("with the KV heads from last to first", reversed(kv), in_order(group));
  if (group > 1) {
    add("with the query heads of each KV head from last to first", in_order(kv), reversed(group));
  }
  if (group > 2) {
    add("with the first query head of each KV head last", in_order(kv), rotated(group));
  }
  VariantJudging judging;
  judging.bitwise = c.capabilities().has(kPromise);
  judging.rows_suffice = true;
  if (!judging.bitwise) judging.kind = Kind::influence;
  return judge_variants(c, variants, judging);
}

bool turn(Case& c, std::vector<Variant>& ways, Draw& draw) {
  const std::int64_t kv = c.scenario().kv_heads, group = c.scenario().query_heads / kv;
  const auto change = heads(reversed(kv), draw.percent(50) ? reversed(group) : rotated(group));
  for (Variant& way : ways) way.options.changes.push_back(change);
  return true;
}

std::string inapplicable(const model::Scenario& scenario, const kernels::Capabilities&) {
  return scenario.query_heads > 1 ? "" : "one query head has one order";
}

}  // namespace

Property heads_permutation_property() {
  return {"heads.permutation",
          "KV heads with their query heads, and query heads of one KV head, in another order give "
          "the same rows and outputs in that order: equal bits where the target promises them, "
          "else within twice the bound.",
          "head map, strides of heads, sinks, scales or masks of another head, blocks of heads "
          "that share what is theirs",
          inapplicable,
          judge,
          "",
          {Axis::Run::together, turn, kPromise}};
}

}  // namespace kvcheck::properties
