// How a refusal is worded, and checks that several of them share.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "kernels/target.h"

namespace kvcheck::kernels {

/// Why something is refused; empty when it is not.
using Reason = std::optional<std::string>;
using Shape = std::vector<std::int64_t>;

/// "field = value: remedy". Cold: what leads here is kept away from the code that each step runs.
template <class Value>
[[gnu::cold]] Reason refuse(std::string_view field, const Value& value, std::string_view remedy) {
  return fmt::format("{} = {}: {}", field, value, remedy);
}

/// The first reason that there is; checks after it do not run.
template <class First, class... Rest>
Reason first_of(const First& first, const Rest&... rest) {
  Reason reason = first();
  if constexpr (sizeof...(rest) == 0) {
    return reason;
  } else {
    // Nothing is moved where there is no reason, which is what each step finds.
    if (reason) return reason;
    return first_of(rest...);
  }
}

/// attention with a past: the cache grows by the tokens of each step.
inline bool concatenates(const SessionConfig& config) {
  return config.op == std::string_view("attention") && !config.nonpad_kv_seqlen;
}

/// Bytes of a tensor, or nothing when they do not fit 2 GiB. \pre no negative extent
std::optional<std::int64_t> bytes_of(ElementType type, std::span<const std::int64_t> shape);
inline std::optional<std::int64_t> bytes_of(ElementType type,
                                            std::initializer_list<std::int64_t> shape) {
  return bytes_of(type, std::span(shape.begin(), shape.size()));
}

/// Whether keys and values of `rows` rows stay within 2 GiB each.
bool rows_fit(const SessionConfig& config, std::int64_t entries, std::int64_t rows);

/// Element type, shape and byte count of a tensor; one without elements need not be spelled out.
Reason check_tensor(std::string_view field, const Tensor& tensor, ElementType type,
                    std::span<const std::int64_t> shape);
inline Reason check_tensor(std::string_view field, const Tensor& tensor, ElementType type,
                           std::initializer_list<std::int64_t> shape) {
  return check_tensor(field, tensor, type, std::span(shape.begin(), shape.size()));
}

/// "[1,2,3]".
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace kvcheck::kernels
