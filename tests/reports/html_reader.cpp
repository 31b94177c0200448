// A strict reader of the pages that reports write.
#include "tests/reports/html_reader.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <stdexcept>

namespace kvcheck::reports::test {
namespace {

constexpr std::array<std::string_view, 6> kVoid = {"meta", "link", "input", "br", "hr", "wbr"};

class Reader {
 public:
  explicit Reader(std::string_view page) : page_(page) {}

  std::unique_ptr<Node> read() {
    auto root = std::make_unique<Node>();
    expect("<!doctype html>");
    read_content(*root);
    if (at_ < page_.size()) fail("something after the last element");
    return root;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what +
                             " near: " + std::string(page_.substr(at_ < 40 ? 0 : at_ - 40, 120)));
  }

  bool starts(std::string_view text) const { return page_.substr(at_).starts_with(text); }

  void expect(std::string_view text) {
    if (!starts(text)) fail("expected " + std::string(text));
    at_ += text.size();
  }

  void read_content(Node& parent) {
    while (at_ < page_.size()) {
      const std::size_t end = std::min(page_.find('<', at_), page_.size());
      parent.text += unescaped(page_.substr(at_, end - at_));
      at_ = end;
      if (at_ == page_.size() || starts("</")) return;
      parent.children.push_back(read_element());
    }
  }

  std::unique_ptr<Node> read_element() {
    expect("<");
    auto node = std::make_unique<Node>();
    node->tag = word();
    while (!starts(">") && !starts("/>")) read_attribute(*node);
    if (starts("/>")) return at_ += 2, std::move(node);
    expect(">");
    if (std::find(kVoid.begin(), kVoid.end(), node->tag) != kVoid.end()) return node;
    if (node->tag == "script" || node->tag == "style") {
      const std::size_t end = page_.find("</" + node->tag, at_);
      if (end == std::string_view::npos) fail("an element that never ends");
      node->text = page_.substr(at_, end - at_);
      at_ = end;
    } else {
      read_content(*node);
    }
    expect("</" + node->tag + ">");
    return node;
  }

  void read_attribute(Node& node) {
    expect(" ");
    std::string name = word();
    if (node.attribute(name)) fail("the attribute " + name + " stands twice");
    std::string value;
    if (starts("=")) {
      expect("=\"");
      const std::size_t end = page_.find('"', at_);
      if (end == std::string_view::npos) fail("a value that never ends");
      const std::string_view raw = page_.substr(at_, end - at_);
      if (raw.find_first_of("<>") != std::string_view::npos) fail("a bare bracket in a value");
      value = unescaped(raw);
      at_ = end + 1;
    }
    node.attributes.emplace_back(std::move(name), std::move(value));
  }

  std::string word() {
    const std::size_t start = at_;
    while (at_ < page_.size() && (std::isalnum(static_cast<unsigned char>(page_[at_])) != 0 ||
                                  page_[at_] == '-' || page_[at_] == ':')) {
      ++at_;
    }
    if (at_ == start) fail("expected a name");
    return std::string(page_.substr(start, at_ - start));
  }

  std::string unescaped(std::string_view raw) const {
    constexpr std::array<std::pair<std::string_view, char>, 5> kEntities = {
        {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}}};
    std::string out;
    while (!raw.empty()) {
      if (raw.front() != '&') {
        if (raw.front() == '>') fail("a bare >");
        out += raw.front();
        raw.remove_prefix(1);
        continue;
      }
      const auto* found = std::find_if(kEntities.begin(), kEntities.end(),
                                       [&](const auto& e) { return raw.starts_with(e.first); });
      if (found == kEntities.end()) fail("a bare &");
      out += found->second;
      raw.remove_prefix(found->first.size());
    }
    return out;
  }

  std::string_view page_;
  std::size_t at_ = 0;
};

}  // namespace

const std::string* Node::attribute(std::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

bool Node::has_child(std::string_view name) const {
  return std::any_of(children.begin(), children.end(),
                     [&](const auto& child) { return child->tag == name; });
}

std::string Node::all_text() const {
  std::string out = text;
  for (const auto& child : children) out += " " + child->all_text();
  return out;
}

std::unique_ptr<Node> read_html(std::string_view page) {
  while (!page.empty() && page.back() == '\n') page.remove_suffix(1);
  return Reader(page).read();
}

void for_each(const Node& node, const std::function<void(const Node&)>& visit) {
  visit(node);
  for (const auto& child : node.children) for_each(*child, visit);
}

std::size_t count_nodes(const Node& node) {
  std::size_t count = node.text.empty() ? 1 : 2;
  for (const auto& child : node.children) count += count_nodes(*child);
  return count;
}

}  // namespace kvcheck::reports::test
