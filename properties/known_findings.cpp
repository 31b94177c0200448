// Entries of the ledger as files.
#include "properties/known_findings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "model/json_reader.h"
#include "model/scenario_json.h"
#include "model/wrong_models.h"
#include "properties/verdict.h"

namespace kvcheck::properties {
namespace {

namespace fs = std::filesystem;
using model::Json;
using model::Reader;

constexpr KnownValues kKnownValues[] = {KnownValues::lowest_for_hidden,
                                        KnownValues::overflow_before_division,
                                        KnownValues::lowest_row_is_empty};

void read_text(Reader& reader, const std::string& name, std::string& out) {
  const Json* value = reader.find(name);
  if (!value) return;
  if (!value->is_string()) model::fail(reader.field(name), model::shown(*value), "must be a text");
  out = value->get<std::string>();
}

std::vector<std::string> texts(const Json& value, const std::string& field) {
  std::vector<std::string> out;
  if (!value.is_array()) model::fail(field, model::shown(value), "must be a list of texts");
  for (const Json& item : value) {
    if (!item.is_string()) model::fail(field, model::shown(item), "must be a text");
    out.push_back(item.get<std::string>());
  }
  return out;
}

void read_failures(Reader& reader, KnownFinding& known) {
  const Json* value = reader.find("failures");
  if (!value || !value->is_object() || value->empty()) {
    model::fail("failures", value ? model::shown(*value) : "nothing",
                "must name the kinds of failure by property, for example "
                "{\"mask.visible_set\": [\"leak\"]}");
  }
  for (const auto& item : value->items()) {
    const std::string field = reader.field("failures." + item.key());
    if (!find_property(item.key())) {
      model::fail(field, "property", "there is none; `kvcheck list properties` shows all");
    }
    const auto kinds = texts(item.value(), field);
    for (const std::string& kind : kinds) {
      if (!kind_from(kind)) model::fail(field, kind, "must be a kind of finding, such as leak");
    }
    known.failures[item.key()] = kinds;
  }
}

void read_condition(Reader& reader, KnownCondition& condition) {
  const Json* value = reader.find("condition");
  if (!value) model::fail("condition", "nothing", "must say which queries the entry is about");
  Reader fields(*value, "condition");
  const auto flag = [&](const char* name, std::optional<bool>& out) {
    if (!value->is_object() || value->find(name) == value->end()) return;
    bool read = false;
    fields.read(name, read);
    out = read;
  };
  std::string op;
  read_text(fields, "operator", op);
  if (!op.empty()) condition.op = op;
  flag("causal", condition.causal);
  flag("nonpad_kv_seqlen", condition.nonpad);
  if (const Json* types = fields.find("element_types")) {
    condition.element_types = texts(*types, "condition.element_types");
  }
  fields.read("opsets", condition.opsets);
  fields.read("queries", condition.queries);
  fields.read("least_tokens", condition.least_tokens);
  fields.read("least_past", condition.least_past);
  fields.finish();
}

void read_releases(Reader& reader, KnownFinding& known) {
  const Json* value = reader.find("releases");
  if (!value) model::fail("releases", "nothing", "must say for which releases the entry holds");
  Reader fields(*value, "releases");
  read_text(fields, "first", known.first_release);
  read_text(fields, "last", known.last_release);
  fields.finish();
}

/// The next number of a release, which is moved behind it; what is no number counts as 0.
std::int64_t next_number(std::string_view& release) {
  const auto dot = std::min(release.find('.'), release.size());
  std::int64_t number = 0;
  std::from_chars(release.data(), release.data() + dot, number);
  release.remove_prefix(std::min(dot + 1, release.size()));
  return number;
}

/// The one thing that says which answers the entry explains.
void read_explanation(Reader& reader, KnownFinding& known) {
  std::string values;
  read_text(reader, "reading", known.reading);
  read_text(reader, "values", values);
  const Json* rules = reader.find("rules");
  if (rules) known.rules = texts(*rules, "rules");
  const bool named = !known.reading.empty() || !values.empty();
  const bool both = !known.reading.empty() && !values.empty();
  if (both || named == !known.rules.empty()) {
    model::fail("reading", known.reading,
                "give one of reading, values and rules: without one another fault could hide "
                "behind the entry");
  }
  if (!known.reading.empty() && !model::find_wrong_model(known.reading)) {
    model::fail("reading", known.reading,
                "must be a wrong model (see model/wrong_models.h) that gives what the target "
                "answers");
  }
  if (values.empty()) return;
  for (const KnownValues one : kKnownValues) {
    if (to_string(one) == values) known.values = one;
  }
  if (known.values == KnownValues::none) {
    model::fail("values", values,
                "must be lowest_for_hidden, overflow_before_division or lowest_row_is_empty");
  }
}

KnownFinding read_entry(const Json& json, const std::string& file) {
  KnownFinding known;
  known.file = file;
  Reader reader(json, "");
  int schema = 0;
  reader.read("schema", schema);
  if (schema != 1) model::fail("schema", std::to_string(schema), "must be 1");
  read_text(reader, "title", known.title);
  read_text(reader, "target", known.target);
  if (known.target.empty()) model::fail("target", "nothing", "must name a target");
  read_releases(reader, known);
  read_failures(reader, known);
  read_condition(reader, known.condition);
  read_explanation(reader, known);
  read_text(reader, "issue", known.issue);
  if (!known.issue.empty() && known.issue.rfind("https://", 0) != 0) {
    model::fail("issue", known.issue, "must be the address of a public issue, https://...");
  }
  read_text(reader, "sentence", known.sentence);
  if (const Json* scenario = reader.find("scenario")) {
    known.scenario = model::scenario_from_json(*scenario);
    const auto refusals = model::validate(*known.scenario);
    if (!refusals.empty()) throw model::ScenarioError(refusals.front().message());
  }
  reader.finish();
  if (known.issue.empty() && (!known.scenario || known.sentence.empty())) {
    model::fail("issue", "nothing",
                "name a public issue, or give the minimal scenario and the sentence of the "
                "contract that it breaks");
  }
  return known;
}

}  // namespace

std::string_view to_string(KnownValues values) {
  switch (values) {
    case KnownValues::lowest_for_hidden:
      return "lowest_for_hidden";
    case KnownValues::overflow_before_division:
      return "overflow_before_division";
    case KnownValues::lowest_row_is_empty:
      return "lowest_row_is_empty";
    case KnownValues::none:
      break;
  }
  return "";
}

KnownFinding known_finding_from(const std::string& text, const std::string& file) {
  try {
    const Json json = Json::parse(text);
    if (!model::is_shallow(json, model::kMaxDepth)) {
      model::fail("text", "lists within lists", "must nest less deeply");
    }
    return read_entry(json, file);
  } catch (const Json::exception& error) {
    throw model::ScenarioError("known finding " + file + " is not JSON: " + error.what());
  } catch (const model::ScenarioError& error) {
    throw model::ScenarioError("known finding " + file + ": " + error.what());
  }
}

std::vector<KnownFinding> load_known(const fs::path& folder) {
  std::vector<fs::path> files;
  if (fs::exists(folder)) {
    for (const auto& item : fs::directory_iterator(folder)) {
      const bool hidden = item.path().filename().string().front() == '.';
      if (item.path().extension() == ".json" && !hidden) files.push_back(item.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<KnownFinding> entries;
  for (const fs::path& file : files) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    entries.push_back(known_finding_from(text.str(), file.filename().string()));
  }
  return entries;
}

fs::path known_folder() {
  const char* variable = std::getenv("KVCHECK_KNOWN");
  return variable && *variable ? variable : KVCHECK_DEFAULT_KNOWN;
}

int compare_releases(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    const std::int64_t left = next_number(a), right = next_number(b);
    if (left != right) return left < right ? -1 : 1;
  }
  return 0;
}

bool holds_for(const KnownFinding& known, const kernels::Capabilities& target) {
  if (target.name.substr(0, target.name.find('@')) != known.target) return false;
  if (!known.first_release.empty() && compare_releases(target.version, known.first_release) < 0) {
    return false;
  }
  return known.last_release.empty() || compare_releases(target.version, known.last_release) <= 0;
}

}  // namespace kvcheck::properties
