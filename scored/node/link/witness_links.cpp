#include "scored/node/link/witness_links.hpp"

#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "base/os/log.hpp"
#include "proto/frames/hello.hpp"
#include "scored/shared/leases/lease_wire.hpp"

#include <utility>

namespace score::node {

namespace {

constexpr Duration kReconnect = 300ms;
// Each head asks more often than this, even one that only follows.
constexpr Duration kSilence = 5s;
constexpr std::size_t kMostFileBytes = 256;

proto::ConnectionLimits connection_limits() {
  proto::ConnectionLimits chosen;
  chosen.write_queue_bytes = 1 * limits::kMiB;
  chosen.write_deadline = kSilence;
  chosen.frame_deadline = limits::kFrameDeadline;
  return chosen;
}

leases::StoredGrant to_stored(const gang::Witness::Memory& memory) {
  return {memory.term, memory.holder, memory.mark};
}

}  // namespace

WitnessLinks::WitnessLinks(Parts parts, Setup setup, std::function<void(gang::HeadIndex)> held)
    : parts_(parts),
      setup_(std::move(setup)),
      held_(std::move(held)),
      links_(setup_.heads.size()) {}

void WitnessLinks::start() {
  gang::Witness::Memory memory;
  const auto text = read_file(setup_.file, kMostFileBytes);
  if (text) {
    const auto grant = leases::parse_grant(*text);
    if (grant) memory = {grant->term, grant->holder, grant->mark};
    if (!grant)
      log_error("Cannot read the stored lease; ignored", kv("file", setup_.file),
                kv("err", grant.error()));
  }
  witness_.emplace(memory, gang::LeaseTiming{}.lease, parts_.clock.now());
  for (gang::HeadIndex head = 0; head < setup_.heads.size(); ++head) {
    parts_.tasks.spawn("link of a witness", run(head));
  }
  parts_.tasks.spawn("close silent links", close_silent());
}

Status WitnessLinks::store() const {
  return replace_file(setup_.file, leases::format_grant(to_stored(witness_->memory())), 0600);
}

asio::awaitable<void> WitnessLinks::run(gang::HeadIndex head) {
  for (;;) {
    auto connected = co_await proto::tls_connect(parts_.tls, setup_.heads[head],
                                                 limits::kHandshakeDeadline, connection_limits());
    if (connected) {
      links_[head].last_error.clear();
      co_await serve(head, connected->connection);
    } else if (const std::string text = connected.error().message();
               text != links_[head].last_error) {
      links_[head].last_error = text;
      log_notice("Cannot connect to a head as its witness; retrying",
                 kv("head", format_endpoint(setup_.heads[head])), kv("err", text));
    }
    co_await parts_.clock.sleep_for(kReconnect);
  }
}

asio::awaitable<void> WitnessLinks::serve(gang::HeadIndex head,
                                          std::shared_ptr<proto::Connection> connection) {
  const auto spoken = proto::spoken_versions();
  wire::WitnessHello hello;
  hello.set_lowest_version(spoken.lowest);
  hello.set_highest_version(spoken.highest);
  hello.set_name(setup_.node);
  proto::send(*connection, hello);
  links_[head].connection = connection;
  links_[head].heard = parts_.clock.now();
  for (;;) {
    auto frame = co_await connection->read(proto::Role::Head);
    if (!frame) break;
    links_[head].heard = parts_.clock.now();
    if (!answer(head, *connection, *frame)) break;
  }
  connection->close();
  links_[head].connection = nullptr;
}

bool WitnessLinks::answer(gang::HeadIndex head, proto::Connection& connection,
                          const proto::InFrame& frame) {
  const auto request = leases::read<wire::LeaseRequest>(frame);
  if (!request || request->head != head) {
    log_warning(
        "Closed the connection of a witness to a head",
        kv("head", format_endpoint(setup_.heads[head])),
        kv("why", request ? "it sent a request of the other head" : request.error().message()));
    return false;
  }
  const gang::Witness before = *witness_;
  const auto reply = witness_->answer(*request, parts_.clock.now());
  if (witness_->memory() != before.memory()) {
    if (const auto stored = store(); !stored) {
      *witness_ = before;
      log_error("Cannot store the lease; not granted", kv("err", stored.error()));
      return true;
    }
  }
  proto::send(connection, proto::to_wire(reply));
  // The mark is from the term of the request, so the head has won the election.
  const bool is_in_charge = reply.granted && request->mark.term == request->term;
  if (is_in_charge && (shown_ != head || shown_term_ != request->term)) {
    shown_ = head;
    shown_term_ = request->term;
    log_notice("Following the head in charge", kv("head", format_endpoint(setup_.heads[head])));
    held_(head);
  }
  return true;
}

asio::awaitable<void> WitnessLinks::close_silent() {
  for (;;) {
    co_await parts_.clock.sleep_for(kSilence / 2);
    for (const Link& link : links_) {
      const bool is_silent = link.connection && parts_.clock.now() - link.heard > kSilence;
      if (is_silent) link.connection->close();
    }
  }
}

}  // namespace score::node
