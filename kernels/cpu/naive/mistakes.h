// What each planted fault does to one row of cpu-naive's sums.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/naive/naive_attention.h"
#include "kernels/cpu/planted/mistakes.h"

namespace kvcheck::kernels {

/// Keys of one query, ascending. `live` = rows that hold live positions, `rows` = all of them.
void distort_keys(Fault fault, std::int64_t live, std::int64_t rows, std::vector<SeenKey>& keys);

/// A logit before the softmax.
double distort_logit(Fault fault, double logit, double softcap);

/// A weight on its way to the values.
double distort_weight(Fault fault, double weight);

}  // namespace kvcheck::kernels
