#pragma once
// EtcdClient sends requests to one member of an etcd cluster at a time, over HTTPS, and goes to the
// next member after a failure. After a timeout the request may still be carried out. Thread: the
// loop's.

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "base/result.hpp"
#include "scored/head/etcd/lease_config.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace score::head::etcd {

class EtcdClient {
 public:
  // Reads the files of certificates. Errors: Malformed, Denied, with the file's name. `clock` must
  // outlive the object.
  static Result<std::unique_ptr<EtcdClient>> open(asio::io_context& io, Clock& clock,
                                                  const LeaseConfig& config);
  ~EtcdClient();
  EtcdClient(const EtcdClient&) = delete;
  EtcdClient& operator=(const EtcdClient&) = delete;

  // Returns the body of the answer with status 200. One call at a time. Errors: Timeout, Closed,
  // Denied for a failed handshake, Malformed for no HTTP, and Busy for a refusal.
  asio::awaitable<Result<std::string>> post(std::string_view path, std::string body);

  // Closes the connection; the next request goes to the next member.
  void leave_member();

  // Returns the member that the last request went to, such as "a:2379".
  [[nodiscard]] std::string member() const;

 private:
  struct Link;

  EtcdClient(asio::io_context& io, Clock& clock, const LeaseConfig& config);

  asio::awaitable<Result<void>> connect();
  asio::awaitable<Result<std::string>> exchange(std::string request);

  Clock& clock_;
  std::vector<proto::TcpEndpoint> members_;
  std::size_t at_ = 0;
  std::unique_ptr<Link> link_;
};

}  // namespace score::head::etcd
