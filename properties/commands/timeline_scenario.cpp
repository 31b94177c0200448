// Rules of the options and the steps that they spell.
#include "properties/commands/timeline_scenario.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "model/layout.h"

namespace kvcheck::properties {
namespace {

using model::CacheSpec;
using enum model::LayoutKind;

constexpr std::int64_t kMaxRows = 100000;

[[noreturn]] void refuse(std::string_view option, const std::string& value,
                         const std::string& remedy) {
  throw BadOption(fmt::format("timeline: {} = {}: {}", option, value, remedy));
}

void check_range(std::string_view option, std::int64_t value, std::int64_t least) {
  if (value >= least && value <= model::kMaxLength) return;
  refuse(option, fmt::format("{}", value),
         fmt::format("must be between {} and {}", least, model::kMaxLength));
}

model::LayoutKind layout_of(const TimelineOptions& o) {
  for (const auto kind : {full, block, min_overflow, ring, model::LayoutKind::sinks, paged}) {
    if (o.layout == to_string(kind)) return kind;
  }
  refuse("--layout", fmt::format("\"{}\"", o.layout),
         "must be full, block, min_overflow, ring, sinks or paged");
}

/// An option that only one layout has.
void check_own(std::string_view option, std::int64_t value, bool own, std::string_view owner) {
  if (own) return check_range(option, value, 1);
  if (value == 0) return;
  refuse(option, fmt::format("{}", value),
         fmt::format("belongs to layout {}; leave it out", owner));
}

void check_capacity(const TimelineOptions& o, const CacheSpec& cache) {
  const std::int64_t least = model::least_capacity(cache);
  const auto value = fmt::format("{}", o.capacity);
  if (cache.layout == paged && o.capacity % o.page_size != 0) {
    refuse("--capacity", value, fmt::format("must be a multiple of --page-size ({})", o.page_size));
  }
  if (o.capacity >= least) return;
  switch (cache.layout) {
    case model::LayoutKind::sinks:
      refuse("--capacity", value, fmt::format("must be at least --sinks + --window ({})", least));
    case paged:
      refuse("--capacity", value,
             fmt::format("must be at least {}: a window of {} touches that many rows of pages",
                         least, o.window));
    default:
      refuse("--window", fmt::format("{}", o.window),
             fmt::format("must be at most the capacity ({}); lower it or raise --capacity",
                         o.capacity));
  }
}

CacheSpec cache_of(const TimelineOptions& o) {
  CacheSpec cache;
  cache.layout = layout_of(o);
  check_range("--capacity", o.capacity, cache.layout == full ? 0 : 1);
  check_range("--window", o.window, cache.layout == full || cache.layout == paged ? 0 : 1);
  check_own("--sinks", o.sinks, cache.layout == model::LayoutKind::sinks, "sinks");
  check_own("--page-size", o.page_size, cache.layout == paged, "paged");
  cache.capacity = o.capacity;
  if (o.window > 0) cache.window_size = o.window;
  cache.sink_tokens = o.sinks;
  cache.page_size = o.page_size;
  check_capacity(o, cache);
  return cache;
}

bool bounded(const CacheSpec& cache) { return keeps_every_token(cache) && cache.capacity > 0; }

std::int64_t longest_length(const CacheSpec& cache) {
  return bounded(cache) ? cache.capacity : std::int64_t{model::kMaxLength};
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

std::vector<model::Step> parse_steps(const TimelineOptions& o, const model::CacheSpec& cache) {
  std::vector<model::Step> steps;
  const std::int64_t bound = longest_length(cache);
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

/// Last T without --steps and --until: some evictions after the cache has filled.
std::int64_t default_until(const CacheSpec& cache) {
  if (keeps_every_token(cache)) return cache.capacity > 0 ? cache.capacity : 16;
  std::int64_t shown = 4;
  if (cache.layout == block) shown = 3 * (cache.capacity - *cache.window_size + 1) + 1;
  if (cache.layout == ring) shown = cache.capacity + 1;
  if (cache.layout == paged) shown = 3 * cache.page_size + 1;
  return std::max<std::int64_t>(16, cache.capacity + shown);
}

std::vector<model::Step> single_tokens(const TimelineOptions& o, const CacheSpec& cache) {
  const std::int64_t until = o.until == 0 ? default_until(cache) : o.until;
  if (until < 1 || until > kMaxRows) {
    refuse("--until", fmt::format("{}", until),
           fmt::format("must be between 1 and {}; larger lengths can be given with --steps",
                       kMaxRows));
  }
  if (until > longest_length(cache)) {
    refuse("--until", fmt::format("{}", until),
           fmt::format("must be at most the capacity ({}) of layout {}", cache.capacity, o.layout));
  }
  return std::vector<model::Step>(static_cast<std::size_t>(until), step_of(1));
}

}  // namespace

model::Scenario timeline_scenario(const TimelineOptions& options) {
  model::Scenario scenario;
  scenario.cache = cache_of(options);
  scenario.steps = options.steps.empty() ? single_tokens(options, scenario.cache)
                                         : parse_steps(options, scenario.cache);
  return scenario;
}

}  // namespace kvcheck::properties
