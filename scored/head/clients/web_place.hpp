#pragma once
// These functions decide where the web server of a head listens, whether the head is in charge or
// follows.

#include "base/result.hpp"
#include "monitor/http/http_server.hpp"
#include "scored/head/config/config.hpp"

namespace score::head {

// Returns the options of [monitor]; `settings.listen` must be set. Errors are one line.
[[nodiscard]] Result<monitor::HttpOptions> http_options(const monitor::MonitorSettings& settings);

// Opens the server at the configured port. With port 0 it takes the port of this head's last start,
// if that is free, so that open pages find it again. Otherwise it takes any port, and stores it.
// Errors: those of HttpServer::open().
[[nodiscard]] Status open_where_it_was(monitor::HttpServer& server, const HeadConfig& config);

}  // namespace score::head
