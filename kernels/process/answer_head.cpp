// Answers as JSON, there and back.
#include "kernels/process/answer_head.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "kernels/process/protocol.h"

namespace kvcheck::kernels {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<Failure::Kind, const char*>, 4> kFailures{
    {{Failure::Kind::crash, "crash"},
     {Failure::Kind::hang, "hang"},
     {Failure::Kind::nonsense, "nonsense"},
     {Failure::Kind::defect, "defect"}}};

constexpr const char* kStore = "store";

/// Targets may say anything, and a head is UTF-8.
FrameContent content(const json& head, std::vector<NamedTensor> tensors = {}) {
  return {head.dump(-1, ' ', false, json::error_handler_t::replace), std::move(tensors)};
}

Failure::Kind failure_kind(const Fields& fields) {
  if (!fields.has("kind")) return Failure::Kind::crash;
  const auto found = fields.get<std::string>("kind");
  for (const auto& [kind, name] : kFailures) {
    if (found == name) return kind;
  }
  throw ProtocolError(fmt::format(
      "{}.kind = \"{}\": an error is one of crash, hang, nonsense, defect; without it a crash",
      fields.name(), shown(found, 40)));
}

}  // namespace

FrameContent ok_answer(std::int64_t id, json fields, std::vector<NamedTensor> tensors) {
  fields["id"] = id;
  fields["answer"] = "ok";
  if (!tensors.empty()) fields["tensors"] = json_descriptions(tensors);
  return content(fields, std::move(tensors));
}

FrameContent refused_answer(std::int64_t id, const Refusal& refusal) {
  return content({{"id", id}, {"answer", "refused"}, {"reason", refusal.reason}});
}

FrameContent error_answer(std::int64_t id, const Failure& failure) {
  json head{{"id", id}, {"answer", "error"}, {"detail", failure.detail}};
  for (const auto& [kind, name] : kFailures) {
    if (kind == failure.kind && kind != Failure::Kind::crash) head["kind"] = name;
  }
  return content(head);
}

AnswerHead decode_answer(std::string_view head, std::int64_t id, std::uint64_t body_bytes) {
  const json parsed = parse_head(head, FrameKind::answer);
  const Fields fields(parsed, "the answer");
  const auto kind = fields.get<std::string>("answer");
  // An adapter that cannot read a request does not know its id, and says so with 0.
  const auto found = fields.get<std::int64_t>("id");
  if (found != id && !(found == 0 && kind == "error")) {
    throw ProtocolError(fmt::format(
        "the answer has the id {}, the request had {}; answer every request once, in order, with "
        "its own id",
        found, id));
  }
  AnswerHead answer;
  if (kind == "refused") {
    answer.kind = AnswerHead::Kind::refused;
    answer.text = fields.get<std::string>("reason");
  } else if (kind == "error") {
    answer.kind = AnswerHead::Kind::error;
    answer.text = fields.get<std::string>("detail");
    answer.failure = failure_kind(fields);
  } else if (kind != "ok") {
    throw ProtocolError(
        fmt::format("the answer is of the kind \"{}\"; protocol {} knows ok, refused and error",
                    shown(kind, 40), kProtocol));
  }
  answer.tensors = decode_tensors(fields, body_bytes);
  if (answer.kind != AnswerHead::Kind::ok && body_bytes > 0) {
    throw ProtocolError(
        fmt::format("the answer is {} but its body has {} bytes; tensors come with ok alone", kind,
                    body_bytes));
  }
  return answer;
}

json last_store_fields(const std::string& words) { return {{kStore, words}}; }

std::string decode_last_store_answer(std::string_view head) {
  const json parsed = parse_head(head, FrameKind::answer);
  return Fields(parsed, "the answer to last_store").get<std::string>(kStore);
}

}  // namespace kvcheck::kernels
