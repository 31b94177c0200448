// Faults in what a target takes, declines and hands out.
#pragma once

#include <memory>

#include "kernels/cpu/planted/faults.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// `kernel` behind a check of requests, or a hand-out of answers, with that fault; `kernel` itself
/// where the fault lies elsewhere.
std::unique_ptr<Target> distort_answers(Fault fault, std::unique_ptr<Target> kernel);

}  // namespace kvcheck::kernels
