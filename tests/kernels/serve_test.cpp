// Requests on a pipe: where they end, and what a target or a frame can do to the service.
#include "kernels/process/serve.h"

#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/served_pipes.h"

namespace kvcheck::kernels {
namespace {

using nlohmann::json;

class Serve : public Served {};

TEST_F(Serve, EndsWithTheRequests) {
  greet();
  EXPECT_EQ(code(), 0);
}

TEST_F(Serve, ARefusalIsAnAnswer) {
  greet();
  SessionConfig config;
  config.batch = 9;
  EXPECT_EQ(ask(open_request(4, 1, config)),
            json::parse(R"({"id":4,"answer":"refused","reason":"too many"})"));
  open(1);
  EXPECT_EQ(ask(rollback_request(5, 1, std::vector<std::int64_t>{2}))["reason"], "only one");
  EXPECT_EQ(ask(R"({"kind":"open","id":6,"session":3,"config":{"logit_bias":30}})")["reason"],
            "config.logit_bias: this target does not know the field");
  EXPECT_EQ(ask(rollback_request(7, 1, std::vector<std::int64_t>{1}))["answer"], "ok");
  EXPECT_EQ(code(), 0);
}

TEST_F(Serve, AFailureEndsTheService) {
  ready();
  told_.on_step = [](int) { return Failure{Failure::Kind::defect, "a race"}; };
  const json answer = ask(step_request(2, 1, one_token(), false));
  EXPECT_EQ(answer, json::parse(R"({"id":2,"answer":"error","kind":"defect","detail":"a race"})"));
  EXPECT_EQ(code(), 1);
}

TEST_F(Serve, AnExceptionEndsTheService) {
  ready();
  told_.on_step = [](int) -> Answer<StepResult> { throw std::runtime_error("out of luck"); };
  EXPECT_EQ(error_of(step_request(2, 1, one_token(), false)), "out of luck");
}

TEST_F(Serve, AnAnswerOverTheLimitsIsAnError) {
  ready();
  told_.on_step = [](int) {
    StepResult result;
    result.output = Tensor::zeros(ElementType::f32, {1});
    result.output->shape.assign(std::size_t{1} << 20, 1);
    return result;
  };
  expect_contains(error_of(step_request(2, 1, one_token(), false)), "the limits are 1048576");
}

TEST_F(Serve, WantsTheTensorsToFillTheBody) {
  ready();
  const Tensor rows = Tensor::zeros(ElementType::f32, {3});
  expect_contains(error_of({R"({"kind":"load","id":1,"session":1,"lengths":[0],"tensors":[)"
                            R"({"name":"rows.key","type":"f32","shape":[2]}]})",
                            {{"rows.key", &rows}}}),
                  "the tensors of the request take 8 bytes but its body has 12");
}

TEST_F(Serve, StopsAtAHeadThatIsNoJson) {
  const json answer = ask("{]");
  EXPECT_EQ(answer["id"], 0);
  expect_contains(error_in(answer), "the head of the request is not a JSON object");
}

TEST_F(Serve, StopsAtWhatIsNoFrame) {
  write("what can you do?", 16);
  expect_contains(error_in(answer()), "a request must start with KVC1 but starts with \"what can");
}

TEST_F(Serve, StopsWhereAFrameIsCut) {
  write("KVC1\x20\0", 6);
  requests_.close(1);
  EXPECT_EQ(error_in(answer()), "the requests ended after 6 of 16 bytes");
}

TEST_F(Serve, StopsWhereABodyIsCut) {
  const auto prefix = encode_prefix({2, 0});
  write(prefix.data(), prefix.size());
  requests_.close(1);
  EXPECT_EQ(error_in(answer()), "the requests ended in the middle of a frame");
}

TEST_F(Serve, EndsWhenNobodyReadsItsAnswers) {
  answers_.close(0);
  const FrameContent hello = hello_request(1);
  OutgoingFrame frame("hello", hello.head, {});
  ASSERT_TRUE(frame.write_to(requests_.writer()));
  EXPECT_EQ(code(), 1);
}

}  // namespace
}  // namespace kvcheck::kernels
