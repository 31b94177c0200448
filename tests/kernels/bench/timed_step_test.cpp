#include "kernels/bench/timed_step.h"

#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace kvcheck::kernels::bench {
namespace {

/// Writes down what is done with it.
class Recorded : public TimedStep {
 public:
  Recorded(std::string name, std::string& log, std::int64_t steps = 1)
      : name_(std::move(name)), log_(log), steps_(steps) {}
  void prepare() override { log_ += "(" + name_ + ")"; }
  void run() override {
    log_ += name_;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  std::int64_t steps() const override { return steps_; }
  std::vector<double> output(std::int64_t) override { return {}; }

 private:
  std::string name_;
  std::string& log_;
  std::int64_t steps_;
};

TEST(TimedStep, EachRunIsPrepared) {
  std::string log;
  Recorded a("a", log);
  time_once(a);
  time_once(a);
  EXPECT_EQ(log, "(a)a(a)a");
}

TEST(TimedStep, TimesAreThoseOfOneStep) {
  std::string log;
  Recorded one("a", log), million("b", log, 1000000);
  EXPECT_GE(time_once(one), 200000);
  // The run as a whole would have to take 200 s.
  EXPECT_LT(time_once(million), 200000);
}

TEST(TimedStep, PairsGoABBAAndInstancesTakeTurns) {
  std::string log;
  Recorded a("a", log), a_too("A", log), b("b", log), b_too("B", log);
  TimedStep* const ours[] = {&a, &a_too};
  TimedStep* const other[] = {&b, &b_too};
  const Pairs pairs = time_pairs(ours, other, 0, 4, 0);
  EXPECT_EQ(log, "(a)a(b)b(B)B(A)A(a)a(b)b(B)B(A)A");
  EXPECT_EQ(pairs.a.size(), 4u);
  EXPECT_EQ(pairs.b.size(), 4u);
}

TEST(TimedStep, PairsBelongToTheirSides) {
  std::string log;
  Recorded slow("a", log), fast("b", log, 1000000);
  TimedStep* const a[] = {&slow};
  TimedStep* const b[] = {&fast};
  const Pairs pairs = time_pairs(a, b, 0, 4, 0);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_GT(pairs.a[i], pairs.b[i]) << i;
}

TEST(TimedStep, AtLeast31PairsAreTakenUnlessStopped) {
  std::string log;
  Recorded a("a", log), b("b", log);
  TimedStep* const one[] = {&a};
  TimedStep* const other[] = {&b};
  EXPECT_EQ(time_pairs(one, other, 0).a.size(), 31u);
  int left = 3;
  EXPECT_EQ(time_pairs(one, other, 0, 31, 0, [&] { return left-- == 0; }).a.size(), 3u);
}

TEST(TimedStep, AloneRunsAtLeastOnce) {
  std::string log;
  Recorded a("a", log);
  EXPECT_EQ(time_alone(a, 0).size(), 1u);
  EXPECT_EQ(log, "(a)a");
}

}  // namespace
}  // namespace kvcheck::kernels::bench
