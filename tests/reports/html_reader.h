// A strict reader of the pages that reports write: what is not well formed throws.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvcheck::reports::test {

struct Node {
  std::string tag;
  std::vector<std::pair<std::string, std::string>> attributes;  // Values unescaped.
  std::vector<std::unique_ptr<Node>> children;
  std::string text;  // Own text, unescaped; raw in script and style.

  const std::string* attribute(std::string_view name) const;
  bool has_child(std::string_view name) const;
  /// Own text and that of all below.
  std::string all_text() const;
};

/// The tree of `page`; the root has no tag.
/// \throws std::runtime_error for a wrong nesting, a bare '<' or '&', a duplicate attribute
std::unique_ptr<Node> read_html(std::string_view page);

void for_each(const Node& node, const std::function<void(const Node&)>& visit);

/// Elements, and pieces of text beside them.
std::size_t count_nodes(const Node& node);

}  // namespace kvcheck::reports::test
