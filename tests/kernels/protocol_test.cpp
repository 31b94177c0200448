// Frames and heads as they travel.
#include "kernels/process/protocol.h"

#include <string>

#include <gtest/gtest.h>

#include "kernels/process/answer_head.h"
#include "kernels/process/capabilities_head.h"
#include "tests/kernels/expect_contains.h"

namespace kvcheck::kernels {
namespace {

std::string error_of(const auto& call) {
  try {
    call();
  } catch (const ProtocolError& error) {
    return error.what();
  }
  return "(no error)";
}

TEST(FramePrefix, IsMagicAndTwoLittleEndianLengths) {
  const auto bytes = encode_prefix({0x01020304 & 0xfffff, 0x11223344});
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_EQ(text, std::string("KVC1\x04\x03\x02\x00\x44\x33\x22\x11\0\0\0\0", 16));
  const FramePrefix back = decode_prefix(bytes, FrameKind::answer);
  EXPECT_EQ(back.head_bytes, 0x20304U);
  EXPECT_EQ(back.body_bytes, 0x11223344U);
}

TEST(FramePrefix, RejectsWhatIsNoFrame) {
  auto bytes = encode_prefix({2, 0});
  bytes[0] = std::byte{'k'};
  bytes[15] = std::byte{0xff};
  expect_contains(error_of([&] { decode_prefix(bytes, FrameKind::answer); }),
                  "must start with KVC1");
  expect_contains(error_of([&] { decode_prefix(bytes, FrameKind::answer); }), "\"kVC1\\x02");
  expect_contains(error_of([&] { decode_prefix(bytes, FrameKind::answer); }), "\\xff\"");
}

TEST(FramePrefix, RejectsLengthsOverTheLimits) {
  EXPECT_EQ(decode_prefix(encode_prefix({kHeadLimit, kBodyLimit}), FrameKind::answer).body_bytes,
            kBodyLimit);
  expect_contains(error_of([] {
                    decode_prefix(encode_prefix({kHeadLimit + 1, 0}), FrameKind::answer);
                  }),
                  "1048577");
  expect_contains(error_of([] {
                    decode_prefix(encode_prefix({0, kBodyLimit + 1}), FrameKind::answer);
                  }),
                  "2147483649");
}

TEST(FramePrefix, SaysWhoseFrameIsWrong) {
  auto bytes = encode_prefix({2, 0});
  bytes[0] = std::byte{'k'};
  expect_contains(error_of([&] { decode_prefix(bytes, FrameKind::request); }),
                  "a request must start with KVC1 but starts with \"kVC1");
  expect_contains(error_of([] {
                    decode_prefix(encode_prefix({0, kBodyLimit + 1}), FrameKind::request);
                  }),
                  "the request announces");
}

TEST(RequestHead, ListsTensorsInTheOrderOfTheBody) {
  StepRequest step;
  step.tokens = {2, 0};
  step.queries = {1, 0};
  step.query = Tensor::zeros(ElementType::f16, {1, 2});
  step.key = step.value = Tensor::zeros(ElementType::f16, {0});
  step.mask = Tensor::zeros(ElementType::boolean, {3});
  step.poison = PoisonRows{1e30, {3, 4}};
  const FrameContent content = step_request(7, 1, step, true);
  EXPECT_EQ(content.head,
            R"({"id":7,"kind":"step","poison":{"first_row":[3,4],"value":1e+30},"queries":[1,0],)"
            R"("session":1,"tensors":[{"name":"query","shape":[1,2],"type":"f16"},)"
            R"({"name":"key","shape":[0],"type":"f16"},{"name":"value","shape":[0],"type":"f16"},)"
            R"({"name":"mask","shape":[3],"type":"boolean"}],"tokens":[2,0],"want_rows":true})");
  ASSERT_EQ(content.tensors.size(), 4U);
  EXPECT_EQ(content.tensors[3].tensor, &*step.mask);
  EXPECT_EQ(step_request(7, 1, step, false).head.find("want_rows"), std::string::npos);
}

TEST(AnswerHead, ReadsTensorsAndTheirBytes) {
  const AnswerHead answer = decode_answer(
      R"({"id":5,"answer":"ok","tensors":[{"name":"output","type":"f64","shape":[2,3]},
          {"name":"visible","type":"boolean","shape":[0,9]}]})",
      5, 48);
  ASSERT_EQ(answer.tensors.size(), 2U);
  EXPECT_EQ(answer.tensors[0].name, "output");
  EXPECT_EQ(answer.tensors[0].type, ElementType::f64);
  EXPECT_EQ(answer.tensors[0].shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(answer.tensors[0].bytes, 48U);
  EXPECT_EQ(answer.tensors[1].bytes, 0U);
}

TEST(AnswerHead, ReadsRefusalsAndErrors) {
  const AnswerHead refused =
      decode_answer(R"({"id":1,"answer":"refused","reason":"too wide"})", 1, 0);
  EXPECT_EQ(refused.kind, AnswerHead::Kind::refused);
  EXPECT_EQ(refused.text, "too wide");
  const AnswerHead error = decode_answer(R"({"id":1,"answer":"error","detail":"lost"})", 1, 0);
  EXPECT_EQ(error.kind, AnswerHead::Kind::error);
  EXPECT_EQ(error.text, "lost");
  EXPECT_EQ(error.failure, Failure::Kind::crash);
}

TEST(AnswerHead, TellsTheKindOfAnError) {
  for (const auto kind : {Failure::Kind::crash, Failure::Kind::hang, Failure::Kind::nonsense,
                          Failure::Kind::defect}) {
    const AnswerHead answer = decode_answer(error_answer(4, {kind, "a race"}).head, 4, 0);
    EXPECT_EQ(answer.kind, AnswerHead::Kind::error);
    EXPECT_EQ(answer.failure, kind);
    EXPECT_EQ(answer.text, "a race");
  }
  EXPECT_EQ(error_answer(4, {Failure::Kind::crash, "a"}).head.find("kind"), std::string::npos);
  expect_contains(error_of([] {
                    decode_answer(R"({"id":1,"answer":"error","detail":"","kind":"bad"})", 1, 0);
                  }),
                  "kind = \"bad\": an error is one of crash, hang, nonsense, defect");
}

TEST(AnswerHead, TakesWhateverATargetSays) {
  const AnswerHead answer = decode_answer(refused_answer(2, {"caf\xe9"}).head, 2, 0);
  EXPECT_EQ(answer.kind, AnswerHead::Kind::refused);
  expect_contains(answer.text, "caf");
}

TEST(AnswerHead, TakesAnErrorOfARequestThatCouldNotBeRead) {
  EXPECT_EQ(decode_answer(R"({"id":0,"answer":"error","detail":"lost"})", 1, 0).text, "lost");
  EXPECT_THROW(decode_answer(R"({"id":0,"answer":"refused","reason":""})", 1, 0), ProtocolError);
  EXPECT_THROW(decode_answer(R"({"id":2,"answer":"error","detail":""})", 1, 0), ProtocolError);
}

TEST(AnswerHead, RejectsWhatTheProtocolDoesNotKnow) {
  const auto error = [](const char* head, std::uint64_t body = 0) {
    return error_of([&] { decode_answer(head, 1, body); });
  };
  expect_contains(error("[1]"), "not a JSON object");
  expect_contains(error("{\"id\":1"), "not a JSON object");
  expect_contains(error(R"({"answer":"ok"})"), "lacks the field id");
  expect_contains(error(R"({"id":"1","answer":"ok"})"), "answer.id = \"1\": has the wrong type");
  expect_contains(error(R"({"id":2,"answer":"ok"})"), "has the id 2, the request had 1");
  expect_contains(error(R"({"id":1,"answer":"maybe"})"), "of the kind \"maybe\"");
  expect_contains(error(R"({"id":1,"answer":"refused"})"), "lacks the field reason");
  expect_contains(error(R"({"id":1,"answer":"refused","reason":""})", 4), "its body has 4");
  expect_contains(error(R"({"id":1,"answer":"ok","tensors":3})"), "must be a list");
}

TEST(AnswerHead, RejectsTensorsThatCannotBe) {
  const auto error = [](const std::string& tensor, std::uint64_t body) {
    return error_of(
        [&] { decode_answer(R"({"id":1,"answer":"ok","tensors":[)" + tensor + "]}", 1, body); });
  };
  expect_contains(error(R"({"name":"output","type":"f8","shape":[1]})", 1), "type \"f8\"");
  expect_contains(error(R"({"name":"output","type":"f32","shape":[-1]})", 4), "shape [-1]");
  expect_contains(error(R"({"name":"output","type":"f32","shape":[0.5]})", 2), "shape [0.5]");
  expect_contains(error(R"({"name":"output","type":"f32","shape":[2147483648]})", 0),
                  "[2147483648]");
  expect_contains(error(R"({"name":"output","type":"f32","shape":[4611686018427387904,4]})", 0),
                  "4611686018427387904");
  expect_contains(error(R"({"name":"output","type":"f32","shape":[2]})", 4),
                  "take 8 bytes but its body has 4");
}

TEST(HelloAnswer, LeavesOutTakesTheDefaults) {
  const Capabilities claims =
      decode_hello(R"({"protocol":1,"name":"n","version":"2","capabilities":{}})");
  EXPECT_TRUE(claims.outputs);
  EXPECT_FALSE(claims.visible);
  EXPECT_EQ(claims.head_size_multiple, 1);
  EXPECT_EQ(claims.arithmetic.exp_error, Arithmetic{}.exp_error);
  EXPECT_TRUE(claims.features.empty());
}

TEST(HelloAnswer, ReadsClaimsOfOneOperatorOrFeature) {
  const Capabilities claims = decode_hello(
      R"({"protocol":1,"name":"n","version":"2","capabilities":{
          "element_types_where":{"gqa":["f16"]},"head_size_multiple_with":{"rotary":16},
          "isas":["avx512","avx2"],"features":["short_mask from 25","softcap f64"],
          "arithmetic_where":{"attention f16":{"splits":2},"attention f16 25":{"splits":3}}}})");
  EXPECT_EQ(claims.element_types_where.at("gqa"), std::set<std::string>{"f16"});
  EXPECT_EQ(claims.head_size_multiple_with.at("rotary"), 16);
  EXPECT_EQ(claims.isas, (std::vector<std::string>{"avx512", "avx2"}));
  EXPECT_FALSE(claims.has_at("short_mask", 24, "f32"));
  EXPECT_TRUE(claims.has_at("short_mask", 25, "f32"));
  EXPECT_TRUE(claims.has_at("softcap", 23, "f64"));
  EXPECT_FALSE(claims.has_at("softcap", 25, "f16"));
  EXPECT_EQ(claims.arithmetic_of("attention", "f16", 24).splits, 2);
  EXPECT_EQ(claims.arithmetic_of("attention", "f16", 25).splits, 3);
  EXPECT_EQ(claims.arithmetic_of("gqa", "f16", 1).splits, 1);
}

TEST(HelloAnswer, NamesTheFieldThatIsWrong) {
  const auto error = [](const std::string& claims) {
    return error_of([&] {
      decode_hello(R"({"protocol":1,"name":"n","version":"2","capabilities":)" + claims + "}");
    });
  };
  expect_contains(error(R"([])"), "capabilities must be an object");
  expect_contains(error(R"({"rows":1})"), "capabilities.rows = 1");
  expect_contains(error(R"({"opsets":["23"]})"), "capabilities.opsets holds \"23\"");
  expect_contains(error(R"({"head_size_multiple":0})"), "head_size_multiple = 0");
  expect_contains(error(R"({"head_size_multiple_with":{"rotary":0}})"), "with[\"rotary\"] = 0");
  expect_contains(error(R"({"element_types_where":{"gqa":"f32"}})"), "where.gqa must be an array");
  expect_contains(error(R"({"arithmetic":{"exp_error":"small"}})"),
                  "capabilities.arithmetic.exp_error");
  expect_contains(error(R"({"arithmetic":{"splits":-1}})"),
                  "capabilities.arithmetic.splits = -1: must be at least 0");
  expect_contains(error(R"({"arithmetic_where":{"gqa f16":{"splits":0.5}}})"),
                  "arithmetic_where[\"gqa f16\"].splits = 0.5");
}

}  // namespace
}  // namespace kvcheck::kernels
