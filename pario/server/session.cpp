// A read copies data from the file into the server's memory, then by a remote write into the
// client's, and then replies. A write is a remote read, then a write to the file, then the reply.
// Neighbouring extents whose bytes are neighbours in the client's memory too are moved together.
#include "pario/server/session.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <poll.h>

namespace score::pario {
namespace {

constexpr int kRoundsPerTurn = 64;       // then other sessions have their turn
constexpr std::size_t kOperations = 32;  // in one move at once: the table has 128
constexpr std::size_t kMostInput = kServerWindow * (kHeaderBytes + kMaxBodyBytes);

bool is_remote_write(const Transfer& transfer) {
  return transfer.request.op == Op::Write;
}

}  // namespace

std::int64_t monotonic_us() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000;
}

Session::Session(EndpointPtr endpoint, Ring& ring, Connection& connection, ConnectionOwner& owner)
    : endpoint_(std::move(endpoint)),
      ring_(ring),
      connection_(connection),
      owner_(owner),
      pipe_(*endpoint_, kClientRank) {}

Session::~Session() = default;

void Session::Polled::complete(int) {
  is_polling = false;
  session.owner_.sessions().wake(session.connection_);
}

Session::Fault Session::turn() {
  if (is_closed_) return Fault::None;
  disarm();
  for (int round = 0; round < kRoundsPerTurn; ++round) {
    const bool something = do_something();
    if (pipe_.is_broken() && fault_ == Fault::None) fault_ = Fault::Broken;
    if (fault_ != Fault::None) return fault_;
    if (something) continue;
    arm();
    if (is_armed_) return Fault::None;
  }
  owner_.sessions().wake(connection_);
  return Fault::None;
}

bool Session::do_something() {
  bool something = endpoint_->progress();
  while (fault_ == Fault::None && pipe_.receive(input_)) {
    something = true;
    take_requests();
    if (input_.size() > kMostInput) fault_ = Fault::BadRequest;
  }
  something |= admit_waiting();
  something |= advance_moves();
  const bool has_sent = pipe_.flush();
  has_moved_ |= has_sent;
  return something || has_sent;
}

void Session::arm() {
  pm::Endpoint::Sleep sleep;
  if (endpoint_->prepare_sleep(-1, pm::ContextState::Rests, sleep) != 0) return;
  std::int64_t timeout_us = sleep.timeout_us;
  const auto needs_room = [](const Move& move) {
    return move.open.empty() && move.error == 0 && move.next < move.parts.size();
  };
  const bool waits_for_room = pipe_.has_output() || std::ranges::any_of(moves_, needs_room);
  if (waits_for_room && (timeout_us < 0 || timeout_us > kRoomLookUs)) timeout_us = kRoomLookUs;
  due_us_ = timeout_us < 0 ? -1 : monotonic_us() + timeout_us;
  is_armed_ = true;
  poll(peers_news_, sleep.news[0].fd);
  poll(device_news_, sleep.news[1].fd);
}

void Session::poll(Polled& polled, int fd) {
  if (polled.is_polling || fd < 0) return;
  io_uring_prep_poll_add(ring_.next(&polled), fd, POLLIN);
  polled.is_polling = true;
}

void Session::disarm() {
  if (is_armed_) endpoint_->after_select();
  is_armed_ = false;
}

bool Session::take_requests() {
  bool something = false;
  while (fault_ == Fault::None && take_one()) something = true;
  return something;
}

bool Session::take_one() {
  if (input_.size() < kHeaderBytes) return false;
  Sizes sizes;
  if (!parse_sizes(std::span<const char, kHeaderBytes>(input_.data(), kHeaderBytes), sizes)) {
    fault_ = Fault::BadRequest;
    return false;
  }
  const std::size_t length = kHeaderBytes + sizes.body;
  if (input_.size() < length) return false;
  auto transfer = std::make_unique<Transfer>();
  transfer->bytes.assign(input_, 0, length);
  input_.erase(0, length);
  const bool is_parsed = parse_request(transfer->bytes, transfer->request);
  if (is_parsed && transfer->request.op == Op::OpenChannel && !std::exchange(is_greeted_, true)) {
    greet(transfer->request);
    return true;
  }
  if (!is_parsed || (transfer->request.flags & kRemote) == 0 || requests_ == kServerWindow) {
    fault_ = Fault::BadRequest;
    return false;
  }
  transfer->connection = &connection_;
  transfer->session = this;
  transfer->memory = memory_of(transfer->request);
  ++requests_;
  waiting_.push_back(std::move(transfer));
  return true;
}

// The client checks whether messages pass.
void Session::greet(const Request& request) {
  std::string bytes;
  put(bytes, Reply{.tag = request.tag});
  pipe_.push(std::move(bytes));
}

bool Session::admit_waiting() {
  bool something = false;
  while (!waiting_.empty() && owner_.admit(connection_, waiting_.front()->memory)) {
    TransferPtr transfer = std::move(waiting_.front());
    waiting_.pop_front();
    something = true;
    transfer->data = owner_.buffers().take(transfer->memory);
    if (is_remote_write(*transfer)) {
      const std::uint64_t length = transfer->memory;
      start_move(std::move(transfer), length);
    } else {
      ++running_;
      owner_.execute(std::move(transfer));
    }
  }
  return something;
}

// Moves the first `length` bytes.
void Session::start_move(TransferPtr transfer, std::uint64_t length) {
  Move& move = moves_.emplace_back();
  const Request& request = transfer->request;
  std::uint64_t here = 0;
  for (std::size_t i = 0; i < request.extents.size() && here < length; ++i) {
    const std::uint64_t part = std::min(request.extents[i].length, length - here);
    if (!move.parts.empty()) {
      Move::Part& last = move.parts.back();
      if (last.there + last.length == request.places[i]) {
        last.length += part;
        here += part;
        continue;
      }
    }
    move.parts.push_back({here, request.places[i], part});
    here += part;
  }
  const auto& data = transfer->data;
  move.error = endpoint_->add_region(data.get(), data.get_deleter().size, move.region, move.offset);
  move.is_registered = move.error == 0;
  move.transfer = std::move(transfer);
}

bool Session::advance_moves() {
  bool something = false;
  for (auto at = moves_.begin(); at != moves_.end();) {
    something |= advance(*at);
    const bool is_over = at->open.empty() && (at->error != 0 || at->next == at->parts.size());
    const bool is_free = is_over && (!at->is_registered || endpoint_->drop_region(at->region) == 0);
    if (!is_free) {
      ++at;
      continue;
    }
    Move move = std::move(*at);
    at = moves_.erase(at);
    finish_move(move);
    something = true;
  }
  has_moved_ |= something;
  return something;
}

// Finishes completed operations and starts more.
bool Session::advance(Move& move) {
  bool something = false;
  std::erase_if(move.open, [&](pm::OperationId op) {
    const int result = endpoint_->test(op);
    if (result == EINPROGRESS) return false;
    if (move.error == 0) move.error = result;
    something = true;
    return true;
  });
  return start_parts(move) || something;
}

bool Session::start_parts(Move& move) {
  bool something = false;
  const RemoteMemory& remote = move.transfer->request.remote;
  while (move.error == 0 && move.next < move.parts.size() && move.open.size() < kOperations) {
    const Move::Part& part = move.parts[move.next];
    const pm::RegionName name{remote.region, remote.nonce, remote.offset + part.there};
    const auto length = static_cast<std::uint32_t>(part.length);
    const std::uint64_t here = move.offset + part.here;
    pm::OperationId op = 0;
    const int error = is_remote_write(*move.transfer)
                          ? endpoint_->read(kClientRank, move.region, here, name, length, op)
                          : endpoint_->write(kClientRank, move.region, here, name, length, op);
    if (error == ENOBUFS) break;
    something = true;
    move.error = error;
    if (error != 0) break;
    move.open.push_back(op);
    ++move.next;
    owner_.moved_by_pm(part.length);
  }
  return something;
}

void Session::finish_move(Move& move) {
  TransferPtr transfer = std::move(move.transfer);
  if (move.error != 0) {
    // The client named memory that it has not registered, which an honest client never does.
    fault_ = move.error == EACCES ? Fault::BadRequest : Fault::Broken;
    forget(*transfer);
  } else if (is_remote_write(*transfer)) {
    ++running_;
    owner_.execute(std::move(transfer));
  } else {
    send_reply(std::move(transfer));
  }
}

void Session::reply(TransferPtr transfer) {
  --running_;
  if (is_closed_) return forget(*transfer);
  const Answer& answer = transfer->answer;
  if (answer.error == 0 && answer.data_bytes > 0) {
    const std::uint64_t length = answer.data_bytes;
    start_move(std::move(transfer), length);
  } else {
    send_reply(std::move(transfer));
  }
  owner_.sessions().wake(connection_);
}

void Session::send_reply(TransferPtr transfer) {
  std::string bytes;
  append_answer(*transfer, bytes);
  pipe_.push(std::move(bytes));
  forget(*transfer);
}

void Session::forget(Transfer& transfer) {
  --requests_;
  transfer.data.reset();
  owner_.release(transfer.memory);
}

void Session::close() {
  if (is_closed_) return;
  is_closed_ = true;
  disarm();
  for (Polled* polled : {&peers_news_, &device_news_}) {
    if (!polled->is_polling) continue;
    io_uring_prep_poll_remove(ring_.next(nullptr), reinterpret_cast<std::uint64_t>(polled));
  }
  requests_ -= waiting_.size();  // these have no memory yet
  waiting_.clear();
  endpoint_.reset();  // memory is no longer read or written after this
  for (Move& move : std::exchange(moves_, {})) forget(*move.transfer);
}

bool Session::is_stuck() {
  const bool waits = !moves_.empty() || pipe_.has_output();
  return waits && !std::exchange(has_moved_, false);
}

}  // namespace score::pario
