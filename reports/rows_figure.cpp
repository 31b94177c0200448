// Rows of the cache after the failing step: what each must hold above what it holds.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "reports/figures.h"
#include "reports/legend.h"
#include "reports/svg.h"
#include "reports/text.h"

namespace kvcheck::reports {
namespace {

using properties::RowEvidence;

constexpr std::int64_t kMaxColumns = 32;

/// One column of the figure.
struct RowPair {
  std::int64_t row = 0;
  std::string must, holds;
  bool differs = false;
};

std::int64_t first_entry(const CaseView& view) {
  return view.failing_step()->evidence->rows.front().entry;
}

std::int64_t generation_at(const CaseView& view, std::int64_t entry, std::int64_t position) {
  const StepView& step = *view.failing_step();
  const auto b = static_cast<std::size_t>(entry);
  if (!view.timeline || entry < 0 || b >= step.entries.size() || position < 0 ||
      position >= step.entries[b].length) {
    return 0;
  }
  return view.timeline->generation(static_cast<std::size_t>(view.failing), entry, {position});
}

RowPair pair_of(const CaseView& view, const RowEvidence& row) {
  return {row.row,
          token_mark(row.expected_position, generation_at(view, row.entry, row.expected_position)),
          token_mark(row.observed_position, row.observed_generation), true};
}

/// All rows of a small cache, else those that differ.
std::vector<RowPair> pairs_of(const CaseView& view, std::int64_t entry) {
  const StepView& step = *view.failing_step();
  std::vector<RowPair> pairs;
  const auto b = static_cast<std::size_t>(entry);
  const bool small = entry >= 0 && b < step.entries.size() && step.defined &&
                     step.entries[b].resident <= kMaxColumns;
  if (small) {
    for (std::int64_t row = 0; row < step.entries[b].resident; ++row) {
      const std::int64_t position = step.entries[b].first_position + row;
      const std::string mark = token_mark(position, generation_at(view, entry, position));
      pairs.push_back({row, mark, mark, false});
    }
  }
  for (const RowEvidence& row : step.evidence->rows) {
    if (row.entry != entry) continue;
    const auto same = std::find_if(pairs.begin(), pairs.end(),
                                   [&](const RowPair& pair) { return pair.row == row.row; });
    if (same != pairs.end()) {
      *same = pair_of(view, row);
    } else if (static_cast<std::int64_t>(pairs.size()) < kMaxColumns) {
      pairs.push_back(pair_of(view, row));
    }
  }
  return pairs;
}

std::string words_of(const CaseView& view, const RowEvidence& row) {
  return fmt::format(
      "row {} must hold {}, holds {}", row.row,
      token_text(row.expected_position, generation_at(view, row.entry, row.expected_position)),
      token_text(row.observed_position, row.observed_generation));
}

std::string sentence_of(const CaseView& view) {
  constexpr std::size_t kNamed = 3;
  const auto& rows = view.failing_step()->evidence->rows;
  std::string out;
  for (std::size_t i = 0; i < rows.size() && i < kNamed; ++i) {
    out += (i > 0 ? "; " : "") + words_of(view, rows[i]);
  }
  if (rows.size() > kNamed) out += fmt::format("; {} more differ", rows.size() - kNamed);
  return fmt::format("After step {}, {}.", view.failing, out);
}

}  // namespace

std::string token_text(std::int64_t position, std::int64_t generation) {
  if (position == -2) return "anything";
  if (position < 0) return "no token of this sequence";
  if (generation == 0) return fmt::format("position {}", position);
  return fmt::format("position {} (generation {})", position, generation);
}

std::string token_mark(std::int64_t position, std::int64_t generation) {
  if (position == -2) return "any";
  if (position < 0) return "none";
  if (generation > 3) return fmt::format("{} g{}", position, generation);
  std::string mark = std::to_string(position);
  for (std::int64_t i = 0; i < generation; ++i) mark += "′";
  return mark;
}

Element rows_svg(const CaseView& view, std::string_view prefix) {
  constexpr double kLeft = 74, kWide = 46, kHigh = 30, kTop = 30;
  const std::int64_t entry = first_entry(view);
  const std::vector<RowPair> pairs = pairs_of(view, entry);
  const std::vector<LegendItem> items = {{Look::cross, "failed", "holds another token"},
                                         {Look::solid, "resident", "as it must be"}};
  const double width = std::max(360.0, kLeft + kWide * static_cast<double>(pairs.size()) + 8);
  const double below = kTop + 2 * kHigh + 22;
  const std::string id = std::string(prefix) + "-rows-svg";
  Element svg = svg_frame(id, width, below + legend_height(items, width),
                          fmt::format("Rows of batch entry {}: expected and observed", entry),
                          sentence_of(view));
  svg.add(label(kLeft - 10, 20, "row", Anchor::end, "muted"));
  svg.add(label(kLeft - 10, kTop + 20, "must hold", Anchor::end, "muted"));
  svg.add(label(kLeft - 10, kTop + kHigh + 26, "holds", Anchor::end, "muted"));
  Path solid, wrong, crosses;
  std::vector<Element> words;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const double x = kLeft + kWide * static_cast<double>(i), middle = x + kWide / 2 - 2;
    const double lower = kTop + kHigh + 6;
    words.push_back(label(middle, 20, std::to_string(pairs[i].row), Anchor::middle));
    solid.rect(x, kTop, kWide - 4, kHigh);
    words.push_back(label(middle, kTop + 20, pairs[i].must, Anchor::middle, "on-mark", 13, true));
    if (!pairs[i].differs) {
      solid.rect(x, lower, kWide - 4, kHigh);
      words.push_back(
          label(middle, lower + 20, pairs[i].holds, Anchor::middle, "on-mark", 13, true));
    } else {
      wrong.rect(x + 1.5, lower + 1.5, kWide - 7, kHigh - 3);
      crosses.cross(x + kWide - 19, lower + 2, 13, 13, 2);
      words.push_back(
          label(middle - 3, lower + 22, pairs[i].holds, Anchor::middle, "failed-text", 13, true));
    }
  }
  svg.add(filled(solid, "resident"));
  if (!wrong.empty()) svg.add(stroked(wrong, "failed", 3));
  if (!crosses.empty()) svg.add(stroked(crosses, "failed", 2.5));
  for (const Element& word : words) svg.add(word);
  add_legend(svg, items, 8, below, width - 8, "none");
  return svg;
}

Element rows_figure(const CaseView& view, std::string_view prefix) {
  const auto& rows = view.failing_step()->evidence->rows;
  const std::string id = std::string(prefix) + "-rows";
  Element result("div");
  result.add(Element("p").cls("lead").text(sentence_of(view)));
  result.add(
      figure(id, rows_svg(view, id),
             fmt::format("Position of the token in each row of batch entry {}; a prime marks "
                         "a token written after a rollback.",
                         first_entry(view))));
  Element table = table_head("Rows that differ", {"entry", "row", "must hold", "holds"}, "nn  ");
  Element body("tbody");
  for (const RowEvidence& row : rows) {
    Element line("tr");
    line.cls("bad").add(row_head(std::to_string(row.entry)).cls("n"));
    line.add(number_cell(std::to_string(row.row)));
    line.add(cell(
        token_text(row.expected_position, generation_at(view, row.entry, row.expected_position))));
    line.add(cell(token_text(row.observed_position, row.observed_generation)));
    body.add(line);
  }
  Element numbers = details("The same numbers as a table", rows.size() <= 8);
  return result.add(numbers.add(boxed(table.add(body), "Rows that differ")));
}

}  // namespace kvcheck::reports
