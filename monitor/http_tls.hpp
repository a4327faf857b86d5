#pragma once
// TLS of the web server: a certificate for browsers, unlike the daemons' own keys.

#include "base/asio_ssl.hpp"
#include "base/result.hpp"

#include <memory>
#include <string>

namespace score::monitor {

struct TlsFront {
  TlsFront() : context(asio::ssl::context::tls_server) {}

  asio::ssl::context context;  // TLS 1.2 and newer
};

// PEM files: the certificate with its chain, and its key. Errors name the file.
[[nodiscard]] Result<std::unique_ptr<TlsFront>> load_tls(const std::string& certificate,
                                                         const std::string& key);

}  // namespace score::monitor
