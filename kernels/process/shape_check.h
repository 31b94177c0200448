// Shapes of requests and answers against the session that they belong to.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/process/frame.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// Throws std::invalid_argument unless the tensors of a request are what its session takes; those
/// of a session, unless they have its sizes.
void check_session_config(const SessionConfig& config);
void check_step_request(const StepRequest& request, const SessionConfig& config);
void check_load_request(const LoadRequest& request, const SessionConfig& config);
void check_counts(std::string_view name, std::span<const std::int64_t> counts, std::int64_t batch);

/// Throws ProtocolError unless the tensors of an answer are those that were claimed and asked for:
/// output [B,S,Nq,Hv], visible [B,S,R], qk [B,Nq,S,T], rows.key [B,Nk,R,H] and rows.value
/// [B,Nk,R,Hv] as the cache stores them.
void check_step_answer(std::span<const TensorHead> tensors, std::int64_t queries, bool want_rows,
                       const Capabilities& claims, const SessionConfig& config);
void check_rows_answer(std::span<const TensorHead> tensors, const SessionConfig& config);

}  // namespace kvcheck::kernels
