// This fuzz target gives scored-checkpoint any bytes from the shepherd's socket, and any text as
// the launcher's argument. No descriptor comes with the bytes, so criu is never started, and each
// whole order is answered.
#include "base/assert.hpp"
#include "scored/privileged/checkpoint/attempt.hpp"
#include "scored/privileged/checkpoint/protocol.hpp"
#include "scored/privileged/checkpoint/server.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using score::checkpoint::CriuReply;
  score::launcher::Launch launch{};
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (score::checkpoint::take_launch(launch, text.c_str())) {
    SCORE_ASSERT(std::strlen(launch.shepherd) < PATH_MAX);
    SCORE_ASSERT(std::strlen(launch.request.denied) < score::launcher::kDeniedBytes);
  }
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return 0;
  constexpr std::size_t kMost = 65'536;
  const std::size_t sent = size < kMost ? size : kMost;
  SCORE_ASSERT(write(ends[0], data, sent) == static_cast<ssize_t>(sent));
  shutdown(ends[0], SHUT_WR);
  std::array<char, 18> criu{"/nonexistent/criu"};
  score::checkpoint::serve(ends[1], criu.data());
  close(ends[1]);
  CriuReply reply;
  while (read(ends[0], &reply, sizeof reply) == sizeof reply) SCORE_ASSERT(reply.error != 0);
  close(ends[0]);
  return 0;
}
