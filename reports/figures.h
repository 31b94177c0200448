// The figures of one finding. Every id that they give out starts with `prefix`, which is unique on
// the page; every figure says its finding in words and has its numbers in a table beside it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/case_view.h"
#include "reports/html_writer.h"
#include "reports/visibility_grid.h"

namespace kvcheck::reports {

/// The sawtooth of one batch entry with its slot lanes below, over the steps of `shown`.
/// \pre view.batch > entry
Element timeline_figure(const CaseView& view, std::size_t entry, Shown shown,
                        std::string_view prefix);

/// The grid of cells alone, at most `width` wide.
/// \pre !grid.rows.empty()
Element visibility_svg(const VisibilityGrid& grid, const CaseView& view, std::string_view prefix,
                       double width);
/// With sentence, counts and the numbers as a table.
Element visibility_figure(const VisibilityGrid& grid, const CaseView& view,
                          std::string_view prefix);

/// Rows of the cache: the position that each must hold above the one that it holds.
/// \pre the failing step has evidence of rows
Element rows_svg(const CaseView& view, std::string_view prefix);
Element rows_figure(const CaseView& view, std::string_view prefix);

/// The worst element's error beside its bound.
Element gauge_svg(const properties::ElementEvidence& element, std::string_view prefix);
/// The worst elements as a table, each bound split into its terms.
Element element_table(const std::vector<properties::ElementEvidence>& elements,
                      std::string_view prefix);
/// How often each share of the bound was reached.
Element histogram_figure(const properties::ErrorRecord& record, std::string_view prefix);

/// "9", "9 (generation 1)", "no token", "unspecified".
std::string token_text(std::int64_t position, std::int64_t generation);
/// The same for a bar: "9", "9′" (one prime per generation, a number beyond three).
std::string token_mark(std::int64_t position, std::int64_t generation);

}  // namespace kvcheck::reports
