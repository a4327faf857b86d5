#pragma once
// Asio's stream sockets of any family in one type; apart from base/asio.hpp because few need them.

#include "base/asio.hpp"

#include <boost/asio/generic/stream_protocol.hpp>
