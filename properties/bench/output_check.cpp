// One scenario for each query head that is looked at: its keys and values, spelled out.
#include "properties/bench/output_check.h"

#include <algorithm>
#include <set>

#include "model/oracle.h"
#include "properties/convert.h"

namespace kvcheck::properties {
namespace {

using kernels::bench::data_row;
using kernels::bench::DataTensor;
using kernels::bench::Problem;

constexpr std::int64_t kLongCache = 8192;  // From here on fewer heads are looked at.

model::LiteralTensor rows(const Problem& problem, DataTensor tensor, std::int64_t head,
                          std::int64_t begin, std::int64_t end) {
  model::LiteralTensor found{{1, end - begin, 1, problem.head_size}, {}};
  for (std::int64_t token = begin; token < end; ++token) {
    const std::vector<double> row = data_row(problem, tensor, head, token);
    found.values.insert(found.values.end(), row.begin(), row.end());
  }
  return found;
}

/// Query `query` of one head, asked of a full cache with the problem's window.
model::Scenario scenario_of(const Problem& problem, std::int64_t head, std::int64_t query) {
  model::Scenario scenario;
  scenario.head_size = scenario.value_head_size = problem.head_size;
  if (problem.element_type == "f16") scenario.element_type = model::ElementType::f16;
  if (problem.element_type == "bf16") scenario.element_type = model::ElementType::bf16;
  if (problem.window > 0) scenario.cache.window_size = problem.window;
  scenario.fill.kind = model::FillKind::literal;
  const std::int64_t kv_head = head / (problem.query_heads / problem.kv_heads);
  if (query > 0) {
    model::Past past{{query}, {}};
    past.tensors.k = rows(problem, DataTensor::key, kv_head, 0, query);
    past.tensors.v = rows(problem, DataTensor::value, kv_head, 0, query);
    scenario.steps.emplace_back(std::move(past));
  }
  model::Append append{{1}, {1}, 0, {}};
  append.tensors.q = rows(problem, DataTensor::query, head, query, query + 1);
  append.tensors.k = rows(problem, DataTensor::key, kv_head, query, query + 1);
  append.tensors.v = rows(problem, DataTensor::value, kv_head, query, query + 1);
  scenario.steps.emplace_back(std::move(append));
  return scenario;
}

}  // namespace

double worst_bound_ratio(const Problem& problem, kernels::bench::TimedStep& step,
                         const kernels::Capabilities& target) {
  const std::int64_t last = problem.tokens() - 1, first_position = problem.length - last - 1;
  std::set<std::int64_t> heads = {0, problem.query_heads - 1};
  if (problem.length <= kLongCache) heads.insert(problem.query_heads / 2 + 1);
  heads.erase(problem.query_heads);
  double worst = 0;
  for (const std::int64_t query : std::set<std::int64_t>{0, last / 2, last}) {
    const std::vector<double> output = step.output(query);
    for (const std::int64_t head : heads) {
      const model::Scenario scenario = scenario_of(problem, head, first_position + query);
      model::Oracle oracle(scenario, arithmetic_profile(target, scenario));
      for (std::int64_t lane = 0; lane < problem.head_size; ++lane) {
        const double observed = output[static_cast<std::size_t>(head * problem.head_size + lane)];
        worst =
            std::max(worst, oracle.bound_ratio(scenario.steps.size() - 1, 0, 0, 0, lane, observed));
      }
    }
  }
  return worst;
}

}  // namespace kvcheck::properties
