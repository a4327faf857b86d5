// scored-park refuses what is not a request of the node daemon about an attempt of its own.
#include "scored/privileged/park/protocol.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace score::park {
namespace {

// Runs scored-park on one end of a socket pair.
class Helper {
 public:
  explicit Helper(std::vector<const char*> arguments = {}) {
    int pair[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    arguments.insert(arguments.begin(), "scored-park");
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(pair[1], STDIN_FILENO);
      const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
      dup2(null, STDERR_FILENO);
      execv(PROGRAM, const_cast<char**>(arguments.data()));  // NOLINT: execv changes none of them
      _exit(99);
    }
    close(pair[1]);
    socket_ = pair[0];
  }

  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  ~Helper() {
    close(socket_);
    if (pid_ > 0) end();
  }

  void send(const std::string& bytes, const std::vector<int>& fds) const {
    std::string copy = bytes;
    iovec data{copy.data(), copy.size()};
    std::vector<char> control(CMSG_SPACE(fds.size() * sizeof(int)));
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
      std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
    }
    EXPECT_GE(sendmsg(socket_, &message, MSG_NOSIGNAL), 0);
  }

  // Returns true if it has answered; false if it has closed the connection.
  [[nodiscard]] bool answers() const {
    ParkReply reply;
    return recv(socket_, &reply, sizeof reply, 0) > 0;
  }

  int end() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  int socket_ = -1;
};

std::string bytes_of(const ParkRequest& request) {
  return {reinterpret_cast<const char*>(&request), sizeof request};
}

ParkRequest sound_request() {
  ParkRequest request;
  request.attempt = 257;
  request.most_bytes = 1U << 20U;
  return request;
}

void expect_refused(const std::string& bytes, const std::vector<int>& fds) {
  Helper helper;
  helper.send(bytes, fds);
  EXPECT_FALSE(helper.answers());
  EXPECT_EQ(helper.end(), 1);
}

TEST(Park, MalformedRequestIsRefused) {
  const int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(root, 0);
  const std::string sound = bytes_of(sound_request());
  expect_refused(sound.substr(0, sound.size() - 1), {root});
  expect_refused(sound + "x", {root});
  expect_refused("x", {root});
  expect_refused(sound, {});
  expect_refused(sound, {root, root, root, root});
  ParkRequest wrong = sound_request();
  wrong.magic ^= 1U;
  expect_refused(bytes_of(wrong), {root});
  wrong = sound_request();
  wrong.version = kVersion + 1;
  expect_refused(bytes_of(wrong), {root});
  wrong = sound_request();
  wrong.attempt = 0;
  expect_refused(bytes_of(wrong), {root});
  wrong = sound_request();
  wrong.is_back = 2;
  expect_refused(bytes_of(wrong), {root});
  close(root);
}

TEST(Park, DirectoryThatIsNoCgroupIsRefused) {
  std::string path = testing::TempDir() + "park_XXXXXX";
  ASSERT_NE(mkdtemp(path.data()), nullptr);
  const std::string job = path + "/job_257";
  const std::string tasks = job + "/tasks";
  ASSERT_EQ(mkdir(job.c_str(), 0755), 0);
  ASSERT_EQ(mkdir(tasks.c_str(), 0755), 0);
  const int directory = open(tasks.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(directory, 0);
  expect_refused(bytes_of(sound_request()), {directory});
  close(directory);
  rmdir(tasks.c_str());
  rmdir(job.c_str());
  rmdir(path.c_str());
}

TEST(Park, CallerOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  Helper helper({"--daemon-user", "nobody"});
  EXPECT_FALSE(helper.answers());
  EXPECT_EQ(helper.end(), 1);
}

TEST(Park, UnknownUserAndArgumentsAreRefused) {
  Helper unknown({"--daemon-user", "no.such.user"});
  EXPECT_FALSE(unknown.answers());
  EXPECT_EQ(unknown.end(), 1);
  Helper wrong({"--pid", "1"});
  EXPECT_FALSE(wrong.answers());
  EXPECT_EQ(wrong.end(), 2);
}

}  // namespace
}  // namespace score::park
