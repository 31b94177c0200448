// Which kernel a planted fault is planted in.
#include "kernels/cpu/planted/planted_target.h"

#include <algorithm>
#include <string>

#include "kernels/cpu/flash/cpu_flash.h"
#include "kernels/cpu/naive/cpu_naive.h"
#include "kernels/cpu/planted/answer_mistakes.h"
#include "kernels/cpu/planted/faults.h"
#include "kernels/cpu/planted/one_row.h"

namespace kvcheck::kernels {
namespace {

std::unique_ptr<Target> kernel_with(std::string_view target, Fault fault, std::string name) {
  const std::string_view kind = target.ends_with("-q8")   ? "int8"
                                : target.ends_with("-q4") ? "int4"
                                                          : "none";
  auto kernel = target.starts_with("cpu-flash") ? make_cpu_flash(fault, kind, std::move(name))
                                                : make_cpu_naive(fault, kind, std::move(name));
  return distort_answers(fault, std::move(kernel));
}

}  // namespace

std::unique_ptr<Target> make_planted(std::string_view target, std::string_view fault,
                                     bool one_row) {
  const auto& faults = planted_faults();
  const auto planted = std::find_if(faults.begin(), faults.end(), [&](const FaultInfo& info) {
    return info.target == target && info.name == fault;
  });
  if (planted == faults.end() || (one_row && !planted->one_row)) return nullptr;
  const std::string name = std::string(target) + "+" + std::string(fault);
  auto mistaken = kernel_with(target, *fault_of(target, fault), name);
  if (!one_row) return mistaken;
  return make_one_row(kernel_with(target, Fault::none, name), std::move(mistaken));
}

}  // namespace kvcheck::kernels
