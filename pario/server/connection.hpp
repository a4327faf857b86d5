// Handles a client's connection: the handshake, then requests and replies. The resources of a
// client are bounded: kServerWindow requests, and memory as the owner permits. Beyond that limit
// the connection is not read.
#pragma once

#include "pario/server/ring.hpp"
#include "pario/server/session.hpp"
#include "pario/server/transfer.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace score::pario {

class ConnectionOwner {
 public:
  enum class Refused { WrongKey, BadRequest, TooSlow };

  // Records that a client which tried PM uses TCP; `error`: the reason.
  virtual void fell_back(int error, const std::string& peer) = 0;
  // Counts bytes of data that were moved to or from a client's memory by PM.
  virtual void moved_by_pm(std::uint64_t bytes) = 0;

  virtual void execute(TransferPtr transfer) = 0;
  // Returns false if there is no memory now; the owner calls resume() later.
  virtual bool admit(Connection& connection, std::size_t memory) = 0;
  virtual void release(std::size_t memory) = 0;
  virtual Buffers& buffers() = 0;
  virtual void refused(Refused why, const std::string& peer) = 0;
  // No more data comes from the connection; requests of it that wait for others must be answered
  // now.
  virtual void closed(Connection& connection) = 0;
  // Calls run_session() at the end of this turn.
  virtual void wake(Connection& connection) = 0;
  // Returns false if this server has no memory for more sessions.
  virtual bool admit_session(Connection& connection) = 0;
  // Data of the connection goes by TCP from now on.
  virtual void dismiss_session(Connection& connection) = 0;
  // Nothing of the connection runs any more, so it may be deleted once the caller has returned.
  virtual void ended(Connection& connection) = 0;

 protected:
  ~ConnectionOwner() = default;
};

class Connection final : private Session::Owner {
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

  bool is_authenticated() const { return state_ == State::Open; }

 private:
  enum class State { Handshake, Open, Closed };

  template <void (Connection::*Function)(int)>
  struct Event final : Completion {
    explicit Event(Connection& owner) : connection(owner) {}

    void complete(int result) override { (connection.*Function)(result); }

    Connection& connection;
  };

  struct Outgoing {
    std::string head;
    TransferPtr transfer;  // null: only the head is sent
    std::size_t data_bytes = 0;
  };

  // These functions implement the owner of the session.
  bool admit(std::size_t memory) override { return owner_.admit(*this, memory); }

  void release(std::size_t memory) override { owner_.release(memory); }

  Buffers& buffers() override { return owner_.buffers(); }

  Connection* connection() override { return this; }

  void execute(TransferPtr transfer) override { owner_.execute(std::move(transfer)); }

  void wake() override { owner_.wake(*this); }

  void moved(std::uint64_t bytes) override { owner_.moved_by_pm(bytes); }

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

  int fd_;
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
