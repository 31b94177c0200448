// HTML by type: escaping, links and the few rules of void and SVG elements.
#include "reports/html_writer.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "reports/text.h"

namespace kvcheck::reports {
namespace {

template <std::size_t n>
bool is_one_of(const std::array<std::string_view, n>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

constexpr std::array<std::string_view, 4> kVoid = {"br", "hr", "input", "wbr"};
constexpr std::array<std::string_view, 5> kShapes = {"rect", "path", "line", "circle", "polygon"};

}  // namespace

Element& Element::set(Name attribute, std::string_view value) {
  attributes_ += fmt::format(" {}=\"{}\"", attribute.text(), escape(value, false, value.size()));
  return *this;
}

Element& Element::flag(Name attribute) {
  attributes_ += fmt::format(" {}", attribute.text());
  return *this;
}

Element& Element::link_to(std::string_view id) {
  attributes_ += fmt::format(" href=\"#{}\"", escape(id));
  return *this;
}

Element& Element::download(std::string_view file_name, std::string_view media_type,
                           std::string_view bytes) {
  attributes_ += fmt::format(" download=\"{}\" href=\"data:{};base64,{}\"", escape(file_name),
                             escape(media_type), base64(bytes));
  return *this;
}

Element& Element::text(std::string_view text) {
  content_ += escape(text);
  return *this;
}

Element& Element::lines(std::string_view text) {
  content_ += escape(text, true);
  return *this;
}

Element& Element::add(const Element& child) {
  content_ += child.html();
  return *this;
}

std::string Element::html() const {
  const std::string_view tag = tag_.text();
  if (is_one_of(kVoid, tag)) return fmt::format("<{}{}>", tag, attributes_);
  if (content_.empty() && is_one_of(kShapes, tag)) return fmt::format("<{}{}/>", tag, attributes_);
  return fmt::format("<{0}{1}>{2}</{0}>", tag, attributes_, content_);
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t here = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < here ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out += k <= here ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

std::string id_part(std::string_view text) {
  constexpr std::size_t kLongest = 64;
  std::string out;
  for (const char c : text.substr(0, kLongest)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    out += plain ? std::string(1, c) : fmt::format("_{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace kvcheck::reports
