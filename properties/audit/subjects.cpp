// From the lists of faults and wrong models to targets.
#include "properties/audit/subjects.h"

#include <stdexcept>
#include <string_view>

#include "kernels/registry.h"
#include "model/wrong_models.h"
#include "properties/audit/modelled_target.h"

namespace kvcheck::properties {
namespace {

std::unique_ptr<kernels::Target> made(const std::string& name) {
  auto target = kernels::make_target(name, kernels::RegistryOptions::from_environment());
  if (auto* unavailable = std::get_if<kernels::Unavailable>(&target)) {
    throw std::runtime_error(name + ": " + unavailable->reason);
  }
  return std::move(std::get<std::unique_ptr<kernels::Target>>(target));
}

struct KindRow {
  std::string_view prefix, kind;
};

/// The first row that the name begins with counts.
constexpr KindRow kKinds[] = {
    {"causal.", "mask origin"},
    {"length.", "length confusion"},
    {"window.evicted_before_read", "staging"},
    {"window.", "window edge"},
    {"right_window.", "window edge"},
    {"mask.empty_row", "empty rows"},
    {"mask.values_ignored", "bias"},
    {"mask.hides_nothing", "mask tensor"},
    {"mask.", "mask tensor"},
    {"bias.", "bias"},
    {"rows.stale_after_rollback", "rollback"},
    {"rows.of_", "batch"},
    {"rows.", "layout"},
    {"heads.", "head map"},
    {"scale.", "scale"},
    {"softcap.", "softcap"},
    {"sink.", "sinks"},
    {"sum.padding", "vector tail"},
    {"sum.last_tile_lost", "vector tail"},
    {"sum.missing_rescale", "online softmax"},
    {"output.", "output"},
    {"rotary.", "rotary"},
    {"norm.", "norm"},
    {"quantisation.", "quantisation"},
};

}  // namespace

std::string wrong_model_kind(std::string_view name) {
  for (const KindRow& row : kKinds) {
    if (name.starts_with(row.prefix)) return std::string(row.kind);
  }
  return "";
}

std::vector<Subject> audit_subjects(bool one_row, std::int64_t context) {
  std::vector<Subject> subjects;
  for (const kernels::FaultInfo& fault : kernels::list_faults()) {
    if (one_row && !fault.one_row) continue;
    if (context > 0 && fault.from_length > context) continue;
    const std::string name = fault.target + "+" + fault.name + (one_row ? "@row" : "");
    subjects.push_back({name, "kernel", fault.kind, fault.statement, [name] { return made(name); },
                        fault.from_length});
  }
  for (const model::WrongModel& model : model::wrong_models()) {
    subjects.push_back({"model+" + std::string(model.name), "wrong-model",
                        wrong_model_kind(model.name), std::string(model.statement),
                        [&model, one_row] { return make_modelled_target(&model, one_row); }, 1});
  }
  return subjects;
}

std::vector<Subject> healthy_subjects() {
  std::vector<Subject> subjects;
  for (const kernels::TargetInfo& info :
       kernels::list_targets(kernels::RegistryOptions::from_environment())) {
    const bool has_faults = info.name.starts_with("cpu-") || info.name.starts_with("cuda-simt");
    if (!has_faults || !info.available) continue;
    subjects.push_back({info.name, "kernel", "", "", [name = info.name] { return made(name); }, 1});
  }
  subjects.push_back(
      {"model", "wrong-model", "", "", [] { return make_modelled_target(nullptr); }, 1});
  return subjects;
}

}  // namespace kvcheck::properties
