#pragma once
// Includes Asio's stream sockets of any family in one type. This is separate from
// base/async/asio.hpp because few files need them.

#include "base/async/asio.hpp"

#include <boost/asio/generic/stream_protocol.hpp>
