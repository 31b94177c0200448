// Nested lists to dense tensors and back.
#include "model/tensor_json.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace kvcheck::model {
namespace {

double number_from(const Json& json, const std::string& path) {
  if (json.is_number()) return json.get<double>();
  if (json.is_boolean()) return json.get<bool>() ? 1 : 0;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (json == "inf") return kInfinity;
  if (json == "-inf") return -kInfinity;
  if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
  fail(path, shown(json), "must be a number, true, false, \"inf\", \"-inf\" or \"nan\"");
}

void fill_from(const Json& json, const std::string& path, std::size_t depth, LiteralTensor& out) {
  if (depth == out.shape.size()) {
    out.values.push_back(number_from(json, path));
    return;
  }
  if (!json.is_array() || static_cast<std::int64_t>(json.size()) != out.shape[depth]) {
    fail(
        path, json.is_array() ? fmt::format("a list of {}", json.size()) : shown(json),
        fmt::format("all lists at this depth must be as long as the first ({})", out.shape[depth]));
  }
  for (const Json& item : json) fill_from(item, path, depth + 1, out);
}

LiteralTensor tensor_from(const Json& json, const std::string& path) {
  if (!json.is_array()) fail(path, shown(json), "must be a nested list of numbers");
  LiteralTensor out;
  for (const Json* level = &json; level->is_array(); level = &level->front()) {
    out.shape.push_back(static_cast<std::int64_t>(level->size()));
    if (level->empty()) break;
  }
  fill_from(json, path, 0, out);
  return out;
}

Json nested(const LiteralTensor& tensor, std::size_t depth, std::size_t& next) {
  if (depth == tensor.shape.size()) return number_json(tensor.values[next++]);
  Json list = Json::array();
  for (std::int64_t i = 0; i < tensor.shape[depth]; ++i) {
    list.push_back(nested(tensor, depth + 1, next));
  }
  return list;
}

}  // namespace

Json number_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

void read_tensors(Reader& step, StepTensors& tensors) {
  const auto read = [&](const char* name, LiteralTensor& out) {
    if (const Json* json = step.find(name)) out = tensor_from(*json, step.field(name));
  };
  read("q", tensors.q);
  read("k", tensors.k);
  read("v", tensors.v);
  read("mask", tensors.mask);
}

void write_tensors(Json& step, const StepTensors& tensors) {
  const auto write = [&](const char* name, const LiteralTensor& tensor) {
    std::size_t next = 0;
    if (!tensor.shape.empty()) step[name] = nested(tensor, 0, next);
  };
  write("q", tensors.q);
  write("k", tensors.k);
  write("v", tensors.v);
  write("mask", tensors.mask);
}

}  // namespace kvcheck::model
