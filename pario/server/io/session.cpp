#include "pario/server/io/session.hpp"

#include <cerrno>
#include <ctime>

namespace score::pario {
namespace {

constexpr int kRoundsPerTurn = 64;  // then other sessions have their turn
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
      connection_(connection),
      owner_(owner),
      pipe_(*endpoint_, kClientRank),
      watch_(*endpoint_, ring, [this] { owner_.sessions().wake(connection_); }),
      moves_(*endpoint_) {}

Session::~Session() = default;

Session::Fault Session::turn() {
  if (!endpoint_) return Fault::None;
  watch_.disarm();
  for (int round = 0; round < kRoundsPerTurn; ++round) {
    const bool something = do_something();
    if (pipe_.is_broken() && fault_ == Fault::None) fault_ = Fault::Broken;
    if (fault_ != Fault::None) return fault_;
    if (something) continue;
    if (watch_.arm(pipe_.has_output() || moves_.needs_room())) return Fault::None;
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
      moves_.start(std::move(transfer), length);
    } else {
      owner_.execute(std::move(transfer));
    }
  }
  return something;
}

bool Session::advance_moves() {
  bool something = moves_.advance();
  owner_.moved_by_pm(moves_.take_moved_bytes());
  for (auto over = moves_.take_finished(); over.transfer; over = moves_.take_finished()) {
    finish_move(std::move(over.transfer), over.error);
    something = true;
  }
  has_moved_ |= something;
  return something;
}

void Session::finish_move(TransferPtr transfer, int error) {
  if (error != 0) {
    // The client named memory that it has not registered, which an honest client never does.
    fault_ = error == EACCES ? Fault::BadRequest : Fault::Broken;
    forget(*transfer);
  } else if (is_remote_write(*transfer)) {
    owner_.execute(std::move(transfer));
  } else {
    send_reply(std::move(transfer));
  }
}

void Session::reply(TransferPtr transfer) {
  if (!endpoint_) return forget(*transfer);
  const Answer& answer = transfer->answer;
  if (answer.error == 0 && answer.data_bytes > 0) {
    const std::uint64_t length = answer.data_bytes;
    moves_.start(std::move(transfer), length);
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
  if (!endpoint_) return;
  watch_.close();
  requests_ -= waiting_.size();  // these have no memory yet
  waiting_.clear();
  endpoint_.reset();  // memory is no longer read or written after this
  for (const TransferPtr& transfer : moves_.close()) forget(*transfer);
}

bool Session::is_stuck() {
  const bool waits = !moves_.is_empty() || pipe_.has_output();
  return waits && !std::exchange(has_moved_, false);
}

}  // namespace score::pario
