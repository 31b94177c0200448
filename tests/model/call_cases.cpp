// Writes the calls of call_cases.h as JSON, for tests/tool/call_rules_test.py.
#include "tests/model/call_cases.h"

#include <cstdio>

int main() {
  std::puts(kvcheck::model::call_cases_json().c_str());
  return 0;
}
