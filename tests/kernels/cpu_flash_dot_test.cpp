// cpu-flash-dot as a target: what it claims, what it refuses, and where it cannot run.
#include <cstdlib>

#include <gtest/gtest.h>

#include "kernels/cpu/flash/cpu_flash.h"
#include "kernels/registry.h"
#include "tests/kernels/cpu_sequence.h"
#include "tests/kernels/dot_sequence.h"

namespace kvcheck::kernels {
namespace {

SessionConfig bf16_cache() {
  SessionConfig config = full_cache();
  config.element_type = ElementType::bf16;
  return config;
}

std::string refusal_of(const SessionConfig& config) {
  const auto target = make_cpu_flash_dot();
  auto opened = target->open(config);
  const auto* refused = std::get_if<Refusal>(&opened);
  return refused == nullptr ? "" : refused->reason;
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is missing in: " << text;
}

/// KVCHECK_ISA for one test.
class AskedIsa {
 public:
  explicit AskedIsa(const char* isa) { ::setenv("KVCHECK_ISA", isa, 1); }
  ~AskedIsa() { ::unsetenv("KVCHECK_ISA"); }
};

TEST(CpuFlashDot, DeclaresWeightsInBf16) {
  const auto target = make_cpu_flash_dot();
  const Capabilities& can = target->capabilities();
  EXPECT_EQ(can.name, "cpu-flash-dot");
  EXPECT_EQ(can.element_types, std::set<std::string>{"bf16"});
  // Eight bits of significand: half a unit in the last place of 1 is 2^-8.
  EXPECT_EQ(can.arithmetic.probability_roundoff, 0x1p-8);
  EXPECT_TRUE(can.arithmetic.sums_stored_weights);
  EXPECT_FALSE(can.has("isa_bits"));
  EXPECT_FALSE(can.has("rotary"));
  EXPECT_TRUE(can.has("split_bits"));
}

TEST(CpuFlashDot, RefusesWhatItDoesNotMultiplyInBf16) {
  SKIP_WITHOUT_DOT_PRODUCTS();
  EXPECT_EQ(refusal_of(bf16_cache()), "");
  expect_contains(refusal_of(full_cache()), "element_type = f32: cpu-flash-dot takes bf16");
  SessionConfig config = bf16_cache();
  config.isa = "avx2";
  expect_contains(refusal_of(config), "isa = avx2: cpu-flash-dot has no choice");
  config = bf16_cache();
  config.qk_norm.emplace();
  config.qk_norm->query_weight = config.qk_norm->key_weight =
      tensor_of(ElementType::bf16, {1}, {1});
  expect_contains(refusal_of(config), "qk_norm = given: cpu-flash-dot does not compute it");
  config = bf16_cache();
  config.head_size = config.value_head_size = 2;
  config.rotary.emplace();
  config.rotary->cos = config.rotary->sin = tensor_of(ElementType::bf16, {16, 1}, Numbers(16, 0));
  expect_contains(refusal_of(config), "rotary = given");
}

TEST(CpuFlashDot, AnswersASession) {
  SKIP_WITHOUT_DOT_PRODUCTS();
  const auto target = make_cpu_flash_dot();
  SessionConfig config = bf16_cache();
  config.scale = 1;
  auto session = std::move(std::get<std::unique_ptr<Session>>(target->open(config)));
  StepRequest request;
  request.tokens = request.queries = {2};
  request.query = tensor_of(ElementType::bf16, {1, 2, 1, 1}, {1, 1});
  request.key = tensor_of(ElementType::bf16, {1, 2, 1, 1}, {0, -1});
  request.value = tensor_of(ElementType::bf16, {1, 2, 1, 1}, {0, 1});
  auto answer = session->step(request);
  // 0.3671875 / 1.3671875 = 0.26857 is nearer to 0.26953125 than to 0.267578125, which exact
  // weights would give (0.26844).
  EXPECT_EQ(numbers_of(*std::get<StepResult>(answer).output), (Numbers{0, 0.26953125}));
}

TEST(CpuFlashDot, SaysWhyItCannotRun) {
  const bool there = flash::dot_kernels() != nullptr;
  EXPECT_EQ(cpu_flash_dot_problem().empty(), there);
  if (!there) expect_contains(cpu_flash_dot_problem(), "AVX512_BF16");

  const AskedIsa asked("avx2");
  const std::string reason =
      "cpu-flash-dot cannot run here: KVCHECK_ISA is avx2, and it needs avx512; unset it";
  EXPECT_EQ(refusal_of(bf16_cache()), reason);
  auto made = make_target("cpu-flash-dot", {});
  ASSERT_TRUE(std::holds_alternative<Unavailable>(made));
  EXPECT_EQ(std::get<Unavailable>(made).reason, reason);
  EXPECT_FALSE(std::get<Unavailable>(made).unknown);
  for (const TargetInfo& info : list_targets({})) {
    if (info.name != "cpu-flash-dot") continue;
    EXPECT_FALSE(info.available);
    EXPECT_EQ(info.reason, reason);
    EXPECT_FALSE(info.version.empty());
  }
}

}  // namespace
}  // namespace kvcheck::kernels
