// Every field of a structure as text under its name, so that what travels can be compared field by
// field. The structures are taken apart whole: a field that is new in one of them does not compile
// until the functions that are built on this one know it.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/target.h"

namespace kvcheck::kernels {

using FieldTexts = std::map<std::string, std::string>;

inline std::string text_of(const Tensor& tensor) {
  const auto& [type, shape, bytes] = tensor;
  std::vector<int> values;
  for (const std::byte byte : bytes) values.push_back(std::to_integer<int>(byte));
  return fmt::format("{} {} {}", to_string(type), shape, values);
}

template <class T>
std::string text_of(const T& value) {
  if constexpr (std::is_same_v<T, ElementType>) {
    return std::string(to_string(value));
  } else if constexpr (std::is_same_v<T, double>) {
    return fmt::format("{:a}", value);
  } else {
    return fmt::format("{}", value);
  }
}

template <class T>
std::string text_of(const std::optional<T>& value) {
  return value ? text_of(*value) : "none";
}

/// The texts of a part, under its name.
inline void add_part(FieldTexts& texts, const std::string& name, const FieldTexts& part) {
  for (const auto& [field, text] : part) texts[name + "." + field] = text;
}

/// The names of the fields that are the same in both.
inline std::vector<std::string> same_fields(const FieldTexts& a, const FieldTexts& b) {
  std::vector<std::string> same;
  for (const auto& [name, text] : a) {
    if (const auto found = b.find(name); found != b.end() && found->second == text) {
      same.push_back(name);
    }
  }
  return same;
}

}  // namespace kvcheck::kernels
