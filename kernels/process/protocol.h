// Protocol of process targets: what is asked, as JSON heads, for both ends.
//
// kernels/adapters/README.md describes every request and answer; session_head.h has the request
// that opens a session, call_head.h that of an operator call.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/process/fields.h"
#include "kernels/process/frame.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

inline constexpr int kProtocol = 1;

/// The head of a request for a session, without its own fields.
nlohmann::json request_head(const char* kind, std::int64_t id, std::int64_t session);

/// Requests as they travel; numbers that JSON lacks are the strings "nan", "inf" and "-inf".
FrameContent hello_request(std::int64_t id);
FrameContent step_request(std::int64_t id, std::int64_t session, const StepRequest& step,
                          bool want_rows);
FrameContent rollback_request(std::int64_t id, std::int64_t session,
                              std::span<const std::int64_t> tokens);
FrameContent load_request(std::int64_t id, std::int64_t session, const LoadRequest& load);
FrameContent present_request(std::int64_t id, std::int64_t session);
FrameContent last_store_request(std::int64_t id, std::int64_t session, const ElementPlace& place);
FrameContent close_request(std::int64_t id, std::int64_t session);

/// The same, read by the other end. Shapes are not looked at.
/// \throws ProtocolError naming what is missing, of the wrong type, or, in a step, unknown
StepRequest decode_step(const Fields& head, RequestTensors& tensors);
std::vector<std::int64_t> decode_rollback(const Fields& head);
LoadRequest decode_load(const Fields& head, RequestTensors& tensors);
ElementPlace decode_last_store(const Fields& head);

/// The tensors of rows, in requests and answers.
template <class Rows, class Visit>
void each_row_tensor(Rows& rows, Visit&& visit) {
  visit("rows.key", rows.key);
  visit("rows.value", rows.value);
}

}  // namespace kvcheck::kernels
