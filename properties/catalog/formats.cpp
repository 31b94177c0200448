// cache.shared_buffers, input.packed, input.rank_three: the same case handed over in another
// format.
//
// out(past and present in one buffer) = out(each in its own); out([Q|K|V] as one tensor) =
// out(Q, K, V); out((B,S,N*H)) = out((B,N,S,H)).
#include "properties/catalog.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

using model::Scenario;

constexpr const char* kPromise = "format_bits";

/// One choice of two that a scenario makes.
struct Buffers {
  static void flip(Scenario& s) { s.share_buffers = !s.share_buffers; }
  static const char* other(const Scenario& s) {
    return s.share_buffers ? "with separate buffers" : "with shared buffers";
  }
};

struct Packing {
  static void flip(Scenario& s) { s.packed_qkv = !s.packed_qkv; }
  static const char* other(const Scenario& s) {
    return s.packed_qkv ? "with query, key and value apart" : "with packed_qkv";
  }
};

struct Rank {
  static void flip(Scenario& s) { s.input_rank = s.input_rank == 4 ? 3 : 4; }
  static const char* other(const Scenario& s) {
    return s.input_rank == 4 ? "with inputs of rank 3" : "with inputs of rank 4";
  }
};

template <class Choice>
Judgement judge(Case& c) {
  Variant other = unchanged(c);
  Choice::flip(other.scenario);
  other.words = Choice::other(c.scenario());
  VariantJudging judging;
  judging.bitwise = c.capabilities().has(kPromise);
  judging.rows_suffice = true;
  if (!judging.bitwise) judging.kind = Kind::influence;
  return judge_variants(c, {other}, judging);
}

template <class Choice>
bool turn(Case&, std::vector<Variant>& ways, Draw&) {
  for (Variant& way : ways) Choice::flip(way.scenario);
  return true;
}

template <class Choice>
Axis axis() {
  return {Axis::Run::together, turn<Choice>, kPromise};
}

std::string without_buffers(const Scenario& scenario, const kernels::Capabilities& target) {
  if (scenario.op != model::Operator::gqa) return "the operator has no shared buffers";
  return target.has("separate_buffers") ? "" : "the target takes shared buffers alone";
}

std::string without_packing(const Scenario& scenario, const kernels::Capabilities& target) {
  if (scenario.op != model::Operator::gqa) return "the operator packs nothing";
  return unpromised(target, "packed_qkv");
}

std::string without_rank(const Scenario& scenario, const kernels::Capabilities& target) {
  if (scenario.op != model::Operator::attention) return "the operator has inputs of one rank";
  return unpromised(target, "input_rank_3");
}

}  // namespace

Property shared_buffers_property() {
  return {"cache.shared_buffers",
          "Past and present in one buffer or in two give the same rows and outputs: equal bits "
          "where the target promises them, else within twice the bound.",
          "rows not copied, or copied from where they are overwritten; aliasing; a compaction in "
          "one of the two alone",
          without_buffers,
          judge<Buffers>,
          "",
          axis<Buffers>()};
}

Property packed_property() {
  return {"input.packed",
          "Query, key and value in one tensor or in three give the same rows and outputs: equal "
          "bits where the target promises them, else within twice the bound.",
          "offsets of keys and values behind queries, strides of a packed row, heads counted twice",
          without_packing,
          judge<Packing>,
          "",
          axis<Packing>()};
}

Property rank_three_property() {
  return {"input.rank_three",
          "Inputs of rank 3 and of rank 4 give the same rows and outputs: equal bits where the "
          "target promises them, else within twice the bound.",
          "transposes left out or done twice, head sizes derived from the wrong extent",
          without_rank,
          judge<Rank>,
          "",
          axis<Rank>()};
}

}  // namespace kvcheck::properties
