// Rows of the layout table.
#include "properties/commands/timeline_command.h"

#include <algorithm>
#include <optional>
#include <ostream>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/layout.h"
#include "model/scenario.h"
#include "model/timeline.h"
#include "properties/commands/timeline_answers.h"
#include "properties/commands/timeline_picture.h"
#include "properties/commands/timeline_scenario.h"

namespace kvcheck::properties {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBadUsage = 254;
constexpr std::int64_t kRowsShownWhole = 64;  ///< Longer tables leave out the growth between.
constexpr std::int64_t kBufferShown = 64;     ///< Largest buffer that JSON spells out.

std::optional<std::int64_t> free_rows(const model::CacheSpec& cache,
                                      const model::EntryStep& entry) {
  if (cache.capacity == 0) return {};
  return cache.capacity - entry.resident;
}

Json buffer_json(const model::Timeline& timeline, std::size_t step) {
  Json rows = Json::array();
  for (std::int64_t row = 0; row < timeline.buffer_rows(); ++row) {
    const auto position = timeline.position_in_row(step, 0, {row});
    rows.push_back(position ? Json(position->value) : Json());
  }
  return rows;
}

Json row_json(const model::Scenario& scenario, const model::Timeline& timeline, std::size_t index) {
  const model::TimelineStep& state = timeline.steps()[index];
  const model::EntryStep& entry = state.entries[0];
  Json row;
  row["step"] = index;
  if (entry.length >= entry.past) {
    row["append"] = entry.length - entry.past;
  } else {
    row["rollback"] = entry.past - entry.length;
  }
  row["T"] = entry.length;
  row["resident"] = entry.resident;
  row["first_position"] = entry.first_position.value;
  row["evicts"] = entry.evicted;
  row["max_exact_rollback"] = entry.max_exact_rollback;
  const auto free = free_rows(scenario.cache, entry);
  row["free_rows"] = free ? Json(*free) : Json();
  row["stages"] = std::holds_alternative<model::Append>(scenario.steps[index]) && entry.staged;
  row["defined"] = state.defined;
  if (!state.defined) row["why"] = state.undefined_reason;
  if (state.defined && timeline.buffer_rows() <= kBufferShown) {
    row["buffer"] = buffer_json(timeline, index);
  }
  return row;
}

void print_json(const TimelineOptions& o, const model::Scenario& scenario,
                const model::Timeline& timeline, std::ostream& out) {
  const bool block = scenario.cache.layout == model::LayoutKind::block;
  Json json;
  json["capacity"] = o.capacity;
  json["window"] = o.window;
  json["layout"] = o.layout;
  json["sinks"] = o.sinks;
  json["page_size"] = o.page_size;
  json["block"] = block ? Json(o.capacity - o.window + 1) : Json();
  json["rows"] = Json::array();
  for (std::size_t i = 0; i < scenario.steps.size(); ++i) {
    json["rows"].push_back(row_json(scenario, timeline, i));
  }
  json["exact_now"] = exact_now_json(scenario.cache, timeline);
  if (!keeps_every_token(scenario.cache)) json["drafts"] = drafts_json(timeline.layout());
  out << json.dump(2) << '\n';
}

std::string evicts_text(const model::EntryStep& entry) {
  if (entry.evicted == 0) return "-";
  const std::int64_t end = entry.first_position.value;
  if (entry.evicted == 1) return fmt::format("1 ({})", end - 1);
  return fmt::format("{} ({}-{})", entry.evicted, end - entry.evicted, end - 1);
}

/// Whether row `i` only continues a growth, so that a long table can do without it.
bool is_plain_growth(const model::Timeline& timeline, std::size_t i) {
  const auto& steps = timeline.steps();
  if (i == 0 || i + 1 >= steps.size()) return false;
  return steps[i].entries[0].evicted == 0 && steps[i + 1].entries[0].evicted == 0;
}

void print_table(const TimelineOptions& o, const model::Scenario& scenario,
                 const model::Timeline& timeline, std::ostream& out) {
  const bool named = !o.steps.empty();
  const auto& steps = scenario.steps;
  const bool shortened = !named && static_cast<std::int64_t>(steps.size()) > kRowsShownWhole;
  const BufferPicture picture(scenario.cache, timeline);
  const auto line = [&](const std::string& step, const auto& length, const auto& resident,
                        const auto& first, const std::string& evicts, const auto& rollback,
                        const auto& free, const std::string& rest) {
    if (named) out << fmt::format("{:<20}", step);
    out << fmt::format("{:>10}  {:>10}  {:>10}  {:<22}{:>18}  {:>10}  {}\n", length, resident,
                       first, evicts, rollback, free, rest);
  };
  line("step", "T", "resident L", "first", "evicts", "max exact rollback", "free rows",
       "rows of the buffer");
  bool skipping = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (shortened && is_plain_growth(timeline, i)) {
      if (!skipping) out << fmt::format("{:>10}\n", "...");
      skipping = true;
      continue;
    }
    skipping = false;
    const model::TimelineStep& state = timeline.steps()[i];
    const model::EntryStep& entry = state.entries[0];
    const auto free = free_rows(scenario.cache, entry);
    std::string rest = state.defined ? picture.line(i) : "not defined";
    if (entry.staged) rest += "  staged: gives away rows that its own queries read";
    if (!entry.rollback_exact) rest += "  NOT exact";
    line(model::describe(steps[i]), entry.length, entry.resident, entry.first_position.value,
         evicts_text(entry), entry.max_exact_rollback, free ? fmt::format("{}", *free) : "-", rest);
  }
  if (!picture.names_positions()) out << '\n' << picture.legend() << '\n';
  for (const auto& state : timeline.steps()) {
    if (state.defined) continue;
    out << "\nThe contract defines no rows after this: " << state.undefined_reason << ".\n";
    break;
  }
}

std::string title(const TimelineOptions& o, const model::CacheSpec& cache) {
  std::string text = fmt::format("layout {}, capacity", o.layout);
  if (keeps_every_token(cache)) {
    text += o.capacity > 0 ? fmt::format(" {}", o.capacity) : " as large as needed";
  } else {
    text += fmt::format(" C = {}, window W = {}", o.capacity, o.window);
  }
  if (o.sinks > 0) text += fmt::format(", {} sinks besides", o.sinks);
  if (o.page_size > 0) text += fmt::format(", pages of B = {}", o.page_size);
  if (cache.layout == model::LayoutKind::block) {
    text += fmt::format(", evicts blocks of G = C - W + 1 = {}", o.capacity - o.window + 1);
  }
  return text;
}

}  // namespace

int timeline_command(const TimelineOptions& options, std::ostream& out, std::ostream& err) {
  try {
    const model::Scenario scenario = timeline_scenario(options);
    const model::Timeline timeline(scenario);
    if (options.json) {
      print_json(options, scenario, timeline, out);
    } else {
      out << title(options, scenario.cache) << "\n\n";
      print_table(options, scenario, timeline, out);
      print_answers(scenario.cache, timeline, out);
    }
    return 0;
  } catch (const BadOption& error) {
    err << error.what() << '\n';
    return kBadUsage;
  }
}

}  // namespace kvcheck::properties
