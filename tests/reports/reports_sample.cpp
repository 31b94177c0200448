// Prints the report of a sample record: reports_sample NAME [html | text | colour | junit].
#include <cstdio>
#include <exception>
#include <string>

#include "reports/report.h"
#include "tests/reports/sample_records.h"

int main(int argc, char** argv) {
  namespace reports = kvcheck::reports;
  if (argc < 2) {
    for (const auto name : reports::samples::names())
      std::printf("%s\n", std::string(name).c_str());
    return 0;
  }
  const std::string form = argc > 2 ? argv[2] : "html";
  try {
    const auto record = std::string(argv[1]) == "overfull" ? reports::samples::overfull()
                                                           : reports::samples::record(argv[1]);
    const std::string out = form == "html"     ? reports::html_page(record)
                            : form == "text"   ? reports::text_report(record, false)
                            : form == "colour" ? reports::text_report(record, true)
                                               : reports::junit_xml(record);
    std::fwrite(out.data(), 1, out.size(), stdout);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
