// What each planted fault does to one row of cpu-naive's sums.
#include "kernels/cpu/naive/mistakes.h"

#include <cmath>
#include <utility>

#include "kernels/cpu/element.h"

namespace kvcheck::kernels {
namespace {

double rounded_to(ElementType type, double value) {
  std::byte element[8];
  encode_element(type, value, element);
  return decode_element(type, element);
}

}  // namespace

void distort_keys(Fault fault, std::int64_t live, std::int64_t rows, std::vector<SeenKey>& keys) {
  if (fault == Fault::reads_one_row_past && live < rows) {
    keys.push_back({live, 0, true});
  }
  if (fault == Fault::masked_by_multiply && !keys.empty()) {
    std::vector<SeenKey> all;
    auto seen = keys.begin();
    for (std::int64_t row = 0; row < rows; ++row) {
      const bool is_seen = seen != keys.end() && seen->row == row;
      all.push_back(is_seen ? *seen++ : SeenKey{row, 0, true});
    }
    keys = std::move(all);
  }
}

double distort_logit(Fault fault, double logit, double softcap) {
  if (fault == Fault::logits_in_f16) return rounded_to(ElementType::f16, logit);
  const bool caps = fault == Fault::softcap_after_bias && softcap != 0;
  return caps ? softcap * std::tanh(logit / softcap) : logit;
}

double distort_weight(Fault fault, double weight) {
  return fault == Fault::weights_in_bf16 ? rounded_to(ElementType::bf16, weight) : weight;
}

}  // namespace kvcheck::kernels
