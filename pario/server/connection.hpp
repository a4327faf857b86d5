// Handles a client's connection: the handshake, then requests and replies. The resources of a
// client are bounded: kServerWindow requests, and memory as the owner permits. Beyond that limit
// the connection is not read.
#pragma once

#include "pario/server/io/ring.hpp"
#include "pario/server/io/session.hpp"
#include "pario/server/io/transfer.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace score::pario {

class Connection final {
 public:
  struct Identity {
    Key key{};
    std::string volume;
    std::uint32_t server = 0;
  };

  Connection(int fd, std::string peer, const Identity& identity, Ring& ring,
             ConnectionOwner& owner);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Sends the greeting. Returns an errno value if the system has no random bytes.
  int start();
  // Replies to a request of this connection. Does not delete the connection.
  void reply(TransferPtr transfer);
  // Call this when memory may be available again.
  void resume();
  // Call this once per second. It ends a connection that does not complete the handshake (5 s) or
  // take its replies (30 s).
  void tick();

  // Ends a connection whose place is needed.
  void give_way() { refuse(ConnectionOwner::Refused::TooSlow); }

  void close();
  // Handles an OpenChannel. Its answer has the data that the client needs.
  void open_session(Transfer& transfer);
  void run_session();

  // Records that this many more of its requests wait for other clients. These do not count for the
  // window.
  void park(int count) { parked_ += count; }

  // See Session; less than 0 if there is no session.
  std::int64_t session_due_us() const { return session_ ? session_->due_us() : -1; }

  bool has_session() const { return session_ != nullptr && state_ == State::Open; }

  // Returns a number that no earlier connection of this process has had; never 0.
  std::uint64_t number() const { return number_; }

  bool is_authenticated() const { return state_ == State::Open; }

 private:
  enum class State { Handshake, Open, Closed };

  struct Outgoing {
    std::string head;
    TransferPtr transfer;  // null: only the head is sent
    std::size_t data_bytes = 0;
  };

  int make_session(const Request& request, ChannelOffer& offer);
  bool is_window_full() const;
  void receive();
  void received(int result);
  void parse();
  bool take_answer();
  // Returns false if it must wait for more bytes, memory or room in the window.
  bool take_request();
  bool admit_request(Sizes sizes);
  void send();
  void sent(int result);
  void refuse(ConnectionOwner::Refused why);
  void check_end();

  static std::uint64_t next_number();

  int fd_;
  std::uint64_t number_ = next_number();
  std::string peer_;
  const Identity& identity_;
  Ring& ring_;
  ConnectionOwner& owner_;
  State state_ = State::Handshake;
  Nonce nonce_{};
  Event<&Connection::received> receiving_{*this};
  Event<&Connection::sent> sending_{*this};
  bool is_receiving_ = false;
  bool is_sending_ = false;
  bool is_ended_ = false;
  bool is_waiting_ = false;  // for memory
  std::vector<char> input_;
  std::size_t begin_ = 0;  // input_[begin_, end_) is not parsed
  std::size_t end_ = 0;
  TransferPtr filling_;  // a Write whose data has not arrived
  std::size_t filled_ = 0;
  std::size_t requests_ = 0;  // not answered, or the reply is not sent
  int parked_ = 0;            // of those: wait for other clients
  std::deque<Outgoing> output_;
  std::size_t output_sent_ = 0;  // bytes of the first of them
  std::array<iovec, 32> pieces_{};
  msghdr message_{};
  int idle_seconds_ = 0;  // without progress of the handshake or of a send
  std::unique_ptr<Session> session_;
  std::vector<std::unique_ptr<Session>> old_sessions_;  // closed, with running requests
  int stuck_seconds_ = 0;                               // of the session
};

}  // namespace score::pario
