// The fields of a scenario as names and values in words.
#include "shrinkers/fields.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

namespace kvcheck::shrinkers {
namespace {

using model::Append;
using model::Rollback;
using model::Scenario;

constexpr std::string_view kAbsent = "off";

struct Change {
  std::string name, before, after;
};

/// Fields of two lists that differ; a field that one side lacks is "off" there.
void compare(const std::vector<Field>& before, const std::vector<Field>& after,
             std::vector<Change>& changes) {
  const auto find = [](const std::vector<Field>& fields, const std::string& name) {
    return std::find_if(fields.begin(), fields.end(),
                        [&](const Field& field) { return field.name == name; });
  };
  for (const Field& field : before) {
    const auto match = find(after, field.name);
    const std::string value = match == after.end() ? std::string(kAbsent) : match->value;
    if (value != field.value) changes.push_back({field.name, field.value, value});
  }
  for (const Field& field : after) {
    if (find(before, field.name) == before.end() && field.value != kAbsent) {
      changes.push_back({field.name, std::string(kAbsent), field.value});
    }
  }
}

void add_queries(std::vector<Field>& fields, const Scenario& s, const std::string& name,
                 const Append& append) {
  const bool all = s.op == model::Operator::gqa && append.queries == append.tokens;
  fields.push_back({name + ".queries", all ? "all" : counts_text(append.queries)});
}

}  // namespace

bool same_kinds(const Scenario& a, const Scenario& b) {
  return std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                    [](const auto& x, const auto& y) { return x.index() == y.index(); });
}

std::string counts_text(const std::vector<std::int64_t>& counts) {
  const bool uniform = !counts.empty() && std::all_of(counts.begin(), counts.end(),
                                                      [&](auto n) { return n == counts.front(); });
  return uniform ? fmt::format("{}", counts.front()) : fmt::format("[{}]", fmt::join(counts, ", "));
}

namespace {

/// Optional features that are on; one that is off has no field.
void add_features(std::vector<Field>& fields, const Scenario& s) {
  const auto add = [&](const char* name, auto value) {
    fields.push_back({name, fmt::format("{}", value)});
  };
  const auto flag = [&](const char* name, bool on) {
    if (on) add(name, true);
  };
  const auto number = [&](const char* name, std::int64_t value) {
    if (value != 0) add(name, value);
  };
  if (s.cache.quantisation.kind != model::QuantisationKind::none) {
    add("cache.quantisation.kind", model::to_string(s.cache.quantisation.kind));
  }
  flag("cache.quantisation.per_channel", s.cache.quantisation.per_channel);
  number("cache.sink_tokens", s.cache.sink_tokens);
  number("cache.page_size", s.cache.page_size);
  if (s.right_window_size) add("right_window_size", *s.right_window_size);
  if (s.input_rank != 4) add("input_rank", s.input_rank);
  flag("packed_qkv", s.packed_qkv);
  if (!s.call_change.empty()) add("call_change", s.call_change);
  flag("mask.one_entry", s.mask.one_entry);
  flag("mask.one_head", s.mask.one_head);
  flag("mask.one_query", s.mask.one_query);
  number("mask.missing_columns", s.mask.missing_columns);
  if (s.softcap != 0) add("softcap", s.softcap);
  flag("smooth_softmax", s.smooth_softmax);
  flag("head_sink", s.head_sink);
  if (s.rotary) {
    add("rotary.dim", s.rotary->dim == 0 ? s.head_size : s.rotary->dim);
    flag("rotary.interleaved", s.rotary->interleaved);
    if (const auto& ids = s.rotary->position_ids) {
      add("rotary.position_ids.stride", ids->stride);
      number("rotary.position_ids.shift", ids->shift);
      number("rotary.position_ids.extra_columns", ids->extra_columns);
    }
  }
  if (s.launch) {
    add("launch.order", model::to_string(s.launch->order));
    add("launch.seed", s.launch->seed);
    add("launch.kernel", model::to_string(s.launch->kernel));
    number("launch.threads", s.launch->threads);
    number("launch.split_positions", s.launch->split_positions);
  }
  if (s.qk_norm) add("qk_norm.epsilon", s.qk_norm->epsilon);
  if (s.qk_output != model::QkOutput::none) add("qk_output", model::to_string(s.qk_output));
  if (s.softmax_precision) add("softmax_precision", model::to_string(*s.softmax_precision));
}

void add_mask(std::vector<Field>& fields, const Scenario& s) {
  fields.push_back({"mask.kind", std::string(model::to_string(s.mask.kind))});
  if (s.mask.kind == model::MaskKind::none) return;
  fields.push_back({"mask.rank", fmt::format("{}", s.mask.rank)});
  fields.push_back({"mask.hidden_percent", fmt::format("{}", s.mask.hidden_percent)});
  fields.push_back({"mask.seed", fmt::format("{}", s.mask.seed)});
  fields.push_back({"mask.empty_rows", s.mask.empty_rows ? "true" : "false"});
}

}  // namespace

std::vector<Field> scalar_fields(const Scenario& s) {
  const bool gqa = s.op == model::Operator::gqa;
  const auto number = [](auto value) { return fmt::format("{}", value); };
  const auto flag = [](bool value) { return std::string(value ? "true" : "false"); };
  std::vector<Field> fields;
  const auto add = [&](std::string name, std::string value) {
    fields.push_back({std::move(name), std::move(value)});
  };
  if (!gqa) add("opset", number(s.opset));
  add("batch", number(s.batch));
  add("query_heads", number(s.query_heads));
  add("kv_heads", number(s.kv_heads));
  add("head_size", number(s.head_size));
  if (!gqa) add("value_head_size", number(s.value_head_size));
  add("element_type", std::string(model::to_string(s.element_type)));
  if (gqa) {
    add("cache.layout", std::string(model::to_string(s.cache.layout)));
    add("cache.window_size",
        s.cache.window_size ? number(*s.cache.window_size) : std::string(kAbsent));
    add("share_buffers", flag(s.share_buffers));
  }
  add("cache.capacity", number(s.cache.capacity));
  if (!gqa) {
    add("causal", flag(s.causal));
    add("nonpad_kv_seqlen", flag(s.nonpad_kv_seqlen));
    if (s.cache.window_size) add("cache.window_size", number(*s.cache.window_size));
    add_mask(fields, s);
  } else {
    if (!s.causal) add("causal", "false");
    if (s.mask.kind != model::MaskKind::none) add_mask(fields, s);
  }
  add("scale", s.scale ? number(*s.scale) : std::string(kAbsent));
  add_features(fields, s);
  add("fill.kind", std::string(model::to_string(s.fill.kind)));
  add("fill.seed", number(s.fill.seed));
  add("fill.index", number(s.fill.index));
  if (s.fill.sink_logit != 0) add("fill.sink_logit", number(s.fill.sink_logit));
  if (s.fill.first_entry != 0) add("fill.first_entry", number(s.fill.first_entry));
  add("poison", std::string(model::to_string(s.poison)));
  return fields;
}

std::vector<Field> step_fields(const Scenario& s) {
  std::vector<Field> fields;
  std::int64_t rollbacks = 0;
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    const std::string name = fmt::format("steps[{}]", i);
    std::visit(
        [&](const auto& step) {
          fields.push_back({name + ".tokens", counts_text(step.tokens)});
        },
        s.steps[i]);
    if (std::holds_alternative<Rollback>(s.steps[i])) ++rollbacks;
    if (const auto* append = std::get_if<Append>(&s.steps[i])) {
      add_queries(fields, s, name, *append);
      fields.push_back({name + ".generation", append->generation == rollbacks
                                                  ? "default"
                                                  : fmt::format("{}", append->generation)});
    }
  }
  return fields;
}

std::string field_text(const Scenario& s, const std::string& name) {
  for (const auto& fields : {scalar_fields(s), step_fields(s)}) {
    for (const Field& field : fields) {
      if (field.name == name) return field.value;
    }
  }
  return "";
}

std::string difference(const Scenario& before, const Scenario& after, bool with_steps) {
  std::vector<Change> changes;
  compare(scalar_fields(before), scalar_fields(after), changes);
  if (with_steps && same_kinds(before, after)) {
    compare(step_fields(before), step_fields(after), changes);
  } else if (with_steps && before.steps.size() != after.steps.size()) {
    changes.push_back(
        {"steps", fmt::format("{}", before.steps.size()), fmt::format("{}", after.steps.size())});
  }
  std::string text;
  for (const Change& change : changes) {
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", change.name, change.before,
                        change.after);
  }
  return text;
}

std::vector<std::string> changed_fields(const Scenario& before, const Scenario& after) {
  std::vector<Change> changes;
  compare(scalar_fields(before), scalar_fields(after), changes);
  std::vector<std::string> names;
  const bool same = same_kinds(before, after);
  if (same) compare(step_fields(before), step_fields(after), changes);
  for (const Change& change : changes) names.push_back(change.name);
  if (!same) names.push_back("steps");
  return names;
}

}  // namespace kvcheck::shrinkers
