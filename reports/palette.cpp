// The palette as CSS variables.
#include "reports/palette.h"

namespace kvcheck::reports {
namespace {

std::string variables(bool dark) {
  std::string out = dark ? "color-scheme:dark;" : "color-scheme:light;";
  for (const Colour& colour : kPalette) {
    out += "--" + std::string(colour.name) + ":" + std::string(dark ? colour.dark : colour.light) +
           ";";
  }
  return out;
}

}  // namespace

std::string palette_css() {
  const std::string bright = variables(false), dark = variables(true);
  std::string classes;
  for (const Colour& colour : kPalette) {
    const std::string name(colour.name);
    classes +=
        ".f-" + name + "{fill:var(--" + name + ")}.s-" + name + "{stroke:var(--" + name + ")}\n";
  }
  return ":root{" + bright + "}\n" +                                                          //
         "@media (prefers-color-scheme:dark){:root{" + dark + "}}\n" +                        //
         ":root[data-theme=light]{" + bright + "}\n:root[data-theme=dark]{" + dark + "}\n" +  //
         "@media print{:root,:root[data-theme]{" + bright + "}}\n" + classes;
}

}  // namespace kvcheck::reports
