// HTML by type: an element takes text and elements, never markup.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvcheck::reports {

/// Name of an element or attribute: a literal, checked while compiling. Names that could run,
/// fetch or navigate are not to be had here; Element has a function for each safe use.
class Name {
 public:
  consteval Name(const char* text) : text_(text) {  // NOLINT(google-explicit-constructor)
    for (const char c : text_) {
      const bool allowed =
          (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
      if (!allowed) throw "a name holds letters, digits and hyphens";
    }
    for (const char* refused : {"href", "src", "srcset", "action", "formaction", "style", "script",
                                "iframe", "object", "embed", "link", "base", "form"}) {
      if (text_ == refused) throw "this name could run, fetch or navigate";
    }
    if (text_.starts_with("on")) throw "event handlers stay in the page's script";
  }

  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

/// One element with its content, written as it is built.
class Element {
 public:
  explicit Element(Name tag) : tag_(tag) {}

  Element& set(Name attribute, std::string_view value);
  template <std::integral Integer>
  Element& set(Name attribute, Integer value) {
    return set(attribute, std::to_string(value));
  }
  /// An attribute without a value, for example `open`.
  Element& flag(Name attribute);
  Element& id(std::string_view value) { return set("id", value); }
  Element& cls(std::string_view value) { return set("class", value); }

  /// href="#id", the only kind of link.
  Element& link_to(std::string_view id);
  /// A data: link that stores `bytes` as `file_name`.
  Element& download(std::string_view file_name, std::string_view media_type,
                    std::string_view bytes);

  Element& text(std::string_view text);
  /// Keeps newlines and tabs, for preformatted text.
  Element& lines(std::string_view text);
  Element& add(const Element& child);

  bool empty() const { return content_.empty(); }
  std::string html() const;

 private:
  Name tag_;
  std::string attributes_, content_;  // Finished markup.
};

/// RFC 4648 base 64, padded.
std::string base64(std::string_view bytes);

/// `text` as part of an id: letters, digits, '-' and '_' stay, other bytes become "_xx".
std::string id_part(std::string_view text);

}  // namespace kvcheck::reports
