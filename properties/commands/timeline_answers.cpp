// The two answers, layout by layout.
#include "properties/commands/timeline_answers.h"

#include <optional>
#include <ostream>
#include <string>

#include <fmt/format.h>

#include "model/layout.h"

namespace kvcheck::properties {
namespace {

using model::CacheSpec;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostDrafts = 16;

/// Smallest k above the largest exact depth from which on every drop is exact again.
std::optional<std::int64_t> exact_again(const CacheSpec& cache, const model::Layout& layout,
                                        const model::EntryStep& entry) {
  const std::int64_t tokens = entry.length - cache.sink_tokens;
  if (entry.max_exact_rollback == entry.length) return {};
  if (!layout.rollback_is_exact(entry.reach, entry.reach - entry.length + tokens)) return {};
  return tokens;
}

void print_exact_now(const CacheSpec& cache, const model::Timeline& timeline, std::ostream& out) {
  const model::TimelineStep& state = timeline.steps().back();
  if (!state.defined) return;
  const model::EntryStep& entry = state.entries[0];
  const std::int64_t most = entry.max_exact_rollback;
  out << fmt::format("\nExact now, at T = {}: ", entry.length);
  if (most == entry.length) {
    out << "a rollback of any depth.\n";
    return;
  }
  out << (most == 0 ? "no rollback" : fmt::format("rollbacks of up to {}", most));
  if (const auto again = exact_again(cache, timeline.layout(), entry)) {
    out << (*again == entry.length
                ? fmt::format("{} of all {}", most == 0 ? " but one" : ", and one", entry.length)
                : fmt::format("{} of {} or more, which leave sinks alone",
                              most == 0 ? " but those" : ", and those", *again));
  }
  out << ".\n";
}

/// "  k = 1: at 2 of every 3 lengths" and so on, for a period of `period` lengths.
void print_shares(std::int64_t period, std::ostream& out) {
  for (std::int64_t k = 1; k < (period > 9 ? 4 : period); ++k) {
    out << fmt::format("  k = {}: at {} of every {} lengths\n", k, period - k, period);
  }
  if (period > 9) out << fmt::format("  k < {0}: at {0} - k of every {0} lengths\n", period);
  out << fmt::format("  k >= {}: at none\n", period);
}

void print_block(const CacheSpec& cache, std::ostream& out) {
  const std::int64_t window = *cache.window_size;
  const std::int64_t block = cache.capacity - window + 1;
  out << fmt::format(
      "\nRollback: k tokens can be dropped exactly at T while k <= max exact rollback, which is T\n"
      "up to T = {0} and L(T) - {1} after that. Deeper ones need rows that are gone.\n"
      "\nDraft of k tokens, any of which may be dropped: exact, and never staged, where k <= free\n"
      "rows: the step evicts nothing. Once the cache has filled, that is\n",
      cache.capacity, window);
  print_shares(block, out);
  out << fmt::format(
      "Draft of k tokens after one that is kept (a step of k + 1, at most k dropped): exact where\n"
      "the step does not stage, that is k + 1 <= free rows, or no free row and k + 1 <= {0}: the\n"
      "kept token then is the one that evicts.\n"
      "\nWhich capacity makes a draft of k always exact and never staged? None, unless it is at\n"
      "least the longest length: every eviction leaves L = {1} rows, and a step of 2 or more that\n"
      "ends there stages at any capacity. Capacity >= window + step - 1 is not enough. But\n"
      "  with capacity = {2} + n k a draft of k is exact at all but 1 of n lengths;\n"
      "  steps of exactly k without rollback never stage if capacity = {2} + n k and every step\n"
      "    starts at a length T with T mod k = {2} mod k;\n",
      block, window, window - 1);
  out << (block > 1
              ? "  a draft cut to the free rows is always exact and unstaged; where no row is "
                "free,\n"
                "    append one token first, which never stages.\n"
              : "  with C = W, as here, no draft is exact once the cache has filled: raise the\n"
                "    capacity.\n");
}

void print_ring(const CacheSpec& cache, std::ostream& out) {
  const std::int64_t window = *cache.window_size;
  out << fmt::format(
      "\nRollback: k tokens can be dropped exactly at T while k <= max exact rollback, which is T\n"
      "up to T = {0} and C - W = {1} after that. The dropped tokens stood in rows of older\n"
      "positions, so fewer rows are left until the sequence has grown back; deeper ones lose\n"
      "keys of the window.\n"
      "\nDraft of k tokens, any of which may be dropped: exact at every length, and never staged,\n"
      "where k <= C - W = {1}; once the ring has filled, a larger one is exact nowhere.\n"
      "\nWhich capacity makes a draft of k always exact and never staged?\n"
      "Capacity >= window + k = {2} + k. For steps without rollback capacity >=\n"
      "window + step - 1 is enough, and needed, so that none stages.\n",
      cache.capacity, cache.capacity - window, window);
}

/// Layouts that move every row, but for the sinks, with every token once they have filled.
void print_shift(const CacheSpec& cache, std::ostream& out) {
  const bool sinks = cache.sink_tokens > 0;
  out << fmt::format(
      "\nRollback: any up to T = {0}, and none after that but one {1}:\n"
      "every token moves all rows{2}.\n"
      "\nDraft of k tokens, any of which may be dropped: exact, and never staged, where k <= free\n"
      "rows: the step evicts nothing. Once the cache has filled, that is at no length.\n"
      "\nWhich capacity makes a draft of k always exact and never staged? None, unless it is at\n"
      "least the longest length: after T = C the rows of a shorter length are never in place.\n"
      "For steps without rollback capacity >= {3}window + step - 1 is enough, and needed,\n"
      "so that none stages.\n",
      cache.capacity, sinks ? "that leaves sinks alone" : "of everything",
      sinks ? " behind the sinks" : "", sinks ? "sinks + " : "");
}

void print_pages(const CacheSpec& cache, const model::Layout& layout, std::ostream& out) {
  const std::int64_t page = cache.page_size;
  const std::int64_t window = *cache.window_size;
  out << fmt::format(
      "\nRollback: exact where the dropped tokens freed no page: k <= max exact rollback, which\n"
      "is T up to T = {0} and (T - {1}) mod {2} after that.\n"
      "\nDraft of k tokens, any of which may be dropped: exact, and never staged, where it frees\n"
      "no page. Once one was freed, that is\n",
      window + page - 1, window, page);
  print_shares(page, out);
  out << fmt::format(
      "\nWhich capacity makes a draft of k always exact and never staged? None, unless T stays\n"
      "below window + page = {0}: a page is freed as soon as the window has left it, whatever\n"
      "the capacity, and some draft of every size frees one. But a draft cut to\n"
      "{1} - (T - {2}) mod {3} tokens is always exact and unstaged.\n"
      "For steps without rollback capacity >= window + step - 1 is enough with pages of one row\n"
      "alone. With pages of {3}, whatever the alignment, no step of\n",
      window + page, page - 1, window, page);
  for (const std::int64_t step : {2, 4, 16}) {
    out << fmt::format("  S = {} stages if capacity >= {}\n", step,
                       *layout.capacity_without_staging(step));
  }
}

}  // namespace

void print_answers(const CacheSpec& cache, const model::Timeline& timeline, std::ostream& out) {
  print_exact_now(cache, timeline, out);
  if (keeps_every_token(cache)) {
    out << "\nNothing is evicted: every rollback is exact and no step stages. So any capacity "
           "that\n"
           "holds the sequence makes every draft exact.\n";
    return;
  }
  switch (cache.layout) {
    case model::LayoutKind::block:
      return print_block(cache, out);
    case model::LayoutKind::ring:
      return print_ring(cache, out);
    case model::LayoutKind::paged:
      return print_pages(cache, timeline.layout(), out);
    default:
      return print_shift(cache, out);
  }
}

Json exact_now_json(const CacheSpec& cache, const model::Timeline& timeline) {
  const model::TimelineStep& state = timeline.steps().back();
  if (!state.defined) return {};
  const model::EntryStep& entry = state.entries[0];
  const auto again = exact_again(cache, timeline.layout(), entry);
  Json json;
  json["T"] = entry.length;
  json["up_to"] = entry.max_exact_rollback;
  json["from"] = again ? Json(*again) : Json();
  return json;
}

Json drafts_json(const model::Layout& layout) {
  const auto number = [](std::optional<std::int64_t> n) { return n ? Json(*n) : Json(); };
  Json drafts = Json::array();
  for (std::int64_t k = 1; k <= kMostDrafts; ++k) {
    const model::LengthShare share = layout.exact_drafts(k);
    drafts.push_back({{"tokens", k},
                      {"exact_lengths", share.lengths},
                      {"of_lengths", share.of},
                      {"capacity_for_drafts", number(layout.capacity_for_drafts(k))},
                      {"capacity_without_staging", number(layout.capacity_without_staging(k))}});
    if (share.lengths == 0) break;
  }
  return drafts;
}

}  // namespace kvcheck::properties
