// Rendering.
#include "properties/audit/audit_text.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kvcheck::properties {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
double median(std::vector<T> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1
             ? static_cast<double>(values[half])
             : (static_cast<double>(values[half - 1]) + static_cast<double>(values[half])) / 2;
}

struct Medians {
  double scenarios = 0, seconds = 0, slowest = 0;
};

Medians medians(const std::vector<const SubjectResult*>& faults) {
  std::vector<std::int64_t> scenarios;
  std::vector<double> seconds;
  for (const SubjectResult* fault : faults) {
    if (!fault->killed) continue;
    scenarios.push_back(fault->scenarios);
    seconds.push_back(fault->seconds);
  }
  const double slowest = seconds.empty() ? 0 : *std::max_element(seconds.begin(), seconds.end());
  return {median(scenarios), median(seconds), slowest};
}

/// Faults by kind, kinds in the order in which they first appear.
std::vector<std::pair<std::string, std::vector<const SubjectResult*>>> by_kind(
    const AuditResult& result) {
  std::vector<std::pair<std::string, std::vector<const SubjectResult*>>> groups;
  for (const SubjectResult& fault : result.faults) {
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& one) { return one.first == fault.kind; });
    if (group == groups.end()) {
      groups.push_back({fault.kind, {&fault}});
    } else {
      group->second.push_back(&fault);
    }
  }
  return groups;
}

std::string survivors_text(const AuditResult& result) {
  std::string text;
  for (const SubjectResult& fault : result.faults) {
    if (fault.killed) continue;
    text += fmt::format("survivor  {}  ({}; {} scenarios, {:.1f} s){}\n          {}\n", fault.name,
                        fault.kind, fault.scenarios, fault.seconds,
                        fault.first.empty() ? "" : "; seen, but not by its kind: " + fault.first,
                        fault.statement);
  }
  return text;
}

std::string kinds_text(const AuditResult& result) {
  std::string text;
  for (const auto& [kind, faults] : by_kind(result)) {
    const Medians middle = medians(faults);
    const auto killed = std::count_if(faults.begin(), faults.end(),
                                      [](const SubjectResult* fault) { return fault->killed; });
    text += fmt::format("{}: {} of {} killed, median {:.0f} scenarios, {:.3f} s\n", kind, killed,
                        faults.size(), middle.scenarios, middle.seconds);
    for (const SubjectResult* fault : faults) {
      text += fmt::format("  {:<44} {:>7} {:>8.3f} s  {}\n", fault->name, fault->scenarios,
                          fault->seconds,
                          fault->killed ? fault->by + " (" + fault->finding + ")" : "survived");
    }
  }
  return text;
}

std::string matrix_text(const AuditResult& result) {
  std::string text = "What each property saw:\n";
  for (const auto& [property, kinds] : result.matrix()) {
    std::string row;
    std::int64_t total = 0;
    for (const auto& [kind, count] : kinds) {
      row += fmt::format("{}{} {}", row.empty() ? "" : ", ", count, kind);
      total += count;
    }
    text += fmt::format("  {:<28} {:>4}  {}\n", property, total, row);
  }
  const auto weak = weak_properties(result);
  if (!weak.empty()) {
    text += fmt::format("Fewer than two faults seen: {}\n", fmt::join(weak, ", "));
  }
  if (!result.unasked.empty()) {
    text += fmt::format(
        "Not asked, because no target with a planted fault takes operator calls: {} "
        "(tests/properties/operator_calls_test.cpp plants faults of calls)\n",
        fmt::join(result.unasked, ", "));
  }
  return text;
}

std::string controls_text(const AuditResult& result) {
  std::string text = "Without a fault:\n";
  for (const ControlResult& control : result.controls) {
    text += fmt::format("  {:<28} {:>7} scenarios, {} false alarms{}\n", control.name,
                        control.scenarios, control.false_alarms,
                        control.sentence.empty() ? "" : ": " + control.sentence);
  }
  return text;
}

Json fault_json(const SubjectResult& fault) {
  Json json = {
      {"name", fault.name},           {"place", fault.place},     {"kind", fault.kind},
      {"killed", fault.killed},       {"by", fault.by},           {"finding", fault.finding},
      {"scenarios", fault.scenarios}, {"seconds", fault.seconds}, {"statement", fault.statement},
      {"sentence", fault.sentence},   {"seen_by", fault.seen_by}};
  if (!fault.first.empty()) json["not_by_kind"] = fault.first;
  return json;
}

std::vector<const SubjectResult*> all_of(const AuditResult& result) {
  std::vector<const SubjectResult*> all;
  for (const SubjectResult& fault : result.faults) all.push_back(&fault);
  return all;
}

}  // namespace

std::vector<std::string> weak_properties(const AuditResult& result, std::int64_t least) {
  std::vector<std::string> weak;
  for (const auto& [property, kinds] : result.matrix()) {
    std::int64_t total = 0;
    for (const auto& [kind, count] : kinds) total += count;
    const bool asked =
        std::find(result.unasked.begin(), result.unasked.end(), property) == result.unasked.end();
    if (asked && total < least) weak.push_back(property);
  }
  return weak;
}

std::string audit_text(const AuditResult& result) {
  const Medians middle = medians(all_of(result));
  return survivors_text(result) + kinds_text(result) + matrix_text(result) + controls_text(result) +
         fmt::format(
             "{} of {} faults killed, each by a property that names its kind; median {:.0f} "
             "scenarios and {:.3f} s to detection, slowest {:.2f} s; {} false alarms; {:.1f} s in "
             "all{}{}{}\n",
             result.killed(), result.faults.size(), middle.scenarios, middle.seconds,
             middle.slowest, result.false_alarms(), result.seconds,
             result.options.context > 0 ? fmt::format("; context {}", result.options.context) : "",
             result.options.one_row ? "; in single rows of a single head" : "",
             result.options.random_only ? "; random draws alone" : "");
}

std::string audit_json(const AuditResult& result) {
  const Medians middle = medians(all_of(result));
  Json json = {{"schema", 1},
               {"seed", result.options.seed},
               {"context", result.options.context},
               {"row", result.options.one_row},
               {"random", result.options.random_only}};
  json["faults"] = Json::array();
  for (const SubjectResult& fault : result.faults) json["faults"].push_back(fault_json(fault));
  json["totals"] = {{"faults", result.faults.size()},       {"killed", result.killed()},
                    {"median_scenarios", middle.scenarios}, {"median_seconds", middle.seconds},
                    {"slowest_seconds", middle.slowest},    {"seconds", result.seconds}};
  json["false_alarms"] = result.false_alarms();
  json["controls"] = Json::array();
  for (const ControlResult& control : result.controls) {
    json["controls"].push_back({{"name", control.name},
                                {"scenarios", control.scenarios},
                                {"false_alarms", control.false_alarms},
                                {"sentence", control.sentence},
                                {"seconds", control.seconds}});
  }
  json["properties"] = Json::array();
  for (const auto& [property, kinds] : result.matrix()) {
    json["properties"].push_back({{"id", property}, {"sees", kinds}});
  }
  json["weak_properties"] = weak_properties(result);
  json["unasked_properties"] = result.unasked;
  return json.dump(1) + "\n";
}

}  // namespace kvcheck::properties
