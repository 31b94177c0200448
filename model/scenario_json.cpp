// Reading and writing scenarios as JSON.
#include "model/scenario_json.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kvcheck::model {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxText = 4u << 20;

[[noreturn]] void fail(const std::string& field, const std::string& value,
                       const std::string& remedy) {
  throw ScenarioError(fmt::format("scenario: {} = {}: {}", field, value, remedy));
}

/// Value as text, short enough for a message.
std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

/// One JSON object being read: every field is asked for by name, and what is left is unknown.
class Reader {
 public:
  Reader(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object.is_object())
      fail(path_.empty() ? "text" : path_, shown(object), "must be an object");
  }

  const Json* find(const std::string& name) {
    known_.push_back(name);
    const auto it = object_.find(name);
    return it == object_.end() ? nullptr : &*it;
  }

  void read(const std::string& name, std::int64_t& out) {
    if (const Json* value = find(name)) out = integer(*value, field(name));
  }
  void read(const std::string& name, int& out) {
    std::int64_t wide = out;
    read(name, wide);
    if (wide < -1000000 || wide > 1000000)
      fail(field(name), fmt::format("{}", wide), "is out of range");
    out = static_cast<int>(wide);
  }
  void read(const std::string& name, std::uint64_t& out) {
    const Json* value = find(name);
    if (!value) return;
    if (!value->is_number_unsigned())
      fail(field(name), shown(*value), "must be an integer, at least 0");
    out = value->get<std::uint64_t>();
  }
  void read(const std::string& name, bool& out) {
    const Json* value = find(name);
    if (!value) return;
    if (!value->is_boolean()) fail(field(name), shown(*value), "must be true or false");
    out = value->get<bool>();
  }
  void read(const std::string& name, std::optional<std::int64_t>& out) {
    const Json* value = find(name);
    if (value && !value->is_null()) out = integer(*value, field(name));
  }
  void read(const std::string& name, std::optional<double>& out) {
    const Json* value = find(name);
    if (!value || value->is_null()) return;
    if (!value->is_number()) fail(field(name), shown(*value), "must be a number");
    out = value->get<double>();
  }
  template <class Enum>
  void read(const std::string& name, Enum& out, std::initializer_list<Enum> choices) {
    const Json* value = find(name);
    if (!value) return;
    std::string names;
    for (const Enum choice : choices) {
      if (value->is_string() && value->get_ref<const std::string&>() == to_string(choice)) {
        out = choice;
        return;
      }
      names += (names.empty() ? "" : ", ") + std::string(to_string(choice));
    }
    fail(field(name), shown(*value), "must be one of " + names);
  }
  void read(const std::string& name, std::vector<std::int64_t>& out) {
    if (const Json* value = find(name)) out = counts(*value, field(name));
  }

  /// \throws ScenarioError when a field was not asked for
  void finish() const {
    for (const auto& item : object_.items()) {
      if (std::find(known_.begin(), known_.end(), item.key()) == known_.end()) {
        fail(field(item.key()), shown(item.value()),
             fmt::format("unknown field; known here: {}", fmt::join(known_, ", ")));
      }
    }
  }

  std::string field(const std::string& name) const {
    return path_.empty() ? name : path_ + "." + name;
  }

 private:
  static std::int64_t integer(const Json& value, const std::string& field) {
    if (!value.is_number_integer()) fail(field, shown(value), "must be an integer");
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) {
      fail(field, shown(value), "is too large");
    }
    return value.get<std::int64_t>();
  }

  static std::vector<std::int64_t> counts(const Json& value, const std::string& field) {
    std::vector<std::int64_t> out;
    if (value.is_array()) {
      for (const Json& item : value) out.push_back(integer(item, field));
      if (out.empty()) fail(field, "[]", "must hold a number for each batch entry");
    } else {
      out.push_back(integer(value, field));
    }
    return out;
  }

  const Json& object_;
  std::string path_;
  std::vector<std::string> known_;
};

/// A single number stands for every entry. A hostile batch must not size the list here; validate()
/// refuses it with words.
void broadcast(std::vector<std::int64_t>& counts, std::int64_t batch) {
  if (counts.size() == 1 && batch > 1 && batch <= 4096) {
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
    step = append;
  } else if (json.contains("past")) {
    Past past;
    reader.read("past", past.tokens);
    broadcast(past.tokens, batch);
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
  } else if (const auto* past = std::get_if<Past>(&step)) {
    json["past"] = counts_json(past->tokens);
  } else {
    json["rollback"] = counts_json(std::get<Rollback>(step).tokens);
  }
  return json;
}

void read_cache(const Json& json, CacheSpec& cache) {
  Reader reader(json, "cache");
  reader.read("layout", cache.layout, {LayoutKind::full, LayoutKind::block});
  reader.read("capacity", cache.capacity);
  reader.read("window_size", cache.window_size);
  reader.finish();
}

void read_mask(const Json& json, MaskSpec& mask) {
  Reader reader(json, "mask");
  reader.read("kind", mask.kind, {MaskKind::none, MaskKind::boolean, MaskKind::additive});
  reader.read("rank", mask.rank);
  reader.read("hidden_percent", mask.hidden_percent);
  reader.read("seed", mask.seed);
  reader.read("empty_rows", mask.empty_rows);
  reader.finish();
}

void read_fill(const Json& json, FillSpec& fill) {
  Reader reader(json, "fill");
  reader.read(
      "kind", fill.kind,
      {FillKind::random, FillKind::needles, FillKind::position_code, FillKind::position_block});
  reader.read("seed", fill.seed);
  reader.read("index", fill.index);
  reader.finish();
}

void read_steps(const Json& json, Scenario& scenario) {
  if (!json.is_array()) fail("steps", shown(json), "must be a list of steps");
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
  if (schema->get<std::int64_t>() > kScenarioSchema) {
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
  return json;
}

Json mask_json(const MaskSpec& mask) {
  return {{"kind", to_string(mask.kind)},
          {"rank", mask.rank},
          {"hidden_percent", mask.hidden_percent},
          {"seed", mask.seed},
          {"empty_rows", mask.empty_rows}};
}

Json fill_json(const FillSpec& fill) {
  Json json;
  json["kind"] = to_string(fill.kind);
  json["seed"] = fill.seed;
  if (fill.index != 0) json["index"] = fill.index;
  return json;
}

/// FNV-1a, then a mix so that short differences reach every digit.
std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = 1469598103934665603ull;
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
  if (s.mask.kind != MaskKind::none) json["mask"] = mask_json(s.mask);
  if (s.scale) json["scale"] = *s.scale;
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
  if (const Json* mask = reader.find("mask")) read_mask(*mask, s.mask);
  reader.read("scale", s.scale);
  if (const Json* fill = reader.find("fill")) read_fill(*fill, s.fill);
  reader.read("poison", s.poison, {Poison::zero, Poison::finite, Poison::huge, Poison::nan});
  const Json* steps = reader.find("steps");
  if (!steps) fail("steps", "absent", "must be a list of steps");
  read_steps(*steps, s);
  reader.finish();
  return s;
}

Scenario parse_scenario(std::string_view text) {
  if (text.size() > kMaxText) {
    fail("text", fmt::format("{} bytes", text.size()),
         fmt::format("must be at most {} bytes", kMaxText));
  }
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw ScenarioError(fmt::format("scenario: not JSON at byte {}: {}", error.byte, error.what()));
  }
  Scenario scenario = scenario_from_json(json);
  const auto refusals = validate(scenario);
  if (!refusals.empty()) {
    std::string message = "scenario: ";
    for (std::size_t i = 0; i < refusals.size(); ++i) {
      message += (i ? "; " : "") + refusals[i].message();
    }
    throw ScenarioError(message);
  }
  return scenario;
}

std::string canonical_text(const Scenario& scenario) { return to_json(scenario).dump(); }

std::string content_hash(const Scenario& scenario) {
  return fmt::format("{:016x}", hash_text(canonical_text(scenario)));
}

}  // namespace kvcheck::model
