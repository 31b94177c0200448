// A message and the part that it has to hold.
#pragma once

#include <string>

#include <gtest/gtest.h>

namespace kvcheck::kernels {

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is missing in: " << text;
}

}  // namespace kvcheck::kernels
