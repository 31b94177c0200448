// Words and numbers as reports print them.
#include "reports/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace kvcheck::reports {
namespace {

constexpr char32_t kBroken = 0xFFFD;

/// Reads one code point at `at` and moves past it; broken bytes give kBroken, one at a time.
char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  const int length = lead < 0x80             ? 1
                     : (lead & 0xE0) == 0xC0 ? 2
                     : (lead & 0xF0) == 0xE0 ? 3
                     : (lead & 0xF8) == 0xF0 ? 4
                                             : 0;
  if (length == 0 || at + static_cast<std::size_t>(length) > text.size()) return ++at, kBroken;
  constexpr std::array<unsigned char, 5> kLeadBits = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t code = lead & kLeadBits[static_cast<std::size_t>(length)];
  for (int i = 1; i < length; ++i) {
    const unsigned char continuation = byte(at + static_cast<std::size_t>(i));
    if ((continuation & 0xC0) != 0x80) return ++at, kBroken;
    code = (code << 6) | (continuation & 0x3F);
  }
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kSmallest[static_cast<std::size_t>(length)] || code > 0x10FFFF || surrogate) {
    return ++at, kBroken;
  }
  at += static_cast<std::size_t>(length);
  return code;
}

/// Marks that change the order or the presence of the text around them.
bool reorders(char32_t code) {
  return code == 0x061C || (code >= 0x200B && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF;
}

bool is_control(char32_t code) { return code < 0x20 || (code >= 0x7F && code <= 0x9F); }

/// Code points that XML 1.0 and HTML cannot carry, not even escaped.
bool is_forbidden(char32_t code) {
  return (code & 0xFFFE) == 0xFFFE || (code >= 0xFDD0 && code <= 0xFDEF);
}

}  // namespace

std::string clean_text(std::string_view text, bool keep_lines, std::size_t limit) {
  std::string out;
  out.reserve(std::min(text.size(), limit) + 16);
  std::size_t at = 0;
  while (at < text.size() && at < limit) {
    const std::size_t start = at;
    const char32_t code = next_code_point(text, at);
    if (code == '\n' || code == '\t') {
      out += keep_lines ? static_cast<char>(code) : ' ';
    } else if (is_control(code)) {
      out += fmt::format("\\x{:02x}", static_cast<std::uint32_t>(code));
    } else if (reorders(code) || is_forbidden(code)) {
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code));
    } else if (code == kBroken) {
      out += "\xEF\xBF\xBD";
    } else {
      out += text.substr(start, at - start);
    }
  }
  if (at < text.size()) {
    out += fmt::format(" (cut: {} of {} bytes shown)", grouped(static_cast<std::int64_t>(at)),
                       grouped(static_cast<std::int64_t>(text.size())));
  }
  return out;
}

std::string escape(std::string_view text, bool keep_lines, std::size_t limit) {
  std::string out;
  for (const char c : clean_text(text, keep_lines, limit)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string grouped(std::int64_t number) {
  std::string digits = fmt::format("{}", number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) digits.insert(i -= 3, 1, ',');
  return digits;
}

std::string counted(std::int64_t number, std::string_view singular, std::string_view plural) {
  const std::string many = plural.empty() ? std::string(singular) + "s" : std::string(plural);
  return grouped(number) + " " + (number == 1 ? std::string(singular) : many);
}

std::string brief(double number) {
  if (std::isnan(number)) return "nan";
  return fmt::format("{:.3g}", number);
}

std::string ratio_text(double ratio) {
  if (!std::isfinite(ratio)) return brief(ratio);
  if (ratio >= 1e6) return fmt::format("{:.2g}", ratio);
  if (ratio >= 100) return grouped(std::llround(ratio));
  // Near 1 the digits grow until the printed number is on the same side as the real one.
  for (int digits = 2; digits < 17; ++digits) {
    std::string text = fmt::format("{:.{}g}", ratio, digits);
    double printed = 0;
    std::from_chars(text.data(), text.data() + text.size(), printed);
    if ((printed > 1) == (ratio > 1) && (printed < 1) == (ratio < 1)) return text;
  }
  return fmt::format("{:.17g}", ratio);
}

std::string exact(double number) { return std::isnan(number) ? "nan" : fmt::format("{}", number); }

std::string hex_float(double number) {
  return std::isnan(number) ? "nan" : fmt::format("{:a}", number);
}

std::string set_text(const std::vector<std::int64_t>& positions, std::size_t limit) {
  std::string out = "{";
  std::size_t runs = 0;
  for (std::size_t i = 0; i < positions.size();) {
    if (runs++ == limit) {
      out += fmt::format(", ... {} more", grouped(static_cast<std::int64_t>(positions.size() - i)));
      break;
    }
    std::size_t last = i;
    while (last + 1 < positions.size() && positions[last + 1] == positions[last] + 1) ++last;
    // A few neighbours read better as numbers than as a range.
    constexpr std::size_t kShortRun = 4;
    if (last - i < kShortRun - 1) last = i;
    if (i > 0) out += ", ";
    out += fmt::format("{}", positions[i]);
    if (last > i) out += fmt::format("-{}", positions[last]);
    i = last + 1;
  }
  return out + "}";
}

std::string list_text(const std::vector<std::int64_t>& numbers, std::size_t limit) {
  if (numbers.empty()) return "none";
  const auto differs = [&](std::int64_t n) { return n != numbers.front(); };
  if (std::none_of(numbers.begin(), numbers.end(), differs)) return grouped(numbers.front());
  std::string out;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) out += ", ";
    if (i == limit) return out + fmt::format("... {} in all", numbers.size());
    out += grouped(numbers[i]);
  }
  return out;
}

std::string shell_quoted(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,";
  if (!word.empty() && word.front() != '-' &&
      word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::vector<std::string> wrapped(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines(1);
  std::size_t used = 0;  // Code points in the last line.
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    std::string_view word = text.substr(at, end - at);
    at = end + 1;
    if (used > 0 && used + 1 + width(word) > columns) lines.emplace_back(), used = 0;
    if (used > 0) lines.back() += ' ', ++used;
    while (used + width(word) > columns) {
      std::size_t bytes = 0;
      for (std::size_t points = used; bytes < word.size() && points < columns; ++points) {
        next_code_point(word, bytes);
      }
      lines.back() += word.substr(0, bytes);
      word.remove_prefix(bytes);
      lines.emplace_back(), used = 0;
    }
    lines.back() += word;
    used += width(word);
  }
  return lines;
}

std::string_view headline(properties::Kind kind) {
  using properties::Kind;
  switch (kind) {
    case Kind::leak:
      return "A query sees a key that it may not see";
    case Kind::missing_key:
      return "A query does not see a key that it must see";
    case Kind::wrong_row:
      return "A cache row holds the wrong token";
    case Kind::stale_row:
      return "A cache row still holds a token that is gone";
    case Kind::over_bound:
      return "An output is farther from the truth than rounding can explain";
    case Kind::not_finite:
      return "An output is not finite where the truth is";
    case Kind::influence:
      return "Content that must not matter changes the output";
    case Kind::split_difference:
      return "Two splits of the same tokens give different results";
    case Kind::rollback_difference:
      return "A rolled back cache differs from one never extended";
    case Kind::bits_difference:
      return "Two ways to run one case give different bits, where equal ones are promised";
    case Kind::crash:
      return "The target crashed";
    case Kind::hang:
      return "The target did not answer in time";
    case Kind::nonsense:
      return "The target answered nonsense";
    case Kind::defect:
      return "The kernel did what no kernel may, whatever its outputs are";
    case Kind::wrongly_accepted:
      return "The target took a case that the contract refuses";
    case Kind::wrongly_refused:
      return "The target refused a case that it claims to take";
    case Kind::nondeterministic:
      return "The same case gives different bits each time";
  }
  return "The target broke its contract";
}

}  // namespace kvcheck::reports
