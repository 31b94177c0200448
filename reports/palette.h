// The colours of the page: one meaning, one look, in light and dark.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace kvcheck::reports {

enum class Role {
  surface,  ///< Something is drawn on it.
  text,     ///< Words; contrast of at least 4.5 on every surface.
  mark,     ///< Shapes; contrast of at least 3.0 on the page.
  on_mark,  ///< Words on a resident bar.
  hairline  ///< Decoration that carries no meaning.
};

struct Colour {
  std::string_view name;  ///< Of the CSS variable, without the dashes.
  Role role;
  std::string_view light, dark;
};

/// Colour is never the only channel: every mark here also has a shape, a pattern or a word.
inline constexpr std::array<Colour, 20> kPalette = {{
    {"page", Role::surface, "#ffffff", "#14181d"},
    {"raised", Role::surface, "#f6f8fa", "#1c2229"},
    {"code", Role::surface, "#eef1f4", "#232a32"},
    {"failed-tint", Role::surface, "#fdf0ee", "#2f1d1e"},
    {"passed-tint", Role::surface, "#e8f5f2", "#16282a"},
    {"warn-tint", Role::surface, "#fdf3e3", "#2b2416"},
    {"text", Role::text, "#1b1f24", "#e6edf3"},
    {"muted", Role::text, "#57606a", "#9aa4af"},
    {"link", Role::text, "#0a5ea8", "#6cb6ff"},
    {"failed-text", Role::text, "#b3261e", "#ff7b72"},
    {"passed-text", Role::text, "#00695c", "#7ee0d2"},
    {"warn-text", Role::text, "#8a4a05", "#f0a840"},
    {"resident", Role::mark, "#0072b2", "#5ab0e6"},
    {"staged", Role::mark, "#b45f06", "#f0a840"},
    {"evicted", Role::mark, "#87909a", "#8b949e"},
    {"rolled-back", Role::mark, "#7a2f8f", "#d98ac2"},
    {"failed", Role::mark, "#b3261e", "#ff7b72"},
    {"passed", Role::mark, "#00695c", "#7ee0d2"},
    {"on-mark", Role::on_mark, "#ffffff", "#0d1117"},
    {"hairline", Role::hairline, "#d8dee4", "#373e47"},
}};

/// The light colour called `name`; a presentation attribute shows it where style is blocked.
constexpr std::string_view light(std::string_view name) {
  for (const Colour& colour : kPalette) {
    if (colour.name == name) return colour.light;
  }
  return "#000000";
}

/// The rules that define every colour as a variable (light, dark by preference, either by the
/// page's switch, light in print) and as the classes .f-NAME (fill) and .s-NAME (stroke).
std::string palette_css();

}  // namespace kvcheck::reports
