#pragma once
// Sends a request over TCP or TLS and reads the status of the reply.

#include "base/async/asio.hpp"
#include "base/result.hpp"
#include "scored/head/config/notify_config.hpp"

#include <memory>
#include <string>
#include <vector>

namespace score::head {

// TrustedIssuers holds the certificates that a service's certificate is checked against.
struct TrustedIssuers;

// Loads the issuers of a PEM file, or those of this host if `ca_file` is empty. It may take 20 ms
// and may run on any thread. Errors name the file.
[[nodiscard]] Result<std::shared_ptr<TrustedIssuers>> load_issuers(const std::string& ca_file);

// Returns the addresses of the host. It blocks for as long as the resolver does. Errors: NotFound.
[[nodiscard]] Result<std::vector<asio::ip::tcp::endpoint>> resolve(const WebAddress& address);

// Connects to the first endpoint that accepts, sends the request, and returns the status code of
// the reply. With TLS the service must prove the host's name. The caller sets a time limit. Errors:
// the network's, Denied (the certificate), Malformed (the reply).
[[nodiscard]] asio::awaitable<Result<int>> send_request(
    WebAddress address, std::vector<asio::ip::tcp::endpoint> endpoints,
    std::shared_ptr<TrustedIssuers> issuers, std::string request);

}  // namespace score::head
