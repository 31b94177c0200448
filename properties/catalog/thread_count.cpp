// target.thread_count: how many threads work changes no bit.
#include <fmt/format.h>

#include "properties/catalog.h"
#include "properties/draw.h"
#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

constexpr const char* kPromise = "threads_bits";

/// out(n threads) = out(as many as the target likes), for n = 1, 2, 3, 8.
Judgement judge(Case& c) {
  std::vector<Variant> variants;
  for (const int threads : {1, 2, 3, 8}) {
    Variant variant = unchanged(c);
    variant.words = fmt::format("with {} thread{}", threads, threads == 1 ? "" : "s");
    variant.options.threads = threads;
    variants.push_back(variant);
  }
  return judge_variants(c, variants, {});
}

bool turn(Case&, std::vector<Variant>& ways, Draw& draw) {
  const int threads = static_cast<int>(draw.pick({1, 2, 3, 8}));
  for (Variant& way : ways) way.options.threads = threads;
  return true;
}

std::string inapplicable(const model::Scenario&, const kernels::Capabilities& target) {
  return unpromised(target, kPromise);
}

}  // namespace

Property thread_count_property() {
  return {"target.thread_count",
          "1, 2, 3, 8 threads and the target's own choice give the same bits.",
          "partial sums per thread, splits by thread count, merges in order of arrival, races",
          inapplicable,
          judge,
          kPromise,
          {Axis::Run::together, turn, kPromise}};
}

}  // namespace kvcheck::properties
