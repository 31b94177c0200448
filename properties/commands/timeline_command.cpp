// Rows and pictures of the layout table.
#include "properties/commands/timeline_command.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::properties {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBadUsage = 254;
constexpr std::int64_t kMaxRows = 100000;
constexpr std::int64_t kRowsShownWhole = 64;  ///< Longer tables leave out the growth between.
constexpr std::int64_t kCellColumns = 64;     ///< Widest picture that names positions.
constexpr std::int64_t kBarColumns = 40;

/// Options that cannot be served; what() names the option, the value and the remedy.
struct BadOption : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void refuse(std::string_view option, const std::string& value,
                         const std::string& remedy) {
  throw BadOption(fmt::format("timeline: {} = {}: {}", option, value, remedy));
}

bool is_block(const TimelineOptions& options) { return options.layout == "block"; }

std::int64_t block_rows(const TimelineOptions& options) {
  return options.capacity - options.window + 1;
}

void check_cache(const TimelineOptions& o) {
  if (o.layout != "block" && o.layout != "full") {
    refuse("--layout", fmt::format("\"{}\"", o.layout), "must be block or full");
  }
  const std::int64_t least = is_block(o) ? 1 : 0;
  if (o.capacity < least || o.capacity > model::kMaxLength) {
    refuse("--capacity", fmt::format("{}", o.capacity),
           fmt::format("must be between {} and {}", least, model::kMaxLength));
  }
  if (o.window < least || o.window > model::kMaxLength) {
    refuse("--window", fmt::format("{}", o.window),
           fmt::format("must be between {} and {}", least, model::kMaxLength));
  }
  if (is_block(o) && o.window > o.capacity) {
    refuse(
        "--window", fmt::format("{}", o.window),
        fmt::format("must be at most the capacity ({}); lower it or raise --capacity", o.capacity));
  }
}

model::Step step_of(std::int64_t change) {
  if (change < 0) return model::Rollback{{-change}};
  return model::Append{{change}, {change}, 0};
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

/// One number of --steps.
std::int64_t parse_change(std::string_view text) {
  std::string_view digits = trimmed(text);
  std::int64_t change = 0;
  const bool plus = !digits.empty() && digits.front() == '+';
  if (plus) digits.remove_prefix(1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), change);
  if (digits.empty() || error == std::errc::invalid_argument ||
      end != digits.data() + digits.size() || (plus && change < 0)) {
    refuse("--steps", fmt::format("\"{}\"", text.substr(0, 40)),
           "must be whole numbers with commas between: n appends n tokens, -n drops the newest n");
  }
  if (error != std::errc{} || change == 0 || change > model::kMaxLength ||
      change < -model::kMaxLength) {
    refuse("--steps", fmt::format("\"{}\"", text.substr(0, 40)),
           fmt::format("must be from 1 to {} tokens, or negative", model::kMaxLength));
  }
  return change;
}

std::vector<model::Step> parse_steps(const TimelineOptions& o) {
  std::vector<model::Step> steps;
  const std::int64_t bound =
      !is_block(o) && o.capacity > 0 ? o.capacity : std::int64_t{model::kMaxLength};
  std::int64_t length = 0;
  std::string_view rest = o.steps;
  while (true) {
    const auto comma = rest.find(',');
    const std::int64_t change = parse_change(rest.substr(0, comma));
    length += change;
    if (length < 0) {
      refuse("--steps", fmt::format("{}", change),
             fmt::format("drops more than the {} tokens that the sequence holds", length - change));
    }
    if (length > bound) {
      refuse("--steps", fmt::format("{}", change),
             fmt::format("makes a length of {}; at most {} fit", length, bound));
    }
    steps.push_back(step_of(change));
    if (static_cast<std::int64_t>(steps.size()) > kMaxRows) {
      refuse("--steps", "too many", fmt::format("must be at most {} steps", kMaxRows));
    }
    if (comma == std::string_view::npos) return steps;
    rest.remove_prefix(comma + 1);
  }
}

std::vector<model::Step> single_tokens(const TimelineOptions& o) {
  const bool bounded = !is_block(o) && o.capacity > 0;
  std::int64_t until = o.until;
  if (until == 0) {
    until = is_block(o) ? std::max<std::int64_t>(16, o.capacity + 3 * block_rows(o) + 1) : 16;
    if (bounded) until = o.capacity;
  }
  if (until < 1 || until > kMaxRows) {
    refuse("--until", fmt::format("{}", until),
           fmt::format("must be between 1 and {}; larger lengths can be given with --steps",
                       kMaxRows));
  }
  if (bounded && until > o.capacity) {
    refuse("--until", fmt::format("{}", until),
           fmt::format("must be at most the capacity ({}) of layout full", o.capacity));
  }
  return std::vector<model::Step>(static_cast<std::size_t>(until), step_of(1));
}

model::Timeline simulate(const TimelineOptions& o, const std::vector<model::Step>& steps) {
  model::Scenario scenario;
  scenario.cache.layout = is_block(o) ? model::LayoutKind::block : model::LayoutKind::full;
  scenario.cache.capacity = o.capacity;
  if (o.window > 0) scenario.cache.window_size = o.window;
  scenario.steps = steps;
  return model::Timeline(scenario);
}

std::optional<std::int64_t> free_rows(const TimelineOptions& o, const model::EntryStep& entry) {
  if (o.capacity == 0) return {};
  return o.capacity - entry.resident;
}

Json row_json(const TimelineOptions& o, const model::Step& step, std::size_t index,
              const model::TimelineStep& state) {
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
  const auto free = free_rows(o, entry);
  row["free_rows"] = free ? Json(*free) : Json();
  row["stages"] = std::holds_alternative<model::Append>(step) && entry.staged;
  row["defined"] = state.defined;
  if (!state.defined) row["why"] = state.undefined_reason;
  return row;
}

void print_json(const TimelineOptions& o, const std::vector<model::Step>& steps,
                const model::Timeline& timeline, std::ostream& out) {
  Json json;
  json["capacity"] = o.capacity;
  json["window"] = o.window;
  json["layout"] = o.layout;
  json["block"] = is_block(o) ? Json(block_rows(o)) : Json();
  json["rows"] = Json::array();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    json["rows"].push_back(row_json(o, steps[i], i, timeline.steps()[i]));
  }
  if (is_block(o)) {
    const std::int64_t block = block_rows(o);
    json["drafts"] = Json::array();
    for (std::int64_t k = 1; k <= std::min<std::int64_t>(block, 16); ++k) {
      json["drafts"].push_back(
          {{"tokens", k}, {"exact_lengths", block - k}, {"of_lengths", block}});
    }
  }
  out << json.dump(2) << '\n';
}

/// Columns that a position takes in a picture.
std::int64_t cell_width(std::int64_t longest) {
  return static_cast<std::int64_t>(fmt::formatted_size("{}", longest - 1));
}

bool shows_positions(std::int64_t rows, std::int64_t longest) {
  return rows <= kCellColumns && rows * (cell_width(longest) + 1) <= kCellColumns;
}

/// Small buffers cell by cell with their positions; larger ones as a bar: + older than the window,
/// # the window, . free.
std::string picture(const TimelineOptions& o, const model::EntryStep& entry, std::int64_t longest) {
  const std::int64_t rows = o.capacity > 0 ? o.capacity : longest;
  std::string text;
  if (shows_positions(rows, longest)) {
    const std::int64_t width = cell_width(longest);
    for (std::int64_t row = 0; row < rows; ++row) {
      const bool live = row < entry.resident;
      const std::string cell = live ? fmt::format("{}", entry.first_position.value + row) : ".";
      text += fmt::format("{:>{}} ", cell, width);
    }
    text.pop_back();
    return text;
  }
  const auto column = [&](std::int64_t row) {
    return static_cast<std::size_t>(static_cast<double>(row) * kBarColumns /
                                    static_cast<double>(rows));
  };
  const std::int64_t window = o.window > 0 ? o.window : rows;
  const std::size_t older = column(std::max<std::int64_t>(0, entry.resident - window));
  const std::size_t live = column(entry.resident);
  text.append(older, '+').append(live - older, '#').append(kBarColumns - live, '.');
  return text;
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

void print_table(const TimelineOptions& o, const std::vector<model::Step>& steps,
                 const model::Timeline& timeline, std::ostream& out) {
  const bool named = !o.steps.empty();
  const bool shortened = !named && static_cast<std::int64_t>(steps.size()) > kRowsShownWhole;
  std::int64_t longest = 1;
  for (const auto& step : timeline.steps()) longest = std::max(longest, step.entries[0].length);
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
    const auto free = free_rows(o, entry);
    std::string rest = state.defined ? picture(o, entry, longest) : "not defined";
    if (entry.staged) rest += "  staged: evicts rows that its own first query reads";
    if (!entry.rollback_exact) rest += "  NOT exact";
    line(model::describe(steps[i]), entry.length, entry.resident, entry.first_position.value,
         evicts_text(entry), entry.max_exact_rollback, free ? fmt::format("{}", *free) : "-", rest);
  }
  if (!shows_positions(o.capacity > 0 ? o.capacity : longest, longest)) {
    out << "\nRows: # the window, + older, . free.\n";
  }
  for (const auto& state : timeline.steps()) {
    if (state.defined) continue;
    out << "\nThe contract defines no rows after this: " << state.undefined_reason << ".\n";
    break;
  }
}

void print_drafts(const TimelineOptions& o, std::ostream& out) {
  const std::int64_t block = block_rows(o);
  out << fmt::format(
      "\nRollback: k tokens can be dropped exactly at T while k <= max exact rollback, which is T\n"
      "up to T = {0} and L(T) - {1} after that. Deeper ones need rows that are gone.\n"
      "\nDraft of k tokens, any of which may be dropped: exact, and never staged, where k <= free\n"
      "rows: the step evicts nothing. Once the cache has filled, that is\n",
      o.capacity, o.window);
  for (std::int64_t k = 1; k < (block > 9 ? 4 : block); ++k) {
    out << fmt::format("  k = {}: at {} of every {} lengths\n", k, block - k, block);
  }
  if (block > 9) out << fmt::format("  k < {0}: at {0} - k of every {0} lengths\n", block);
  out << fmt::format(
      "  k >= {0}: at none\n"
      "Draft of k tokens after one that is kept (a step of k + 1, at most k dropped): exact where\n"
      "the step does not stage, that is k + 1 <= free rows, or no free row and k + 1 <= {0}: the\n"
      "kept token then is the one that evicts.\n"
      "\nWhich capacity makes a draft of k always exact and never staged? None, unless it is at\n"
      "least the longest length: every eviction leaves L = {1} rows, and a step of 2 or more that\n"
      "ends there stages at any capacity. Capacity >= window + step - 1 is not enough. But\n"
      "  with capacity = {2} + n k a draft of k is exact at all but 1 of n lengths;\n"
      "  steps of exactly k without rollback never stage if capacity = {2} + n k and every step\n"
      "    starts at a length T with T mod k = {2} mod k;\n",
      block, o.window, o.window - 1);
  out << (block > 1
              ? "  a draft cut to the free rows is always exact and unstaged; where no row is "
                "free,\n"
                "    append one token first, which never stages.\n"
              : "  with C = W, as here, no draft is exact once the cache has filled: raise the\n"
                "    capacity.\n");
}

void print_text(const TimelineOptions& o, const std::vector<model::Step>& steps,
                const model::Timeline& timeline, std::ostream& out) {
  if (is_block(o)) {
    out << fmt::format(
        "layout block, capacity C = {}, window W = {}, evicts blocks of G = C - W + 1 = {}\n\n",
        o.capacity, o.window, block_rows(o));
  } else {
    out << fmt::format("layout full, capacity {}\n\n",
                       o.capacity > 0 ? fmt::format("{}", o.capacity) : "as large as needed");
  }
  print_table(o, steps, timeline, out);
  if (is_block(o)) {
    print_drafts(o, out);
  } else {
    out << "\nNothing is evicted: every rollback is exact and no step stages.\n";
  }
}

}  // namespace

int timeline_command(const TimelineOptions& options, std::ostream& out, std::ostream& err) {
  try {
    check_cache(options);
    const auto steps = options.steps.empty() ? single_tokens(options) : parse_steps(options);
    const model::Timeline timeline = simulate(options, steps);
    if (options.json) {
      print_json(options, steps, timeline, out);
    } else {
      print_text(options, steps, timeline, out);
    }
    return 0;
  } catch (const BadOption& error) {
    err << error.what() << '\n';
    return kBadUsage;
  }
}

}  // namespace kvcheck::properties
