#pragma once
// Includes the parts of Boost.Asio that this project uses, and nothing more. Include this header
// instead of <boost/asio...>, because the whole library costs twice the compile time. Everything
// that is not a template is compiled once, in asio_impl.cpp (BOOST_ASIO_SEPARATE_COMPILATION).
//
// co_spawn is left out on purpose: tasks are started with TaskGroup::spawn
// (base/async/task_group.hpp).

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace score::inline base {

namespace asio = boost::asio;

// With this token an operation returns its error code instead of throwing: `auto [ec, n] = co_await
// socket.async_read_some(buffer, score::kNoThrow);`
inline constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);

}  // namespace score::inline base
