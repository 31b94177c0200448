// Requests as JSON, there and back.
#include "kernels/process/protocol.h"

#include <array>
#include <utility>

#include <fmt/format.h>

namespace kvcheck::kernels {
namespace {

using nlohmann::json;

constexpr const char* kTokens = "tokens";
constexpr const char* kLengths = "lengths";
constexpr const char* kWantRows = "want_rows";

template <class Step, class Visit>
void each_field(Step& step, Visit& visit) {
  visit(kTokens, step.tokens);
  visit("queries", step.queries);
  visit(kWantRows, step.want_rows, false);
  visit.group("poison", step.poison, [](auto& poison, auto& part) {
    part("value", poison.value);
    part("first_row", poison.first_row);
  });
  visit.tensor("query", step.query);
  visit.tensor("key", step.key);
  visit.tensor("value", step.value);
  visit.tensor("mask", step.mask);
  visit.tensor("position_ids", step.position_ids);
}

template <class Place, class Visit>
void each_index(Place& place, Visit& visit) {
  visit("entry", place.entry);
  visit("head", place.head);
  visit("row", place.row);
  visit("lane", place.lane);
}

constexpr std::array<std::pair<ElementPlace::Of, const char*>, 3> kPlaces{
    {{ElementPlace::Of::output, "output"},
     {ElementPlace::Of::key, "key"},
     {ElementPlace::Of::value, "value"}}};

FrameContent content(json head, std::vector<NamedTensor> tensors) {
  head["tensors"] = json_descriptions(tensors);
  return {head.dump(), std::move(tensors)};
}

FrameContent with_counts(json head, const char* name, std::span<const std::int64_t> counts) {
  head[name] = std::vector<std::int64_t>(counts.begin(), counts.end());
  return {head.dump(), {}};
}

std::vector<std::int64_t> counts(const Fields& head, const char* name) {
  head.at(name);
  return head.list<std::int64_t>(name);
}

}  // namespace

json request_head(const char* kind, std::int64_t id, std::int64_t session) {
  return {{"kind", kind}, {"id", id}, {"session", session}};
}

FrameContent hello_request(std::int64_t id) {
  return {json{{"kind", "hello"}, {"id", id}, {"protocol", kProtocol}}.dump(), {}};
}

FrameContent step_request(std::int64_t id, std::int64_t session, const StepRequest& step,
                          bool want_rows) {
  json head = request_head("step", id, session);
  std::vector<NamedTensor> tensors;
  FieldWriter writer(head, tensors);
  each_field(step, writer);
  // The target may not claim any.
  head.erase(kWantRows);
  if (want_rows) head[kWantRows] = true;
  return content(std::move(head), std::move(tensors));
}

FrameContent rollback_request(std::int64_t id, std::int64_t session,
                              std::span<const std::int64_t> tokens) {
  return with_counts(request_head("rollback", id, session), kTokens, tokens);
}

FrameContent load_request(std::int64_t id, std::int64_t session, const LoadRequest& load) {
  json head = request_head("load", id, session);
  head[kLengths] = load.lengths;
  std::vector<NamedTensor> tensors;
  each_row_tensor(load.rows, [&](const char* name, const Tensor& tensor) {
    tensors.push_back({name, &tensor});
  });
  return content(std::move(head), std::move(tensors));
}

FrameContent present_request(std::int64_t id, std::int64_t session) {
  return {request_head("present", id, session).dump(), {}};
}

FrameContent last_store_request(std::int64_t id, std::int64_t session, const ElementPlace& place) {
  json head = request_head("last_store", id, session);
  for (const auto& [of, name] : kPlaces) {
    if (of == place.of) head["of"] = name;
  }
  std::vector<NamedTensor> none;
  FieldWriter writer(head, none);
  each_index(place, writer);
  return {head.dump(), {}};
}

FrameContent close_request(std::int64_t id, std::int64_t session) {
  return {request_head("close", id, session).dump(), {}};
}

StepRequest decode_step(const Fields& head, RequestTensors& tensors) {
  StepRequest step;
  FieldNames names;
  for (const char* name : {"kind", "id", "session", "tensors"}) names(name, 0);
  each_field(std::as_const(step), names);
  if (const auto unknown = names.unknown_in(head.object())) {
    throw ProtocolError(fmt::format("step has the unknown field {}", *unknown));
  }
  FieldReader reader(head, &tensors);
  each_field(step, reader);
  return step;
}

std::vector<std::int64_t> decode_rollback(const Fields& head) { return counts(head, kTokens); }

LoadRequest decode_load(const Fields& head, RequestTensors& tensors) {
  LoadRequest load;
  load.lengths = counts(head, kLengths);
  each_row_tensor(load.rows,
                  [&](const char* name, Tensor& tensor) { tensor = tensors.take(name); });
  return load;
}

ElementPlace decode_last_store(const Fields& head) {
  ElementPlace place;
  const auto of = head.get<std::string>("of");
  bool known = false;
  for (const auto& [value, name] : kPlaces) {
    if (of != name) continue;
    place.of = value;
    known = true;
  }
  if (!known) {
    throw ProtocolError(
        fmt::format("{}.of = \"{}\": is none of output, key, value", head.name(), shown(of, 40)));
  }
  FieldReader reader(head, nullptr);
  each_index(place, reader);
  return place;
}

}  // namespace kvcheck::kernels
