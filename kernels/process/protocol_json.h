// What the heads of all requests share, as JSON.
#pragma once

#include <cmath>
#include <span>

#include <nlohmann/json.hpp>

#include "kernels/process/protocol.h"

namespace kvcheck::kernels {

/// A number, or one of the words for those that JSON cannot write.
inline nlohmann::json json_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

/// The list that tells a reader how to split the body.
inline nlohmann::json json_descriptions(std::span<const NamedTensor> tensors) {
  auto list = nlohmann::json::array();
  for (const auto& [name, tensor] : tensors) {
    list.push_back({{"name", name}, {"type", to_string(tensor->type)}, {"shape", tensor->shape}});
  }
  return list;
}

}  // namespace kvcheck::kernels
