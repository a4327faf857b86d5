// Provides connections over Unix stream sockets, for commands and shepherds. The identity of the
// peer comes from the kernel (SO_PEERCRED), never from the peer.
#pragma once

#include "base/os/fd.hpp"
#include "proto/transport/connection.hpp"

#include <memory>
#include <string>
#include <sys/types.h>

namespace score::proto {

struct UnixPeer {
  std::shared_ptr<Connection> connection;
  base::PeerCredentials credentials;  // of the process that connected or listened
};

// Takes over a connected stream socket (a shepherd's inherited one, or an end of a socketpair).
base::Result<UnixPeer> adopt_unix(boost::asio::any_io_executor executor, base::UniqueFd fd,
                                  ConnectionLimits limits);

// Errors: errno (std::errc::no_such_file_or_directory, connection_refused), Timeout.
boost::asio::awaitable<base::Result<UnixPeer>> connect_unix(std::string path,
                                                            base::Duration deadline,
                                                            ConnectionLimits limits);

class UnixListener {
 public:
  // Binds and listens. A socket file without a listener is replaced; a socket that is in use, or a
  // different file of that name, is an error. `mode` is the mode of the file, for example 0666 for
  // commands (any user may connect, the credentials decide) or 0600 for shepherds. The path has at
  // most 107 bytes.
  static base::Result<UnixListener> open(boost::asio::any_io_executor executor, std::string path,
                                         mode_t mode, ConnectionLimits limits);
  // Takes over a socket that already listens (systemd). `path` is only for messages.
  static base::Result<UnixListener> adopt(boost::asio::any_io_executor executor, base::UniqueFd fd,
                                          std::string path, ConnectionLimits limits);
  UnixListener(UnixListener&&) noexcept = default;
  UnixListener& operator=(UnixListener&&) noexcept = default;
  ~UnixListener();

  // Returns the next peer. When descriptors or memory are short it waits a little and tries again,
  // so a loop around it never spins. Errors: Cancelled, Closed (close() was called).
  boost::asio::awaitable<base::Result<UnixPeer>> accept();
  void close();  // also removes the file that open() made

  const std::string& path() const { return path_; }

 private:
  UnixListener(boost::asio::local::stream_protocol::acceptor acceptor, std::string path,
               bool owns_file, ConnectionLimits limits);

  boost::asio::local::stream_protocol::acceptor acceptor_;
  std::string path_;
  bool owns_file_ = false;
  ConnectionLimits limits_;
};

}  // namespace score::proto
