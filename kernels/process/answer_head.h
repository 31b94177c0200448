// Answers as JSON heads, for both ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/process/fields.h"
#include "kernels/process/frame.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// Answers as they travel. `fields` are those of an ok answer beside its tensors.
FrameContent ok_answer(std::int64_t id, nlohmann::json fields, std::vector<NamedTensor> tensors);
FrameContent refused_answer(std::int64_t id, const Refusal& refusal);
FrameContent error_answer(std::int64_t id, const Failure& failure);

/// The head of an answer, read by the other end.
struct AnswerHead {
  enum class Kind { ok, refused, error };
  Kind kind = Kind::ok;
  std::string text;                              ///< Reason of a refusal, detail of an error.
  Failure::Kind failure = Failure::Kind::crash;  ///< Of an error.
  std::vector<TensorHead> tensors;               ///< In the order of the body; empty unless ok.
};

/// \throws ProtocolError when the head is not JSON, belongs to another request, is of an unknown
///         kind, or its tensors do not take body_bytes
AnswerHead decode_answer(std::string_view head, std::int64_t id, std::uint64_t body_bytes);

/// The fields of the answer to last_store.
nlohmann::json last_store_fields(const std::string& words);
/// \throws ProtocolError where the words are missing
std::string decode_last_store_answer(std::string_view head);

/// The tensors that a step may answer with, but for those of its rows.
template <class Result, class Visit>
void each_step_tensor(Result& result, Visit&& visit) {
  visit("output", result.output);
  visit("visible", result.visible);
  visit("qk", result.qk);
}

}  // namespace kvcheck::kernels
