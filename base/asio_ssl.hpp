#pragma once
// Asio's TLS streams; apart from base/asio.hpp because few need them. Their code is compiled once,
// in asio_ssl_impl.cpp.

#include "base/asio.hpp"

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
