// Reading and writing scenarios as JSON.
#include "model/scenario_json.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/json_reader.h"
#include "model/launch_json.h"
#include "model/tensor_json.h"

namespace kvcheck::model {
namespace {

constexpr std::size_t kMaxText = 4u << 20;

/// A single number stands for every entry. A hostile batch must not size the list here; validate()
/// refuses it with words.
void broadcast(std::vector<std::int64_t>& counts, std::int64_t batch) {
  if (counts.size() == 1 && batch > 1 && batch <= kMaxShape) {
    counts.resize(static_cast<std::size_t>(batch), counts.front());
  }
}

Step read_step(const Json& json, const std::string& path, std::int64_t batch,
               std::int64_t rollbacks_before) {
  Reader reader(json, path);
  Step step;
  if (json.contains("append")) {
    Append append;
    reader.read("append", append.tokens);
    broadcast(append.tokens, batch);
    append.queries = append.tokens;
    reader.read("queries", append.queries);
    broadcast(append.queries, batch);
    append.generation = rollbacks_before;
    reader.read("generation", append.generation);
    read_tensors(reader, append.tensors);
    step = append;
  } else if (json.contains("past")) {
    Past past;
    reader.read("past", past.tokens);
    broadcast(past.tokens, batch);
    read_tensors(reader, past.tensors);
    step = past;
  } else if (json.contains("rollback")) {
    Rollback rollback;
    reader.read("rollback", rollback.tokens);
    broadcast(rollback.tokens, batch);
    step = rollback;
  } else {
    fail(path, shown(json), "unknown kind of step; this version knows append, past and rollback");
  }
  reader.finish();
  return step;
}

Json counts_json(const std::vector<std::int64_t>& counts) {
  for (const std::int64_t n : counts) {
    if (n != counts.front()) return Json(counts);
  }
  return counts.empty() ? Json::array() : Json(counts.front());
}

Json step_json(const Step& step, std::int64_t rollbacks_before) {
  Json json;
  if (const auto* append = std::get_if<Append>(&step)) {
    json["append"] = counts_json(append->tokens);
    if (append->queries != append->tokens) json["queries"] = counts_json(append->queries);
    if (append->generation != rollbacks_before) json["generation"] = append->generation;
    write_tensors(json, append->tensors);
  } else if (const auto* past = std::get_if<Past>(&step)) {
    json["past"] = counts_json(past->tokens);
    write_tensors(json, past->tensors);
  } else {
    json["rollback"] = counts_json(std::get<Rollback>(step).tokens);
  }
  return json;
}

void read_cache(const Json& json, CacheSpec& cache) {
  Reader reader(json, "cache");
  reader.read("layout", cache.layout,
              {LayoutKind::full, LayoutKind::block, LayoutKind::min_overflow, LayoutKind::ring,
               LayoutKind::sinks, LayoutKind::paged});
  reader.read("capacity", cache.capacity);
  reader.read("window_size", cache.window_size);
  // The operators write "no window" as -1.
  if (cache.window_size == -1) cache.window_size.reset();
  reader.read("sink_tokens", cache.sink_tokens);
  reader.read("page_size", cache.page_size);
  if (const Json* inner = reader.find("quantisation")) {
    Reader quantisation(*inner, "cache.quantisation");
    quantisation.read("kind", cache.quantisation.kind,
                      {QuantisationKind::none, QuantisationKind::int8, QuantisationKind::int4,
                       QuantisationKind::fp8});
    quantisation.read("per_channel", cache.quantisation.per_channel);
    quantisation.finish();
  }
  reader.finish();
}

void read_mask(const Json& json, MaskSpec& mask) {
  Reader reader(json, "mask");
  reader.read("kind", mask.kind, {MaskKind::none, MaskKind::boolean, MaskKind::additive});
  reader.read("rank", mask.rank);
  reader.read("hidden_percent", mask.hidden_percent);
  reader.read("seed", mask.seed);
  reader.read("empty_rows", mask.empty_rows);
  reader.read("one_entry", mask.one_entry);
  reader.read("one_head", mask.one_head);
  reader.read("one_query", mask.one_query);
  reader.read("missing_columns", mask.missing_columns);
  reader.finish();
}

void read_rotary(const Json& json, RotarySpec& rotary) {
  Reader reader(json, "rotary");
  reader.read("interleaved", rotary.interleaved);
  reader.read("dim", rotary.dim);
  if (const Json* inner = reader.find("position_ids")) {
    Reader ids(*inner, "rotary.position_ids");
    PositionIds& read = rotary.position_ids.emplace();
    ids.read("shift", read.shift);
    ids.read("stride", read.stride);
    ids.read("extra_columns", read.extra_columns);
    ids.finish();
  }
  reader.finish();
}

void read_fill(const Json& json, FillSpec& fill) {
  Reader reader(json, "fill");
  reader.read(
      "kind", fill.kind,
      {FillKind::random, FillKind::needles, FillKind::position_code, FillKind::position_block,
       FillKind::position_digits, FillKind::extreme, FillKind::ties, FillKind::cancelling,
       FillKind::selection, FillKind::integers, FillKind::literal});
  reader.read("seed", fill.seed);
  reader.read("index", fill.index);
  reader.read("first_entry", fill.first_entry);
  reader.read("sink_logit", fill.sink_logit);
  reader.finish();
}

void read_steps(const Json& json, Scenario& scenario) {
  if (!json.is_array()) fail("steps", shown(json), "must be a list of steps");
  const std::int64_t most =
      kMaxStepEntries / std::clamp<std::int64_t>(scenario.batch, 1, kMaxShape);
  if (static_cast<std::int64_t>(json.size()) > most) {
    fail("steps", fmt::format("{} steps", json.size()),
         fmt::format("must be at most {} steps with batch {}", most, scenario.batch));
  }
  std::int64_t rollbacks = 0;
  for (std::size_t i = 0; i < json.size(); ++i) {
    scenario.steps.push_back(
        read_step(json[i], fmt::format("steps[{}]", i), scenario.batch, rollbacks));
    if (std::holds_alternative<Rollback>(scenario.steps.back())) ++rollbacks;
  }
}

void check_schema(Reader& reader) {
  const Json* schema = reader.find("schema");
  if (!schema) fail("schema", "absent", fmt::format("must be given; write {}", kScenarioSchema));
  if (!schema->is_number_integer()) fail("schema", shown(*schema), "must be an integer");
  const bool huge = schema->is_number_unsigned() && schema->get<std::uint64_t>() > INT64_MAX;
  if (huge || schema->get<std::int64_t>() > kScenarioSchema) {
    fail("schema", shown(*schema),
         fmt::format("is newer than this build understands ({}); use a newer kvcheck",
                     kScenarioSchema));
  }
  if (schema->get<std::int64_t>() < 1) fail("schema", shown(*schema), "must be at least 1");
}

Json cache_json(const CacheSpec& cache) {
  Json json;
  json["layout"] = to_string(cache.layout);
  if (cache.capacity != 0) json["capacity"] = cache.capacity;
  if (cache.window_size) json["window_size"] = *cache.window_size;
  if (cache.sink_tokens != 0) json["sink_tokens"] = cache.sink_tokens;
  if (cache.page_size != 0) json["page_size"] = cache.page_size;
  if (cache.quantisation != Quantisation{}) {
    json["quantisation"] = {{"kind", to_string(cache.quantisation.kind)},
                            {"per_channel", cache.quantisation.per_channel}};
  }
  return json;
}

Json mask_json(const MaskSpec& mask) {
  Json json{{"kind", to_string(mask.kind)},
            {"rank", mask.rank},
            {"hidden_percent", mask.hidden_percent},
            {"seed", mask.seed},
            {"empty_rows", mask.empty_rows}};
  if (mask.one_entry) json["one_entry"] = true;
  if (mask.one_head) json["one_head"] = true;
  if (mask.one_query) json["one_query"] = true;
  if (mask.missing_columns != 0) json["missing_columns"] = mask.missing_columns;
  return json;
}

Json rotary_json(const RotarySpec& rotary) {
  Json json = Json::object();
  if (rotary.interleaved) json["interleaved"] = true;
  if (rotary.dim != 0) json["dim"] = rotary.dim;
  if (rotary.position_ids) {
    json["position_ids"] = {{"shift", rotary.position_ids->shift},
                            {"stride", rotary.position_ids->stride},
                            {"extra_columns", rotary.position_ids->extra_columns}};
  }
  return json;
}

Json fill_json(const FillSpec& fill) {
  Json json;
  json["kind"] = to_string(fill.kind);
  json["seed"] = fill.seed;
  if (fill.index != 0) json["index"] = fill.index;
  if (fill.first_entry != 0) json["first_entry"] = fill.first_entry;
  if (fill.sink_logit != 0) json["sink_logit"] = fill.sink_logit;
  return json;
}

/// What the parser says, as plain ASCII: it may quote the broken bytes of the text.
std::string parser_words(const std::exception& error) {
  std::string words = error.what();
  for (char& c : words) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return shortened(words, 200);
}

/// \throws ScenarioError for broken JSON, numbers beyond double, a name given twice, deep nesting
Json parse_json(std::string_view text) {
  std::vector<std::set<std::string>> names;  // Of each object that is open.
  const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxDepth)
      fail("text", "nested deeper than any scenario",
           fmt::format("nest at most {} levels", kMaxDepth));
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& name = value.get_ref<const std::string&>();
      if (!names.back().insert(name).second) fail(name, "given twice", "must be given once");
    }
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::parse_error& error) {
    fail("text", fmt::format("broken at byte {}", error.byte),
         "must be JSON: " + parser_words(error));
  } catch (const Json::exception& error) {
    fail("text", "a number beyond double", "must be finite: " + parser_words(error));
  }
}

/// FNV-1a, then a mix so that short differences reach every digit.
std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccdull;
  hash ^= hash >> 33;
  return hash;
}

}  // namespace

Json to_json(const Scenario& s) {
  const Scenario defaults;
  Json json;
  json["schema"] = kScenarioSchema;
  json["operator"] = to_string(s.op);
  if (s.op == Operator::attention) json["opset"] = s.opset;
  json["batch"] = s.batch;
  json["query_heads"] = s.query_heads;
  json["kv_heads"] = s.kv_heads;
  json["head_size"] = s.head_size;
  if (s.value_head_size != s.head_size) json["value_head_size"] = s.value_head_size;
  json["element_type"] = to_string(s.element_type);
  if (s.cache != defaults.cache) json["cache"] = cache_json(s.cache);
  if (s.share_buffers != defaults.share_buffers) json["share_buffers"] = s.share_buffers;
  if (s.causal != defaults.causal) json["causal"] = s.causal;
  if (s.nonpad_kv_seqlen) json["nonpad_kv_seqlen"] = true;
  if (s.right_window_size) json["right_window_size"] = *s.right_window_size;
  if (s.input_rank != defaults.input_rank) json["input_rank"] = s.input_rank;
  if (s.packed_qkv) json["packed_qkv"] = true;
  if (s.mask.kind != MaskKind::none) json["mask"] = mask_json(s.mask);
  if (s.scale) json["scale"] = *s.scale;
  if (s.softcap != 0) json["softcap"] = s.softcap;
  if (s.smooth_softmax) json["smooth_softmax"] = true;
  if (s.head_sink) json["head_sink"] = true;
  if (s.rotary) json["rotary"] = rotary_json(*s.rotary);
  if (s.qk_norm) json["qk_norm"] = {{"epsilon", s.qk_norm->epsilon}};
  if (s.qk_output != QkOutput::none) json["qk_output"] = to_string(s.qk_output);
  if (s.softmax_precision) json["softmax_precision"] = to_string(*s.softmax_precision);
  if (!s.call_change.empty()) json["call_change"] = s.call_change;
  if (s.launch) json["launch"] = launch_json(*s.launch);
  json["fill"] = fill_json(s.fill);
  if (s.poison != defaults.poison) json["poison"] = to_string(s.poison);
  json["steps"] = Json::array();
  std::int64_t rollbacks = 0;
  for (const Step& step : s.steps) {
    json["steps"].push_back(step_json(step, rollbacks));
    if (std::holds_alternative<Rollback>(step)) ++rollbacks;
  }
  return json;
}

Scenario scenario_from_json(const Json& json) {
  Scenario s;
  Reader reader(json, "");
  check_schema(reader);
  if (!json.contains("operator")) fail("operator", "absent", "must be gqa or attention");
  reader.read("operator", s.op, {Operator::gqa, Operator::attention});
  s.opset = s.op == Operator::gqa ? 1 : 24;
  reader.read("opset", s.opset);
  reader.read("batch", s.batch);
  reader.read("query_heads", s.query_heads);
  reader.read("kv_heads", s.kv_heads);
  reader.read("head_size", s.head_size);
  s.value_head_size = s.head_size;
  reader.read("value_head_size", s.value_head_size);
  reader.read("element_type", s.element_type,
              {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::f64});
  if (const Json* cache = reader.find("cache")) read_cache(*cache, s.cache);
  reader.read("share_buffers", s.share_buffers);
  reader.read("causal", s.causal);
  reader.read("nonpad_kv_seqlen", s.nonpad_kv_seqlen);
  reader.read("right_window_size", s.right_window_size);
  if (s.right_window_size == -1) s.right_window_size.reset();
  reader.read("input_rank", s.input_rank);
  reader.read("packed_qkv", s.packed_qkv);
  if (const Json* mask = reader.find("mask")) read_mask(*mask, s.mask);
  reader.read("scale", s.scale);
  // GroupQueryAttention writes "the default" as 0.
  if (s.op == Operator::gqa && s.scale == 0.0) s.scale.reset();
  reader.read("softcap", s.softcap);
  reader.read("smooth_softmax", s.smooth_softmax);
  reader.read("head_sink", s.head_sink);
  if (const Json* rotary = reader.find("rotary")) read_rotary(*rotary, s.rotary.emplace());
  if (const Json* norm = reader.find("qk_norm")) {
    Reader inner(*norm, "qk_norm");
    inner.read("epsilon", s.qk_norm.emplace().epsilon);
    inner.finish();
  }
  reader.read("call_change", s.call_change);
  if (const Json* launch = reader.find("launch")) read_launch(*launch, s.launch.emplace());
  reader.read("qk_output", s.qk_output,
              {QkOutput::none, QkOutput::raw, QkOutput::softcapped, QkOutput::biased,
               QkOutput::probabilities});
  if (const Json* precision = reader.find("softmax_precision");
      precision && !precision->is_null()) {
    reader.read("softmax_precision", s.softmax_precision.emplace(),
                {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::f64});
  }
  if (const Json* fill = reader.find("fill")) read_fill(*fill, s.fill);
  reader.read("poison", s.poison, {Poison::zero, Poison::finite, Poison::huge, Poison::nan});
  const Json* steps = reader.find("steps");
  if (!steps) fail("steps", "absent", "must be a list of steps");
  read_steps(*steps, s);
  reader.finish();
  return s;
}

void require_valid(const Scenario& scenario) {
  constexpr std::size_t kMost = 8;
  const auto refusals = validate(scenario);
  if (refusals.empty()) return;
  std::string message = "scenario: ";
  for (std::size_t i = 0; i < std::min(refusals.size(), kMost); ++i) {
    message += (i ? "; " : "") + refusals[i].message();
  }
  if (refusals.size() > kMost) message += fmt::format("; and {} more", refusals.size() - kMost);
  throw ScenarioError(message);
}

Scenario parse_scenario(std::string_view text) {
  if (text.size() > kMaxText) {
    fail("text", fmt::format("{} bytes", text.size()),
         fmt::format("must be at most {} bytes", kMaxText));
  }
  Scenario scenario = scenario_from_json(parse_json(text));
  require_valid(scenario);
  return scenario;
}

std::string canonical_text(const Scenario& scenario) { return to_json(scenario).dump(); }

std::string content_hash(const Scenario& scenario) {
  return fmt::format("{:016x}", hash_text(canonical_text(scenario)));
}

}  // namespace kvcheck::model
