// Words and numbers as reports print them: clean text, fixed formats, no locale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "properties/verdict.h"

namespace kvcheck::reports {

/// Longest string of a record that a report shows; what is cut is said in its place.
inline constexpr std::size_t kMaxShown = 4000;

/// `text` as valid UTF-8 that cannot act: control characters and marks that reorder text become
/// visible ("\x1b", "\u202e"), broken bytes become U+FFFD, and what is longer than `limit` bytes
/// is cut with a note. Newlines and tabs stay where `keep_lines`, and become spaces otherwise.
std::string clean_text(std::string_view text, bool keep_lines = false,
                       std::size_t limit = kMaxShown);

/// `text` with & < > " ' escaped for HTML and XML, after clean_text.
std::string escape(std::string_view text, bool keep_lines = false, std::size_t limit = kMaxShown);

/// "4,096".
std::string grouped(std::int64_t number);

/// "1 step", "4,096 steps".
std::string counted(std::int64_t number, std::string_view singular, std::string_view plural = "");

/// Three significant digits; "nan", "inf", "-inf".
std::string brief(double number);

/// A bound ratio: "0.31", "9.6", "1,234", "3.2e+09", "inf"; never rounded onto or across 1.
std::string ratio_text(double ratio);

/// Shortest decimal that reads back to the same double.
std::string exact(double number);

/// "0x1.8p+1".
std::string hex_float(double number);

/// A set of positions: "{0, 1, 4-9}", at most `limit` runs, then "... 12 more"; "{}" when empty.
/// \pre ascending
std::string set_text(const std::vector<std::int64_t>& positions, std::size_t limit = 12);

/// "3" where all are equal, else "3, 5, 8", at most `limit` of them.
std::string list_text(const std::vector<std::int64_t>& numbers, std::size_t limit = 8);

/// `word` quoted for a POSIX shell where it needs to be.
std::string shell_quoted(std::string_view word);

/// Code points of valid UTF-8.
std::size_t width(std::string_view text);

/// Lines of at most `columns` code points, broken at spaces, in the middle of a longer word.
std::vector<std::string> wrapped(std::string_view text, std::size_t columns);

/// What a finding of this kind means, for example "A query sees a key that it may not see".
std::string_view headline(properties::Kind kind);

}  // namespace kvcheck::reports
