// What a session refuses, decided before anything changes.
//
// Every function gives the reason with field, value and remedy, or nothing when all is well. The
// rules are those of the operators: contract of GroupQueryAttention (1.4, 1.5, 3.8) and of
// Attention (2.1 to 2.4).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "kernels/target.h"

namespace kvcheck::kernels {

/// Tokens of one sequence: what seqlens_k and total_sequence_length (int32) can say.
inline constexpr std::int64_t kMaxLength = 2147483647;

/// What no kernel can take.
std::optional<std::string> check_config(const SessionConfig& config);

/// What this target does not claim: operator, opset, element type, layout, head size, kind of
/// cache, instruction set. \pre check_config(config) is empty
std::optional<std::string> check_claims(const Capabilities& can, const SessionConfig& config);

/// \param lengths of the entries before the step; \param rows of the buffer before it
/// \pre check_config(config) is empty
std::optional<std::string> check_step(const SessionConfig& config,
                                      std::span<const std::int64_t> lengths, std::int64_t rows,
                                      const StepRequest& request);

/// \pre check_config(config) is empty
std::optional<std::string> check_load(const SessionConfig& config, const LoadRequest& request);

/// One number per batch entry.
std::optional<std::string> check_per_entry(const SessionConfig& config, const char* field,
                                           std::span<const std::int64_t> numbers);

}  // namespace kvcheck::kernels
