#pragma once
// Includes Asio's TLS streams. This is separate from base/async/asio.hpp because few files need
// them. Their code is compiled once, in asio_ssl_impl.cpp.

#include "base/async/asio.hpp"

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
