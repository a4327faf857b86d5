#include "base/systemd/passed_socket.hpp"

#include "base/errc.hpp"

#include <systemd/sd-daemon.h>

#include <sys/socket.h>

namespace score::inline base {

Result<std::optional<UniqueFd>> take_passed_socket(const std::string& path) {
  constexpr int kRemoveVariables = 1;
  constexpr int kListens = 1;
  const int count = sd_listen_fds(kRemoveVariables);
  if (count < 0) return fail(errno_code(-count), "cannot read $LISTEN_FDS");
  if (count == 0) return std::nullopt;
  if (count > 1) {
    return fail(Errc::Malformed, "the service manager passed {} sockets, expected one", count);
  }
  UniqueFd fd(SD_LISTEN_FDS_START);
  if (sd_is_socket_unix(fd.get(), SOCK_STREAM, kListens, path.c_str(), 0) <= 0) {
    return fail(Errc::Malformed,
                "the service manager passed a socket that does not listen on {}: "
                "ListenStream= of the socket unit must be this path",
                path);
  }
  return fd;
}

}  // namespace score::inline base
