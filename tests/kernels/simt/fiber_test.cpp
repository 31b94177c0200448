// Fibers keep their stacks while others run.
#include "kernels/simt/fiber.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace kvcheck::kernels::simt {
namespace {

struct PingPong {
  Fiber outside, first, second;
  std::vector<int> heard;
};

// Each says its numbers from memory of its own stack, by turns.
void say(PingPong& game, Fiber& self, Fiber& other, int base) {
  volatile int numbers[3] = {base, base + 1, base + 2};
  for (int i = 0; i < 3; ++i) {
    const int number = numbers[i];
    game.heard.push_back(number);
    Fiber::switch_between(self, other);
  }
  Fiber::switch_between(self, game.outside);
}

void say_tens(void* argument) {
  auto& game = *static_cast<PingPong*>(argument);
  say(game, game.first, game.second, 10);
}
void say_twenties(void* argument) {
  auto& game = *static_cast<PingPong*>(argument);
  say(game, game.second, game.first, 20);
}

TEST(Fiber, TwoTakeTurnsAndComeBackOutside) {
  const Stack a(0), b(1);
  PingPong game;
  game.first.prepare(a, &say_tens, &game);
  game.second.prepare(b, &say_twenties, &game);
  Fiber::switch_between(game.outside, game.first);
  EXPECT_EQ(game.heard, (std::vector<int>{10, 20, 11, 21, 12, 22}));
}

struct Call {
  Fiber outside, fiber;
  int calls = 0;
};

void count(void* argument) {
  auto& call = *static_cast<Call*>(argument);
  ++call.calls;
  Fiber::switch_between(call.fiber, call.outside);
}

TEST(Fiber, AStackServesOneBodyAfterTheOther) {
  const Stack stack(3);
  Call call;
  for (int i = 1; i <= 3; ++i) {
    call.fiber.prepare(stack, &count, &call);
    Fiber::switch_between(call.outside, call.fiber);
    EXPECT_EQ(call.calls, i);
  }
}

TEST(Fiber, StacksAreWritableAlignedAndBeginAtDifferentLines) {
  const Stack first(0), second(1);
  std::memset(reinterpret_cast<void*>(first.begin()), 1, first.end() - first.begin());
  EXPECT_EQ(first.end() % 64, 0U);
  EXPECT_EQ(second.end() % 64, 0U);
  EXPECT_NE(first.end() % 4096, second.end() % 4096);
  EXPECT_GE(second.end() - second.begin(), 64U * 1024);
}

TEST(FiberDeathTest, AnOverflowEndsTheProgram) {
  const Stack stack(0);
  auto* const below = reinterpret_cast<volatile char*>(stack.begin() - 1);
  EXPECT_DEATH(*below = 1, "");
}

}  // namespace
}  // namespace kvcheck::kernels::simt
