// This fuzz target sends the bytes of a WebSocket viewer after the handshake. They are frames of
// any shape, parsed as the server does until the viewer leaves or breaks the protocol. Nothing goes
// over a wire.

#include "base/assert.hpp"
#include "monitor/http/http_message.hpp"
#include "monitor/model/json_input.hpp"
#include "monitor/model/viewer_options.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/beast/_experimental/test/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

namespace beast = boost::beast;
namespace websocket = beast::websocket;
using namespace score::monitor;

http::request<http::empty_body> handshake() {
  http::request<http::empty_body> made(http::verb::get, "/api/v1/ws", 11);
  made.set(http::field::host, "localhost");
  made.set(http::field::connection, "Upgrade");
  made.set(http::field::upgrade, "websocket");
  made.set(http::field::sec_websocket_version, "13");
  made.set(http::field::sec_websocket_key, "AAAAAAAAAAAAAAAAAAAAAA==");
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  score::asio::io_context io;
  beast::test::stream peer(io);
  websocket::stream<beast::test::stream> socket(io);
  socket.next_layer().connect(peer);
  socket.read_message_max(kMaxMessageBytes);
  beast::error_code failed;
  socket.accept(handshake(), failed);
  SCORE_ASSERT(!failed);
  socket.next_layer().append({reinterpret_cast<const char*>(data), size});
  peer.close();  // the stream ends after these bytes
  beast::flat_buffer message;
  ViewerOptions options;
  for (;;) {
    message.clear();
    socket.read(message, failed);
    if (failed) return 0;
    SCORE_ASSERT(message.size() <= kMaxMessageBytes);
    const auto bytes = message.data();
    const std::string_view text(static_cast<const char*>(bytes.data()), bytes.size());
    if (const auto wish = read_message(text, options); wish) options = wish->options;
  }
}
