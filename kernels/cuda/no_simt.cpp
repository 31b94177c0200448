// What a build without the SIMT runtime says of the targets that need it.
#include "kernels/cuda/cuda_simt.h"

namespace kvcheck::kernels {

std::string cuda_simt_problem() {
  return "is not in a build for sanitizers, whose hooks the SIMT runtime needs; use another build";
}

std::unique_ptr<Target> make_cuda_simt() { return nullptr; }
std::unique_ptr<Target> make_cuda_simt_quantised() { return nullptr; }
std::vector<FaultInfo> cuda_simt_faults() { return {}; }
std::unique_ptr<Target> make_cuda_simt_planted(std::string_view, std::string_view) {
  return nullptr;
}

}  // namespace kvcheck::kernels
