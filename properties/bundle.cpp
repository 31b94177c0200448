// Joining axes, running, comparing.
#include "properties/bundle.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "properties/variant.h"

namespace kvcheck::properties {
namespace {

bool compares_bits(const Property& property, const kernels::Capabilities& target) {
  return property.axis.bits.empty() || target.has(property.axis.bits);
}

std::string why_not(Case& c, const std::vector<Variant>& ways) {
  for (const Variant& way : ways) {
    std::string why = cannot_run(c.target(), way.scenario);
    if (!why.empty()) return why;
  }
  return "";
}

/// Turns the case along every axis in turn; those that cannot be turned leave `joining`. With
/// `careful` an axis also leaves whose ways cannot be run.
std::vector<Variant> turn_all(Case& c, std::vector<const Property*>& joining, bool careful) {
  std::vector<Variant> ways;
  ways.push_back(unchanged(c));
  std::erase_if(joining, [&](const Property* property) {
    Draw draw = axis_draw(c.scenario(), property->id);
    if (!careful) return !property->axis.turn(c, ways, draw);
    std::vector<Variant> turned = ways;
    if (!property->axis.turn(c, turned, draw) || !why_not(c, turned).empty()) return true;
    ways = std::move(turned);
    return false;
  });
  return ways;
}

std::string names(const std::vector<const Property*>& properties) {
  std::vector<std::string> ids;
  for (const Property* property : properties) ids.push_back(property->id);
  return fmt::format("{}", fmt::join(ids, ", "));
}

}  // namespace

Draw axis_draw(const model::Scenario& scenario, std::string_view property) {
  // FNV-1a over the id, from the seed on.
  std::uint64_t mixed = 0xcbf29ce484222325u ^ scenario.fill.seed;
  for (const char letter : property) {
    mixed = (mixed ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  }
  return Draw(rc::Random(mixed));
}

Bundle::Bundle(Case& c) : c_(c) {
  if (!c.execution().complete) return;
  // Those whose bits are compared, and the others; first the runs in which all changes at once.
  std::vector<const Property*> together[2], apart[2], either[2];
  for (const Property& property : catalog()) {
    if (property.axis.run == Axis::Run::none) continue;
    if (!property.inapplicable(c.scenario(), c.capabilities()).empty()) continue;
    auto& groups = property.axis.run == Axis::Run::together ? together
                   : property.axis.run == Axis::Run::apart  ? apart
                                                            : either;
    groups[compares_bits(property, c.capabilities()) ? 0 : 1].push_back(&property);
  }
  for (const int bits : {0, 1}) {
    auto& joined = apart[bits].empty() ? together[bits] : apart[bits];
    joined.insert(joined.end(), either[bits].begin(), either[bits].end());
  }
  for (const int bits : {0, 1}) {
    const auto left = run(std::move(together[bits]), bits == 0);
    // What finds no place in the first run has one in the second, or runs alone.
    if (!apart[bits].empty()) apart[bits].insert(apart[bits].end(), left.begin(), left.end());
  }
  for (const int bits : {0, 1}) run(std::move(apart[bits]), bits == 0);
}

std::vector<const Property*> Bundle::run(std::vector<const Property*> joining, bool bitwise) {
  if (joining.empty()) return {};
  const std::vector<const Property*> tried = joining;
  std::vector<Variant> ways = turn_all(c_, joining, false);
  if (!why_not(c_, ways).empty()) {
    joining = tried;
    ways = turn_all(c_, joining, true);
  }
  std::vector<const Property*> left;
  std::ranges::copy_if(tried, std::back_inserter(left), [&](const Property* property) {
    return std::ranges::find(joining, property) == joining.end();
  });
  if (joining.empty()) return left;
  bool agree = true;
  for (const Variant& way : ways) {
    Comparison found = compare_variant(c_, way, bitwise);
    if (!found.broke.empty()) return left;
    // Where scaling excuses a difference, another axis may have made it: each is judged alone.
    agree = agree && !found.spared;
    if (!found.difference) continue;
    agree = false;
    found.difference->sentence = fmt::format("the same case run another way, as {} allow: {}",
                                             names(joining), found.difference->sentence);
    if (!difference_) difference_ = std::move(found.difference);
    break;
  }
  for (const Property* property : joining) joined_.emplace_back(property, agree);
  return left;
}

bool Bundle::settles(const Property& property) const {
  const auto found = std::ranges::find_if(
      joined_, [&](const auto& entry) { return entry.first->id == property.id; });
  return found != joined_.end() && found->second;
}

const Judgement& Bundle::judge_alone(const Property& property) {
  const auto found = alone_.find(property.id);
  if (found != alone_.end()) return found->second;
  return alone_.emplace(property.id, property.judge(c_)).first->second;
}

std::optional<Difference> Bundle::unexplained() {
  if (!difference_) return std::nullopt;
  for (const auto& [property, agrees] : joined_) {
    if (!agrees && judge_alone(*property).verdict == Verdict::failed) return std::nullopt;
  }
  return difference_;
}

}  // namespace kvcheck::properties
