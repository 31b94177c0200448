// Lines of observations.jsonl.
#include "properties/observations.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/scenario_json.h"

namespace kvcheck::properties {
namespace {

using Json = nlohmann::ordered_json;

/// Numbers and words that a notebook draws histograms of.
Json features_of(const Case& c) {
  const model::Scenario& s = c.scenario();
  std::int64_t tokens = 0, longest = 0, rollbacks = 0;
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    rollbacks += std::holds_alternative<model::Rollback>(s.steps[i]) ? 1 : 0;
    for (const auto& entry : c.timeline().steps()[i].entries) {
      tokens += std::max<std::int64_t>(0, entry.length - entry.past);
      longest = std::max(longest, entry.length);
    }
  }
  Json features;
  features["operator"] = std::string(to_string(s.op));
  features["layout"] = std::string(to_string(s.cache.layout));
  features["element_type"] = std::string(to_string(s.element_type));
  features["batch"] = s.batch;
  features["query_heads"] = s.query_heads;
  features["kv_heads"] = s.kv_heads;
  features["head_size"] = s.head_size;
  features["steps"] = s.steps.size();
  features["tokens"] = tokens;
  features["longest"] = longest;
  features["rollbacks"] = rollbacks;
  for (const auto& item : coverage_classes()) {
    if (item.reachable(c.capabilities())) features[item.name] = item.reached(s, c.timeline());
  }
  return features;
}

}  // namespace

std::string observation_line(const Case& c, const Origin& origin, Verdict worst,
                             const std::string& text, const std::string& run_start) {
  Json line;
  line["type"] = "test_case";
  line["run_start"] = run_start;
  line["property"] = c.capabilities().name;
  line["status"] = worst == Verdict::passed   ? "passed"
                   : worst == Verdict::failed ? "failed"
                                              : "gave_up";
  line["status_reason"] = text;
  line["representation"] = model::canonical_text(c.scenario());
  line["arguments"] = model::to_json(c.scenario());
  line["how_generated"] = fmt::format("{} case {}", to_string(origin.phase), origin.index);
  line["features"] = features_of(c);
  line["timing"] = Json::object();
  line["metadata"] = {{"hash", model::content_hash(c.scenario())}};
  line["coverage"] = nullptr;
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace kvcheck::properties
