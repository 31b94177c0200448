// The report for a terminal: a table of checks, then each finding as a block.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "model/scenario_json.h"
#include "reports/case_view.h"
#include "reports/figures.h"
#include "reports/report.h"
#include "reports/run_summary.h"
#include "reports/text.h"
#include "reports/text_picture.h"

namespace kvcheck::reports {
namespace {

using properties::FindingRecord;
using properties::RunRecord;
using properties::Verdict;

constexpr std::size_t kColumns = 100;
constexpr std::size_t kMaxBlocks = 20;  // Findings in full.
constexpr std::string_view kReset = "\x1b[0m";

std::string_view colour_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed:
      return "\x1b[32m";
    case Verdict::failed:
    case Verdict::errored:
      return "\x1b[1;31m";
    case Verdict::blind:
      return "\x1b[33m";
    case Verdict::skipped:
      return "\x1b[2m";
  }
  return "";
}

/// A cell of the table: words wrap in their column, numbers stand right.
struct Column {
  std::string_view title;
  std::size_t most;
  bool number;
};
constexpr std::array<Column, 7> kTable = {{{"property", 34, false},
                                           {"target", 18, false},
                                           {"status", 7, false},
                                           {"judged", 9, true},
                                           {"skipped", 8, true},
                                           {"blind", 6, true},
                                           {"ratio", 8, true}}};
using Cells = std::array<std::string, kTable.size()>;

class TextReport {
 public:
  TextReport(const RunRecord& record, bool colour) : record_(record), colour_(colour) {}

  std::string write() {
    const RunSummary run = summarise(record_);
    head(run);
    if (!record_.properties.empty()) table();
    reasons();
    coverage();
    const std::size_t shown = std::min(kMaxBlocks, record_.findings.size());
    for (std::size_t i = 0; i < shown; ++i) finding(i);
    if (shown < record_.findings.size()) {
      line("");
      paragraph(fmt::format("{} of {} findings are shown; all are in run.json.", shown,
                            record_.findings.size()),
                0);
    }
    if (!record_.notes.empty()) line("");
    for (std::size_t i = 0; i < record_.notes.size() && i < kMaxBlocks; ++i) {
      paragraph("Note: " + record_.notes[i], 0);
    }
    return std::move(out_);
  }

 private:
  void line(std::string_view text) { out_.append(text).append("\n"); }

  std::string painted(std::string_view text, Verdict verdict) const {
    if (!colour_) return std::string(text);
    return std::string(colour_of(verdict)).append(text).append(kReset);
  }

  void paragraph(std::string_view text, std::size_t indent, std::string_view first = "") {
    const std::string pad(indent, ' ');
    bool is_first = true;
    for (const std::string& part : wrapped(clean_text(text), kColumns - indent)) {
      line((is_first && !first.empty() ? std::string(first) : pad) + part);
      is_first = false;
    }
  }

  void head(const RunSummary& run) {
    std::string about = record_.tool.empty() ? "kvcheck" : record_.tool;
    if (!record_.started.empty()) about += ", " + record_.started;
    about += fmt::format(", seed {}: {}, {} in {:.1f} s", record_.seed,
                         counted(record_.scenarios, "scenario"),
                         counted(record_.verdicts, "verdict"), record_.seconds);
    paragraph(about, 0);
    std::string word(to_string(run.verdict));
    for (char& c : word) c = static_cast<char>(c - 'a' + 'A');
    const auto lines = wrapped(clean_text(run.sentence), kColumns - word.size() - 2);
    line(painted(word, run.verdict) + ": " + lines.front());
    for (std::size_t i = 1; i < lines.size(); ++i) line("  " + lines[i]);
    for (const std::string& remark : run.remarks) paragraph(remark, 0);
    line("");
  }

  void table() {
    std::vector<Cells> rows;
    Cells titles;
    for (std::size_t c = 0; c < kTable.size(); ++c) titles[c] = kTable[c].title;
    rows.push_back(titles);
    for (const auto& p : record_.properties) {
      rows.push_back({clean_text(p.property), clean_text(p.target),
                      std::string(to_string(p.status)), grouped(p.scenarios), grouped(p.skipped),
                      grouped(p.blind),
                      p.max_bound_ratio == 0 ? "-" : ratio_text(p.max_bound_ratio)});
    }
    std::array<std::size_t, kTable.size()> widths{};
    for (std::size_t c = 0; c < kTable.size(); ++c) {
      for (const Cells& row : rows) widths[c] = std::max(widths[c], width(row[c]));
      widths[c] = std::min(widths[c], kTable[c].most);
    }
    for (std::size_t r = 0; r < rows.size(); ++r) {
      table_row(rows[r], widths, r == 0 ? nullptr : &record_.properties[r - 1].status);
    }
  }

  void table_row(const Cells& row, const std::array<std::size_t, kTable.size()>& widths,
                 const Verdict* status) {
    std::array<std::vector<std::string>, kTable.size()> parts;
    std::size_t height = 1;
    for (std::size_t c = 0; c < kTable.size(); ++c) {
      parts[c] = wrapped(row[c], widths[c]);
      height = std::max(height, parts[c].size());
    }
    for (std::size_t h = 0; h < height; ++h) {
      std::string text;
      for (std::size_t c = 0; c < kTable.size(); ++c) {
        const std::string part = h < parts[c].size() ? parts[c][h] : "";
        const std::string pad(widths[c] - width(part), ' ');
        if (c > 0) text += "  ";
        const bool verdict = status && kTable[c].title == "status";
        const std::string word = verdict && !part.empty() ? painted(part, *status) : part;
        text += kTable[c].number ? pad + word : word + pad;
      }
      text.erase(text.find_last_not_of(' ') + 1);
      line(text);
    }
  }

  /// Why checks are not green or not judged, each reason once.
  void reasons() {
    std::vector<std::string> said;
    for (const auto& p : record_.properties) {
      if (p.reason.empty() || p.status == Verdict::passed) continue;
      if (p.status == Verdict::failed && !findings_of(record_, p).empty()) continue;
      const std::string text =
          fmt::format("{} {} on {}: {}", p.property, to_string(p.status), p.target, p.reason);
      if (std::find(said.begin(), said.end(), text) == said.end()) said.push_back(text);
    }
    if (!said.empty()) line("");
    for (std::size_t i = 0; i < said.size() && i < kMaxBlocks; ++i) paragraph(said[i], 2);
    if (said.size() > kMaxBlocks) {
      paragraph(fmt::format("({} of {} reasons shown)", kMaxBlocks, said.size()), 2);
    }
  }

  void coverage() {
    std::string never;
    std::size_t count = 0;
    for (const auto& row : record_.coverage) {
      if (row.hits > 0 || ++count > kMaxBlocks) continue;
      never += (never.empty() ? "" : "; ") + fmt::format("{} ({})", row.name, row.target);
    }
    if (count == 0) return;
    line("");
    if (count > kMaxBlocks) never += fmt::format("; ... {} in all", count);
    paragraph("NEVER REACHED (0 %): " + never, 2);
  }

  void finding(std::size_t index) {
    const FindingRecord& f = record_.findings[index];
    const CaseView view = make_case_view(f);
    line("");
    const std::string number = fmt::format("[{}] ", index + 1);
    line(painted(number + std::string(headline(f.kind)), Verdict::failed));
    paragraph(f.summary, 4);
    const std::string target =
        f.target_version.empty() ? f.target : f.target + " " + f.target_version;
    paragraph(fmt::format("{} on {}, {}", f.property, target, to_string(f.kind)), 4);
    line("");
    std::string facts;
    for (const auto& [name, value] : shape_facts(f.minimal)) {
      facts += (facts.empty() ? "" : ", ") + name + " " + value;
    }
    paragraph(facts, 10, "    Case: ");
    steps(view);
    scenario(f);
    for (const std::string& word : f.evidence.words) paragraph(word, 6, "    - ");
    picture(view);
    if (!f.nearest_passing.empty()) {
      paragraph("Nearest case that passes: " + f.nearest_passing, 4);
    }
    paragraph(finding_facts(f), 4);
    paragraph("Replay: " + replay_command(f), 4);
    if (!f.file.empty()) paragraph("File:   " + f.file, 4);
  }

  void steps(const CaseView& view) {
    constexpr std::size_t kMost = 12;
    const Shown shown = window_around(view.steps.size(), view.failing, kMost);
    for (std::size_t i = shown.begin; i < shown.end; ++i) {
      const std::string mark = view.is_failing(i) ? "   <- first divergence" : "";
      paragraph(fmt::format("Step {}: {}{}", i, view.steps[i].what, mark), 4);
      const auto* evidence = view.steps[i].evidence;
      if (evidence && evidence->answer != "ok") paragraph("answer: " + evidence->answer, 8);
    }
    if (!shown.all()) paragraph(shown.note("steps"), 4);
  }

  /// The case as JSON, broken between fields: it stays valid when copied.
  void scenario(const FindingRecord& f) {
    constexpr std::size_t kMost = 2000;
    const std::string json = model::canonical_text(f.minimal);
    if (json.size() > kMost) {
      return paragraph(fmt::format("The case as JSON ({} bytes) is in {}.",
                                   grouped(static_cast<std::int64_t>(json.size())),
                                   f.file.empty() ? "run.json" : f.file),
                       4);
    }
    std::string text = "    ";
    for (std::size_t at = 0; at < json.size();) {
      std::size_t end = at;
      for (bool quoted = false; end < json.size(); ++end) {
        if (json[end] == '"') quoted = !quoted;
        if (json[end] == ',' && !quoted) break;
      }
      const std::string part = json.substr(at, end + 1 - at);
      if (text.size() > 4 && text.size() + part.size() > kColumns) line(text), text = "    ";
      text += part;
      at = end + 1;
    }
    line(text);
  }

  void picture(const CaseView& view) {
    const StepView* step = view.failing_step();
    if (!step || !step->evidence) return;
    const VisibilityGrid grid = make_visibility_grid(*step->evidence);
    const auto lines = text_picture(grid, kColumns - 6);
    if (!lines.empty()) line("");
    for (const std::string& text : lines) line("      " + text);
    constexpr std::size_t kMost = 12;
    const auto& rows = step->evidence->rows;
    if (!rows.empty()) line("");
    for (std::size_t i = 0; i < rows.size() && i < kMost; ++i) {
      paragraph(fmt::format("Row {} of entry {}: must hold {}, holds {}", rows[i].row,
                            rows[i].entry, token_text(rows[i].expected_position, 0),
                            token_text(rows[i].observed_position, rows[i].observed_generation)),
                6);
    }
    if (rows.size() > kMost) paragraph(fmt::format("{} more rows differ.", rows.size() - kMost), 6);
    line("");
  }

  const RunRecord& record_;
  bool colour_;
  std::string out_;
};

}  // namespace

std::string text_report(const RunRecord& record, bool colour) {
  return TextReport(record, colour).write();
}

}  // namespace kvcheck::reports
