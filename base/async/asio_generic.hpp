#pragma once
// Asio's stream sockets of any family in one type; apart from base/async/asio.hpp because few need
// them.

#include "base/async/asio.hpp"

#include <boost/asio/generic/stream_protocol.hpp>
