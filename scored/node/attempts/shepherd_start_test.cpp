#include "scored/node/attempts/shepherd_start.hpp"

#include <gtest/gtest.h>

namespace score::node {
namespace {

// The launcher reports ETIMEDOUT after it has killed the child that was late.
TEST(MayRetry, IsTrueIfTheMachineIsTheCause) {
  for (const int error : {ETIMEDOUT, ECHILD, ECONNREFUSED, ECONNRESET, EPIPE, EEXIST}) {
    EXPECT_TRUE(may_retry(Error(errno_code(error)))) << error;
  }
  for (const int error : {ENOENT, EACCES, ENOEXEC, EPERM}) {
    EXPECT_FALSE(may_retry(Error(errno_code(error)))) << error;
  }
}

}  // namespace
}  // namespace score::node
