// Twofold numbers against 237 bits.
#include "model/twofold.h"

#include <cmath>
#include <random>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <gtest/gtest.h>

namespace kvcheck::model {
namespace {

using Wide = boost::multiprecision::cpp_bin_float_oct;

Wide wide(const Twofold& number) { return Wide(number.high) + Wide(number.low); }

/// Sizes from 2^-40 to 2^40, either sign, with a low part of any size that fits.
class Source {
 public:
  double number() { return std::ldexp(mantissa_(random_), exponent_(random_)) * sign(); }
  Twofold twofold() {
    const double high = number();
    return sum_of(high, high * 0x1p-53 * mantissa_(random_) / 2 * sign());
  }

 private:
  double sign() { return random_() % 2 == 0 ? 1.0 : -1.0; }
  std::mt19937_64 random_{11};
  std::uniform_real_distribution<double> mantissa_{0.5, 1};
  std::uniform_int_distribution<int> exponent_{-40, 40};
};

TEST(Twofold, SumsAndProductsOfDoublesAreExact) {
  Source source;
  for (int i = 0; i < 2000; ++i) {
    const double a = source.number(), b = source.number();
    EXPECT_EQ(wide(sum_of(a, b)), Wide(a) + Wide(b));
    EXPECT_EQ(wide(product_of(a, b)), Wide(a) * Wide(b));
  }
}

TEST(Twofold, OperationsAreRightTo100Bits) {
  Source source;
  const Wide error = ldexp(Wide(1), -100);
  for (int i = 0; i < 2000; ++i) {
    const Twofold a = source.twofold(), b = source.twofold();
    EXPECT_LE(abs(Wide(wide(a + b) - (wide(a) + wide(b)))), error * (abs(wide(a)) + abs(wide(b))));
    const Wide product = wide(a) * wide(b), quotient = wide(a) / wide(b);
    EXPECT_LE(abs(Wide(wide(a * b) - product)), error * abs(product));
    EXPECT_LE(abs(Wide(wide(a / b) - quotient)), error * abs(quotient));
    const Twofold positive = a.high > 0 ? a : Twofold(-a.high, -a.low);
    const Wide root = sqrt(wide(positive));
    EXPECT_LE(abs(Wide(wide(sqrt(positive)) - root)), error * root);
  }
}

TEST(Twofold, TheHighPartIsTheNearestDouble) {
  Source source;
  for (int i = 0; i < 2000; ++i) {
    const Twofold a = source.twofold(), b = source.twofold();
    for (const Twofold& number : {a + b, a * b, a / b}) {
      EXPECT_EQ(number.high, number.high + number.low);
    }
  }
}

TEST(Twofold, TellsWhatItCannotHold) {
  EXPECT_TRUE(Twofold::in_range(0));
  EXPECT_TRUE(Twofold::in_range(-0x1p-149)) << "the least number of f32";
  EXPECT_TRUE(Twofold::in_range(0x1.fffffep127));
  EXPECT_FALSE(Twofold::in_range(1e-300));
  EXPECT_FALSE(Twofold::in_range(-1e300));
  EXPECT_FALSE(Twofold::in_range(std::nan("")));
}

}  // namespace
}  // namespace kvcheck::model
