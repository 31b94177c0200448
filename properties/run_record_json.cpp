// The JSON form of a run record: run.json.
//
// One list of fields per struct serves writing and reading, so the two cannot drift apart.
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/scenario_json.h"
#include "properties/run_record.h"

namespace kvcheck::properties {
namespace {

using Json = nlohmann::ordered_json;

template <class R, class T>
concept Of = std::same_as<std::remove_const_t<R>, T>;

void fields(auto& f, Of<TargetRecord> auto& r) {
  f("name", r.name), f("version", r.version), f("available", r.available);
  f("reason", r.reason), f("arithmetic", r.arithmetic);
}

void fields(auto& f, Of<PropertyRecord> auto& r) {
  f("property", r.property), f("statement", r.statement), f("target", r.target);
  f("status", r.status), f("scenarios", r.scenarios), f("skipped", r.skipped);
  f("blind", r.blind), f("failed", r.failed), f("errored", r.errored);
  f("known", r.known);
  f("reason", r.reason), f("max_bound_ratio", r.max_bound_ratio);
}

void fields(auto& f, Of<CoverageRecord> auto& r) {
  f("name", r.name), f("target", r.target), f("hits", r.hits), f("cases", r.cases);
  f("drawn_hits", r.drawn_hits), f("drawn", r.drawn);
  f("required", r.required), f("status", r.status);
}

void fields(auto& f, Of<PhaseRecord> auto& r) {
  f("phase", r.phase), f("target", r.target), f("cases", r.cases), f("rejected", r.rejected);
  f("draw_seconds", r.draw_seconds), f("judge_seconds", r.judge_seconds);
  f("next", r.next), f("stop", r.stop);
}

void fields(auto& f, Of<CandidateRecord> auto& r) {
  f("target", r.target), f("phase", r.phase), f("index", r.index), f("score", r.score);
  f("in_use", r.in_use), f("scenario", r.scenario);
}

void fields(auto& f, Of<KnownRecord> auto& r) {
  f("file", r.file), f("target", r.target), f("title", r.title), f("reference", r.reference);
  f("hits", r.hits), f("tried", r.tried), f("fixed", r.fixed);
}

void fields(auto& f, Of<RunSettings> auto& r) {
  f("targets", r.targets), f("properties", r.properties), f("focus", r.focus);
  f("phases", r.phases), f("cases", r.cases), f("seconds", r.seconds);
  f("case_seconds", r.case_seconds), f("shrink_seconds", r.shrink_seconds);
  f("shrink_evaluations", r.shrink_evaluations), f("context", r.context);
  f("observations", r.observations), f("named", r.named), f("corpus", r.corpus);
}

void fields(auto& f, Of<ErrorRecord> auto& r) {
  f("target", r.target), f("element_type", r.element_type), f("elements", r.elements);
  f("histogram", r.histogram), f("max_ratio", r.max_ratio), f("worst_hash", r.worst_hash);
}

void fields(auto& f, Of<VisibilityEvidence> auto& r) {
  f("entry", r.entry), f("head", r.head), f("query_position", r.query_position);
  f("measured", r.measured), f("expected", r.expected), f("observed", r.observed);
  f("weights", r.weights);
}

void fields(auto& f, Of<RowEvidence> auto& r) {
  f("entry", r.entry), f("row", r.row), f("expected_position", r.expected_position);
  f("observed_position", r.observed_position), f("observed_generation", r.observed_generation);
}

void fields(auto& f, Of<ElementEvidence> auto& r) {
  f("entry", r.entry), f("head", r.head), f("query", r.query);
  f("query_position", r.query_position), f("lane", r.lane);
  f("observed", r.observed), f("expected", r.expected), f("bound", r.bound), f("ratio", r.ratio);
  f("term_weights", r.term_weights), f("term_sums", r.term_sums);
  f("term_underflow", r.term_underflow), f("term_store", r.term_store);
  f("term_operands", r.term_operands);
}

void fields(auto& f, Of<EntryEvidence> auto& r) {
  f("length", r.length), f("resident", r.resident), f("first_position", r.first_position);
  f("evicted", r.evicted), f("queries", r.queries), f("staged", r.staged);
}

void fields(auto& f, Of<StepEvidence> auto& r) {
  f("what", r.what), f("answer", r.answer), f("entries", r.entries);
  f("visibility", r.visibility), f("rows", r.rows), f("elements", r.elements);
  f("elements_compared", r.elements_compared), f("max_ratio", r.max_ratio);
}

void fields(auto& f, Of<Evidence> auto& r) {
  f("failing_step", r.failing_step), f("words", r.words), f("notes", r.notes);
  f("steps", r.steps);
}

void fields(auto& f, Of<ShrinkStep> auto& r) {
  f("pass", r.pass), f("change", r.change), f("evaluation", r.evaluation);
}

void fields(auto& f, Of<FindingRecord> auto& r) {
  f("property", r.property), f("target", r.target), f("target_version", r.target_version);
  f("kind", r.kind), f("rule", r.rule), f("summary", r.summary), f("hash", r.hash),
      f("file", r.file);
  f("evaluations", r.evaluations), f("seconds", r.seconds), f("minimal", r.minimal);
  f("case_index", r.case_index), f("occurrences", r.occurrences);
  f("is_minimal", r.is_minimal), f("deterministic", r.deterministic);
  f("failure_rate", r.failure_rate), f("bits_differ", r.bits_differ);
  f("investigated", r.investigated);
  f("phase", r.phase), f("known", r.known);
  f("worst_ratio", r.worst_ratio), f("trail", r.trail), f("explain", r.explain);
  f("nearest_passing", r.nearest_passing), f("evidence", r.evidence);
  f("first", r.first), f("worst", r.worst);
}

void fields(auto& f, Of<RunRecord> auto& r) {
  f("schema", r.schema), f("tool", r.tool), f("seed", r.seed), f("workers", r.workers);
  f.group("totals", [&](auto& totals) {
    totals("scenarios", r.scenarios), totals("verdicts", r.verdicts);
    totals("seconds", r.seconds);
  });
  f("started", r.started), f("machine", r.machine), f("compiler", r.compiler);
  f("flags", r.flags), f("arguments", r.arguments), f("stop", r.stop);
  f("targets", r.targets), f("properties", r.properties), f("coverage", r.coverage);
  f("errors", r.errors), f("phases", r.phases), f("candidates", r.candidates);
  f("known", r.known);
  f("findings", r.findings), f("settings", r.settings), f("notes", r.notes);
}

/// A target's last words may be any bytes; a record that cannot be written would lose the run.
Json text_json(const std::string& text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json double_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

// What does not depend on the type of a field stays out of the templates: a hundred fields would
// each carry a copy of it.
class Writer {
 public:
  explicit Writer(Json& out) : out_(out) { out_ = Json::object(); }

  template <class T>
  void operator()(const char* name, const T& value) {
    put(name, value_of(value));
  }

  template <class Body>
  void group(const char* name, const Body& body) {
    Writer inner(out_[name]);
    body(inner);
  }

 private:
  template <class T>
  static Json value_of(const T& value) {
    if constexpr (std::is_same_v<T, double>) {
      return double_json(value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      return text_json(value);
    } else if constexpr (std::is_same_v<T, Verdict> || std::is_same_v<T, Kind>) {
      return std::string(to_string(value));
    } else if constexpr (std::is_same_v<T, model::Scenario>) {
      return model::to_json(value);
    } else if constexpr (std::is_arithmetic_v<T>) {
      return value;
    } else {
      Json json;
      Writer inner(json);
      fields(inner, value);
      return json;
    }
  }

  template <class T>
  static Json value_of(const std::vector<T>& values) {
    Json list = Json::array();
    for (const T& value : values) append(list, value_of(value));
    return list;
  }

  void put(const char* name, Json value);
  static void append(Json& list, Json value);

  Json& out_;
};

void Writer::put(const char* name, Json value) { out_[name] = std::move(value); }
void Writer::append(Json& list, Json value) { list.push_back(std::move(value)); }

[[noreturn]] void fail(const std::string& path, const Json& found, std::string_view remedy) {
  constexpr std::size_t kShown = 60;
  std::string text = found.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  throw model::ScenarioError(path + " = " + text + ": must be " + std::string(remedy));
}

class Reader {
 public:
  Reader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json_.is_object()) fail(path_.empty() ? "run record" : path_, json_, "an object");
  }

  template <class T>
  void operator()(const char* name, T& value) const {
    if (const Json* found = find(name)) read(*found, path_of(name), value);
  }

  template <class Body>
  void group(const char* name, const Body& body) const {
    if (const Json* found = find(name)) {
      const Reader inner(*found, path_of(name));
      body(inner);
    }
  }

 private:
  const Json* find(const char* name) const;
  std::string path_of(const char* name) const;

  template <class T>
  static void read_integer(const Json& json, const std::string& path, T& value) {
    const auto refuse = [&] {
      fail(path, json,
           "a whole number from " + std::to_string(std::numeric_limits<T>::min()) + " to " +
               std::to_string(std::numeric_limits<T>::max()));
    };
    if (json.is_number_unsigned()) {
      const auto number = json.get<std::uint64_t>();
      if (number > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) refuse();
      value = static_cast<T>(number);
    } else if (json.is_number_integer() && std::is_signed_v<T>) {
      const auto number = json.get<std::int64_t>();
      if (number < static_cast<std::int64_t>(std::numeric_limits<T>::min())) refuse();
      value = static_cast<T>(number);
    } else {
      refuse();
    }
  }

  static void read_double(const Json& json, const std::string& path, double& value) {
    if (json.is_number()) {
      value = json.get<double>();
    } else if (json == "nan") {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (json == "inf") {
      value = std::numeric_limits<double>::infinity();
    } else if (json == "-inf") {
      value = -std::numeric_limits<double>::infinity();
    } else {
      fail(path, json, "a number, \"nan\", \"inf\" or \"-inf\"");
    }
  }

  template <class T, class From>
  static void read_name(const Json& json, const std::string& path, T& value, const From& from,
                        std::string_view remedy) {
    const auto found = json.is_string() ? from(json.get_ref<const std::string&>()) : std::nullopt;
    if (!found) fail(path, json, remedy);
    value = *found;
  }

  static void read_scenario(const Json& json, const std::string& path, model::Scenario& value) {
    try {
      value = model::scenario_from_json(json);
    } catch (const model::ScenarioError& error) {
      throw model::ScenarioError(path + ": " + error.what());
    }
  }

  template <class T>
  static void read(const Json& json, const std::string& path, T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) fail(path, json, "true or false");
      value = json.get<bool>();
    } else if constexpr (std::is_same_v<T, double>) {
      read_double(json, path, value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!json.is_string()) fail(path, json, "a string");
      value = json.get<std::string>();
    } else if constexpr (std::is_same_v<T, Verdict>) {
      read_name(json, path, value, verdict_from, "passed, skipped, blind, failed or errored");
    } else if constexpr (std::is_same_v<T, Kind>) {
      read_name(json, path, value, kind_from, "a kind of finding, for example leak");
    } else if constexpr (std::is_same_v<T, model::Scenario>) {
      read_scenario(json, path, value);
    } else if constexpr (std::is_integral_v<T>) {
      read_integer(json, path, value);
    } else {
      const Reader inner(json, path);
      fields(inner, value);
    }
  }

  template <class T>
  static void read(const Json& json, const std::string& path, std::vector<T>& values) {
    if (!json.is_array()) fail(path, json, "a list");
    values.clear();
    values.reserve(json.size());
    for (std::size_t i = 0; i < json.size(); ++i) {
      read(json[i], path + "[" + std::to_string(i) + "]", values.emplace_back());
    }
  }

  const Json& json_;
  std::string path_;
};

const Json* Reader::find(const char* name) const {
  const auto found = json_.find(name);
  return found == json_.end() ? nullptr : &*found;
}

std::string Reader::path_of(const char* name) const {
  return path_.empty() ? name : path_ + "." + name;
}

}  // namespace

Json to_json(const RunRecord& record) {
  Json json;
  Writer writer(json);
  fields(writer, record);
  return json;
}

RunRecord run_record_from_json(const Json& json) {
  RunRecord record;
  const Reader reader(json, "");
  // Before the rest: a newer schema may give other types to the same names.
  reader("schema", record.schema);
  if (record.schema < 1 || record.schema > kRunSchema) {
    fail("schema", record.schema,
         std::to_string(kRunSchema) + "; read this record with the kvcheck that wrote it");
  }
  fields(reader, record);
  return record;
}

}  // namespace kvcheck::properties
