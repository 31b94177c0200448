// Sentences and fields of a sweep.
#include "properties/commands/sweep_words.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kvcheck::properties {
namespace {

using Json = nlohmann::ordered_json;

std::string ratio_text(double ratio) {
  return std::isfinite(ratio) ? fmt::format("{:.3g}", ratio) : std::string("no finite number");
}

/// JSON has no infinity.
Json ratio_json(double ratio) { return std::isfinite(ratio) ? Json(ratio) : Json("inf"); }

std::string breaker_words(const SweepRecord& record, Breaker breaker) {
  switch (breaker) {
    case Breaker::neither:
      return "neither breaks the contract";
    case Breaker::target:
      return fmt::format("{} breaks the contract", record.target);
    case Breaker::against:
      return fmt::format("{} breaks the contract", record.against);
    case Breaker::both:
      return "both break the contract";
  }
  return "";
}

std::string known_words(const SweepGroup& group) {
  return group.known ? fmt::format("  known: {} ({}, {})\n", group.known->title, group.known->file,
                                   group.known->reference())
                     : "";
}

std::string reading_words(const SweepGroup& group) {
  if (!group.model) {
    return group.nearest.empty() ? "" : fmt::format("  the first: {}\n", group.nearest);
  }
  std::string words =
      fmt::format("  all explained by {}: it {} (largest bound ratio then {:.2g})\n",
                  group.model->name, group.model->statement, group.explained_ratio);
  if (group.differs_elsewhere > 0) {
    words += fmt::format(
        "  not everywhere: it would have changed {} of {} agreeing configurations too\n",
        group.differs_elsewhere, group.asked_elsewhere);
  }
  return words;
}

std::string group_text(const SweepRecord& record, std::size_t at) {
  const SweepGroup& group = record.result.groups[at];
  std::string text = "\n" + cell_sentence(record, group.cell) + "\n";
  if (!record.against.empty()) text += "  " + breaker_words(record, group.breaker) + "\n";
  text += known_words(group) + reading_words(group);
  if (!group.property.empty()) {
    text += fmt::format("  {} ({}){}\n", group.property, to_string(group.kind),
                        group.ratio > 0 ? ", largest bound ratio " + ratio_text(group.ratio) : "");
  } else {
    text += fmt::format("  largest difference over the bound {}\n", ratio_text(group.ratio));
  }
  text += fmt::format("  first: {}\n", group.text);
  if (!record.commands[at].empty()) text += fmt::format("  {}\n", record.commands[at]);
  return text;
}

std::string counts_text(const SweepRecord& record) {
  const SweepResult& result = record.result;
  const bool two = !record.against.empty();
  std::string text;
  const auto line = [&](const char* name, std::int64_t count, const std::string& remark = "") {
    text += fmt::format("{:<10} {:>9}{}\n", name, with_commas(count),
                        remark.empty() ? "" : "  " + remark);
  };
  const std::string within = fmt::format("largest bound ratio {:.3g}", result.max_ratio);
  line(two ? "equal" : "agree", result.agree,
       two && result.both_alike_break > 0 ? fmt::format("of which {} break the contract alike",
                                                        with_commas(result.both_alike_break))
       : !two && result.agree > 0         ? within
                                          : "");
  line(two ? "differ" : "diverge", result.diverge,
       two && result.diverge > 0    ? fmt::format("{} breaks the contract in {}, {} in {}",
                                                  record.target, with_commas(result.target_breaks),
                                                  record.against, with_commas(result.against_breaks))
       : !two && result.diverge > 0 ? fmt::format("{} explained", with_commas(result.explained))
                                    : "");
  for (const auto& [entry, count] : result.known) {
    text += fmt::format("             {} known: {}\n", with_commas(count), entry->title);
  }
  line("refused", result.refused);
  for (const auto& [reason, count] : result.refusals) {
    text += fmt::format("             {} {}\n", with_commas(count), reason);
  }
  if (result.errored > 0) line("errored", result.errored, result.first_error);
  return text;
}

Json cell_json(const SweepRecord& record, const Cell& cell) {
  Json where = Json::object();
  for (const Restriction& restriction : cell.where) {
    where[record.grid.axes[restriction.axis].name] = restriction_values(record.grid, restriction);
  }
  Json json;
  json["configurations"] = cell.members;
  json["exact"] = cell.exact();
  json["agreeing_inside"] = cell.agreeing;
  json["others_inside"] = cell.others;
  json["where"] = where;
  json["words"] = cell_sentence(record, cell);
  return json;
}

Json group_json(const SweepRecord& record, std::size_t at) {
  const SweepGroup& group = record.result.groups[at];
  Json json = cell_json(record, group.cell);
  json["explained_by"] = group.model ? Json(group.model->name) : Json(nullptr);
  json["statement"] = group.model ? Json(group.model->statement) : Json(nullptr);
  json["known"] = group.known ? Json(group.known->file) : Json(nullptr);
  json["nearest"] = group.nearest;
  json["explained_ratio"] = group.explained_ratio;
  json["agreeing_asked"] = group.asked_elsewhere;
  json["agreeing_changed"] = group.differs_elsewhere;
  if (!record.against.empty()) json["breaks"] = to_string(group.breaker);
  json["property"] = group.property;
  json["kind"] = group.property.empty() ? "" : to_string(group.kind);
  json["ratio"] = ratio_json(group.ratio);
  json["summary"] = group.text;
  json["file"] = record.files[at];
  json["replay"] = record.commands[at];
  return json;
}

}  // namespace

std::string cell_sentence(const SweepRecord& record, const Cell& cell) {
  const SweepResult& result = record.result;
  const bool two = !record.against.empty();
  const std::string head =
      fmt::format("{} of {} {}", with_commas(cell.members),
                  with_commas(result.agree + result.diverge), two ? "differ" : "diverge");
  const std::string where = cell_words(record.grid, cell);
  if (cell.exact()) {
    return where.empty() ? head + ": all of them"
                         : fmt::format("{}: exactly those with {}", head, where);
  }
  std::string others;
  if (cell.agreeing > 0)
    others = fmt::format("{} {}", with_commas(cell.agreeing), two ? "are equal" : "agree");
  if (cell.others > 0) {
    others += fmt::format("{}{} {} otherwise", others.empty() ? "" : " and ",
                          with_commas(cell.others), two ? "differ" : "diverge");
  }
  return where.empty() ? fmt::format("{}, without a common place ({})", head, others)
                       : fmt::format("{}: all with {}, where {}", head, where, others);
}

std::string sweep_text(const SweepRecord& record) {
  const SweepResult& result = record.result;
  std::string text = fmt::format(
      "{}: {} configurations = {}\n{} {}{}\n\n", record.grid.name, with_commas(record.grid.count),
      record.grid.arithmetic, record.target, record.target_version,
      record.against.empty()
          ? ""
          : fmt::format(" against {} {}", record.against, record.against_version));
  text += counts_text(record);
  if (result.interrupted) {
    text += fmt::format("interrupted after {} of {}\n", with_commas(result.done),
                        with_commas(result.configurations));
  }
  if (result.groups.size() > 1) {
    text += "\n" + cell_sentence(record, result.all) + "\n";
  }
  for (std::size_t i = 0; i < result.groups.size(); ++i) text += group_text(record, i);
  text += fmt::format("\n{} configurations in {:.1f} s, {:.0f}/s\n", with_commas(result.done),
                      record.seconds,
                      static_cast<double>(result.done) / std::max(1e-3, record.seconds));
  return text;
}

Json sweep_json(const SweepRecord& record) {
  const SweepResult& result = record.result;
  Json json;
  json["grid"] = record.grid.name;
  json["target"] = record.target;
  json["target_version"] = record.target_version;
  json["against"] = record.against.empty() ? Json(nullptr) : Json(record.against);
  if (!record.against.empty()) json["against_version"] = record.against_version;
  json["configurations"] = result.configurations;
  json["done"] = result.done;
  json["agree"] = result.agree;
  json["diverge"] = result.diverge;
  json["refused"] = result.refused;
  json["errored"] = result.errored;
  json["explained"] = result.explained;
  json["known"] = Json::array();
  for (const auto& [entry, count] : result.known) {
    json["known"].push_back({{"entry", entry->file}, {"configurations", count}});
  }
  json["seconds"] = record.seconds;
  json["interrupted"] = result.interrupted;
  json["max_bound_ratio"] = result.max_ratio;
  if (!record.against.empty()) {
    json["target_breaks"] = result.target_breaks;
    json["against_breaks"] = result.against_breaks;
    json["both_alike_break"] = result.both_alike_break;
  }
  json["refusals"] = Json::array();
  for (const auto& [reason, count] : result.refusals) {
    json["refusals"].push_back({{"reason", reason}, {"configurations", count}});
  }
  json["diverging"] = result.diverge > 0 ? cell_json(record, result.all) : Json(nullptr);
  json["cells"] = Json::array();
  for (std::size_t i = 0; i < result.groups.size(); ++i) {
    json["cells"].push_back(group_json(record, i));
  }
  return json;
}

}  // namespace kvcheck::properties
