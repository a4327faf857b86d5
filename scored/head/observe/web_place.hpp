#pragma once
// Where the web server of a head listens, for the head in charge and for one that follows.

#include "base/result.hpp"
#include "monitor/http/http_server.hpp"
#include "scored/head/config/config.hpp"

namespace score::head {

// The options that [monitor] gives. `settings.listen` must be set. Errors: one line.
[[nodiscard]] Result<monitor::HttpOptions> http_options(const monitor::MonitorSettings& settings);

// Opens it at the configured port. Port 0: the one of this head's last start, if it is free, so
// that open pages find it again; else any, which is noted. Errors: of HttpServer::open().
[[nodiscard]] Status open_where_it_was(monitor::HttpServer& server, const HeadConfig& config);

}  // namespace score::head
