//===- StatusTest.cpp - Errors as values ----------------------------------===//

#include "runtime/Status.h"

#include <gtest/gtest.h>

#include <memory>

using namespace tokentile;

TEST(Status, DefaultIsOk) {
  Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::Ok);
  EXPECT_EQ(status.toString(), "ok");
}

TEST(Status, ErrorKeepsCodeAndMessage) {
  Status status(StatusCode::OutOfRange, "batch 9 is not within 1 .. 8");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.toString(), "out of range: batch 9 is not within 1 .. 8");
}

TEST(Status, EveryCodeHasItsOwnName) {
  EXPECT_STREQ(statusCodeName(StatusCode::InvalidArgument), "invalid argument");
  EXPECT_STREQ(statusCodeName(StatusCode::NotFound), "not found");
  EXPECT_STREQ(statusCodeName(StatusCode::FailedPrecondition),
               "failed precondition");
  EXPECT_STREQ(statusCodeName(StatusCode::Unavailable), "unavailable");
  EXPECT_STREQ(statusCodeName(StatusCode::ResourceExhausted),
               "resource exhausted");
  EXPECT_STREQ(statusCodeName(StatusCode::CompileError), "compile error");
  EXPECT_STREQ(statusCodeName(StatusCode::NotCovered), "not covered");
  EXPECT_STREQ(statusCodeName(StatusCode::DataError), "data error");
  EXPECT_STREQ(statusCodeName(StatusCode::DriverError), "driver error");
}

TEST(StatusOr, HoldsAValue) {
  StatusOr<std::string> text = "words";
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(text.status().ok());
  EXPECT_EQ(*text, "words");
  EXPECT_EQ(text->size(), 5u);
}

TEST(StatusOr, HoldsAnError) {
  StatusOr<int> number = Status(StatusCode::NotFound, "no number");
  EXPECT_FALSE(number.ok());
  EXPECT_EQ(number.status().message(), "no number");
}

TEST(StatusOr, GivesUpMoveOnlyValues) {
  StatusOr<std::unique_ptr<int>> held = std::make_unique<int>(7);
  std::unique_ptr<int> taken = *std::move(held);
  EXPECT_EQ(*taken, 7);
}
