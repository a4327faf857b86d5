// In these tests each step of becoming a user fails, or claims success without effect. The process
// must then not continue as that user. The linker puts the functions below in place of libc's.
#include "scored/privileged/launcher/identity.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <grp.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

enum class Fault { None, Fails, Lies };

Fault g_setgroups = Fault::None;
Fault g_setresgid = Fault::None;
Fault g_setresuid = Fault::None;

template <class Call>
int with_fault(Fault fault, Call&& call) {
  if (fault == Fault::None) return call();
  errno = EPERM;
  return fault == Fault::Fails ? -1 : 0;
}

}  // namespace

extern "C" {
int __real_setgroups(std::size_t count, const gid_t* groups);
int __real_setresgid(gid_t real, gid_t effective, gid_t saved);
int __real_setresuid(uid_t real, uid_t effective, uid_t saved);

int __wrap_setgroups(std::size_t count, const gid_t* groups) {
  return with_fault(g_setgroups, [&] { return __real_setgroups(count, groups); });
}

int __wrap_setresgid(gid_t real, gid_t effective, gid_t saved) {
  return with_fault(g_setresgid, [&] { return __real_setresgid(real, effective, saved); });
}

int __wrap_setresuid(uid_t real, uid_t effective, uid_t saved) {
  return with_fault(g_setresuid, [&] { return __real_setresuid(real, effective, saved); });
}
}

namespace score::launcher {
namespace {

constexpr uid_t kUser = 65534;
constexpr uid_t kNoEntry = 2'000'000'123;

// Returns the text that `work` returns in a child.
template <class Work>
std::string in_child(Work&& work) {
  int pipe_ends[2] = {-1, -1};
  EXPECT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = work();
    [[maybe_unused]] const auto written = write(pipe_ends[1], text.data(), text.size());
    _exit(0);
  }
  close(pipe_ends[1]);
  char text[100] = {};
  const ssize_t got = read(pipe_ends[0], text, sizeof text - 1);
  close(pipe_ends[0]);
  waitpid(child, nullptr, 0);
  return {text, static_cast<std::size_t>(got > 0 ? got : 0)};
}

// Returns the result of become() in a child of root.
std::string step_of(uid_t uid, const Fault (&faults)[3]) {
  return in_child([&]() -> std::string {
    g_setgroups = faults[0];
    g_setresgid = faults[1];
    g_setresuid = faults[2];
    gid_t wanted[] = {100, 65534};
    const UserIdentity user{
        .uid = uid, .gid = 65534, .groups = wanted, .group_count = 2, .environment = nullptr};
    const char* failed = become(user);
    return failed != nullptr ? failed : "done";
  });
}

struct Step {
  Fault groups, gid, uid;
  const char* says;
};

class DroppingRoot : public ::testing::TestWithParam<Step> {};

TEST_P(DroppingRoot, ReportsTheStepThatFailed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const Step& step = GetParam();
  EXPECT_EQ(step_of(kUser, {step.groups, step.gid, step.uid}), step.says);
}

TEST(Identity, RootThatMayNotSetGroupsStaysItself) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(step_of(0, {Fault::Fails, Fault::Fails, Fault::Fails}), "done");
  EXPECT_EQ(step_of(0, {Fault::Lies, Fault::None, Fault::None}), "verify the groups");
}

TEST(Identity, OwnUserNeedsNoEntry) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const auto found = [](uid_t asked) {
    return in_child([asked]() -> std::string {
      if (setgroups(0, nullptr) != 0 || setresuid(kNoEntry, kNoEntry, kNoEntry) != 0) return "";
      UserIdentity user;
      if (const int error = look_up(asked, user); error != 0) return std::strerror(error);
      const char* failed = become(user);
      return failed != nullptr ? failed : user.environment[1] + std::string(user.environment[2]);
    });
  };
  EXPECT_EQ(found(kNoEntry), "HOME=/USER=2000000123");
  EXPECT_EQ(found(kNoEntry + 1), "No such file or directory");
}

INSTANTIATE_TEST_SUITE_P(
    EachStep, DroppingRoot,
    ::testing::Values(Step{Fault::None, Fault::None, Fault::None, "done"},
                      Step{Fault::Fails, Fault::None, Fault::None, "setgroups"},
                      Step{Fault::None, Fault::Fails, Fault::None, "setresgid"},
                      Step{Fault::None, Fault::None, Fault::Fails, "setresuid"},
                      Step{Fault::Lies, Fault::None, Fault::None, "verify the groups"},
                      Step{Fault::None, Fault::Lies, Fault::None, "verify the group id"},
                      Step{Fault::None, Fault::None, Fault::Lies, "verify the user id"}));

}  // namespace
}  // namespace score::launcher
