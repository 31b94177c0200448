// The files that a page is made of, as text: page.html.mustache, page.css and page.js.
#pragma once

#include <string_view>

namespace kvcheck::reports {

std::string_view page_html_mustache();
std::string_view page_css();
std::string_view page_js();

}  // namespace kvcheck::reports
