// Implements the control socket of a running cluster. A request is one line; the reply is one line,
// "ok ..." or "error ...".
#pragma once

#include "base/os/fd.hpp"
#include "base/result.hpp"

#include <deque>
#include <functional>
#include <string>

namespace score::scout {

// Serves all clients without waiting for any of them. A client that sends no complete line keeps
// its connection until newer clients need the place. All calls come from the owner's thread.
class ControlServer {
 public:
  using Answer = std::function<std::string(const std::string&)>;

  // Errors: errno codes.
  static Result<ControlServer> open(const std::string& path);

  // The descriptor is readable when serve() has something to do.
  [[nodiscard]] int fd() const { return ready_.get(); }

  // Accepts clients of our user and root, and answers every complete line.
  void serve(const Answer& answer);

 private:
  struct Client {
    UniqueFd socket;
    std::string line;
  };

  ControlServer(UniqueFd listener, UniqueFd ready);
  void accept_clients();
  // Returns true if the client has closed or has its answer.
  static bool answer_client(Client& client, const Answer& answer);

  UniqueFd listener_;
  UniqueFd ready_;              // epoll: the listener and every client
  std::deque<Client> clients_;  // oldest first
};

// Sends a request. Returns the text after "ok". Errors: the supervisor's text; errno codes.
Result<std::string> ask_control(const std::string& path, const std::string& request);

}  // namespace score::scout
