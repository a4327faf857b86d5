#include "base/model/machine_fault.hpp"

#include <gtest/gtest.h>

namespace score {
namespace {

// The launcher reports ETIMEDOUT after it has killed the child that was late.
TEST(MachineFault, IsOfTheMachineOrTheJob) {
  for (const int code : {ETIMEDOUT, ECHILD, ECONNREFUSED, ECONNRESET, EPIPE, EEXIST, EAGAIN, ENOMEM,
                         ENOBUFS, ENFILE, EMFILE, ENOSPC, EIO, ESTALE}) {
    EXPECT_TRUE(is_machine_fault(Error(errno_code(code)))) << code;
  }
  EXPECT_TRUE(is_machine_fault(Error(Errc::Closed)));
  for (const int code : {ENOENT, EACCES, ENOEXEC, EPERM, ENOTDIR, EISDIR, ELOOP, ENAMETOOLONG,
                         E2BIG, ETXTBSY, EINVAL, EDQUOT, EFBIG}) {
    EXPECT_FALSE(is_machine_fault(Error(errno_code(code)))) << code;
  }
  for (const Errc code : {Errc::NotFound, Errc::Denied, Errc::TooLarge, Errc::Malformed}) {
    EXPECT_FALSE(is_machine_fault(Error(code)));
  }
}

}  // namespace
}  // namespace score
