// Contrast of the colours that the page really uses.
#include "reports/palette.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reports/page_assets.h"

namespace kvcheck::reports {
namespace {

double channel(std::string_view colour, std::size_t at) {
  const double value = std::stoi(std::string(colour.substr(at, 2)), nullptr, 16) / 255.0;
  return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

double luminance(std::string_view colour) {
  return 0.2126 * channel(colour, 1) + 0.7152 * channel(colour, 3) + 0.0722 * channel(colour, 5);
}

/// Contrast ratio of two colours, from 1 to 21 (WCAG 2).
double contrast(std::string_view a, std::string_view b) {
  const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
  return std::max(x, y) / std::min(x, y);
}

std::vector<Colour> with_role(Role role) {
  std::vector<Colour> found;
  std::copy_if(kPalette.begin(), kPalette.end(), std::back_inserter(found),
               [&](const Colour& colour) { return colour.role == role; });
  return found;
}

TEST(Contrast, IsTwentyOneForBlackOnWhite) {
  EXPECT_NEAR(contrast("#000000", "#ffffff"), 21, 1e-9);
  EXPECT_NEAR(contrast("#777777", "#ffffff"), 4.478, 1e-3);
}

TEST(Palette, KeepsWordsReadableOnEverySurface) {
  for (const Colour& text : with_role(Role::text)) {
    for (const Colour& surface : with_role(Role::surface)) {
      EXPECT_GE(contrast(text.light, surface.light), 4.5) << text.name << " on " << surface.name;
      EXPECT_GE(contrast(text.dark, surface.dark), 4.5) << text.name << " on " << surface.name;
    }
  }
}

TEST(Palette, KeepsMarksVisibleOnThePage) {
  for (const Colour& mark : with_role(Role::mark)) {
    EXPECT_GE(contrast(mark.light, "#ffffff"), 3.0) << mark.name;
    EXPECT_GE(contrast(mark.dark, "#14181d"), 3.0) << mark.name;
  }
}

TEST(Palette, KeepsNumbersReadableOnResidentBars) {
  for (const Colour& on_mark : with_role(Role::on_mark)) {
    EXPECT_GE(contrast(on_mark.light, light("resident")), 4.5);
    EXPECT_GE(contrast(on_mark.dark, "#5ab0e6"), 4.5);
  }
}

TEST(Palette, IsTheOnlySourceOfColour) {
  const std::string_view css = page_css();
  for (std::size_t at = css.find('#'); at != std::string_view::npos; at = css.find('#', at + 1)) {
    const std::string_view word = css.substr(at + 1, 3);
    const bool hex = std::all_of(word.begin(), word.end(),
                                 [](unsigned char c) { return std::isxdigit(c) != 0; });
    EXPECT_FALSE(hex) << css.substr(at, 20);
  }
  EXPECT_EQ(css.find("rgb("), std::string_view::npos);
  // Every variable that the style uses is one of the palette.
  for (std::size_t at = css.find("var(--"); at != std::string_view::npos;
       at = css.find("var(--", at + 1)) {
    const std::string_view name = css.substr(at + 6, css.find(')', at) - at - 6);
    EXPECT_TRUE(std::any_of(kPalette.begin(), kPalette.end(), [&](const Colour& colour) {
      return colour.name == name;
    })) << name;
  }
}

TEST(PaletteCss, DefinesEveryColourForBothThemes) {
  const std::string css = palette_css();
  for (const Colour& colour : kPalette) {
    const std::string name = "--" + std::string(colour.name) + ":";
    EXPECT_NE(css.find(name + std::string(colour.light)), std::string::npos) << colour.name;
    EXPECT_NE(css.find(name + std::string(colour.dark)), std::string::npos) << colour.name;
  }
  EXPECT_LT(css.find("prefers-color-scheme:dark"), css.find("data-theme=light"));
}

}  // namespace
}  // namespace kvcheck::reports
