#include "pario/server/moves.hpp"

#include "pario/client/socket_calls.hpp"

#include <cerrno>
#include <utility>

namespace score::pario {
namespace {

// Clients reconnect to a killed server for as long.
constexpr std::int64_t kMostWaitMs = 10'000;

}  // namespace

int Moves::open() {
  std::vector<Store::Move> moves;
  const int error = store_.list_moves(moves);
  for (Store::Move& move : moves) failed_.push_back({.move = std::move(move), .transfer = {}});
  return error;
}

void Moves::run(TransferPtr transfer) {
  const Request& request = transfer->request;
  Store::Move move{request.other, std::string(request.name2), request.number};
  Answer& answer = transfer->answer;
  bool is_over = false;
  if (answer.error == 0 && answer.is_repeated) {
    bool has = false;
    answer.error = store_.has_move(move, has);
    is_over = !has;
  }
  if (answer.error == 0 && !is_over) answer.error = store_.put_move(move);
  if (answer.error != 0 || is_over) return finish_(std::move(transfer));
  made_.push_back(
      {std::move(move), std::make_shared<TransferPtr>(std::move(transfer)), monotonic_ms()});
}

void Moves::committed(int error) {
  for (const Pending& pending : std::exchange(made_, {})) {
    if (error == 0) {
      ask(pending);
    } else {
      (*pending.transfer)->answer.error = error;
      finish_(std::move(*pending.transfer));
    }
  }
}

void Moves::tick() {
  for (const Pending& pending : std::exchange(failed_, {})) ask(pending);
}

// A job may have to be repeated, so it has its own copy of the name.
void Moves::ask(const Pending& pending) {
  const auto shared = std::make_shared<Pending>(pending);
  const Store::Move& move = shared->move;
  const Request request{.op = Op::Unlink, .id = move.parent, .number = move.id, .name = move.name};
  peers_.ask(entry_server(move.parent, move.name, servers_), request,
             [this, shared](int error, const Reply&) { finished(*shared, error); });
}

void Moves::finished(const Pending& pending, int error) {
  // ENOENT means that the name refers to a different file by now, or did not exist.
  const bool is_done = error == 0 || error == ENOENT;
  if (is_done) static_cast<void>(store_.remove_move(pending.move));
  if (!is_done) {
    const bool waits = pending.transfer && monotonic_ms() - pending.since_ms < kMostWaitMs;
    failed_.push_back(waits ? pending : Pending{.move = pending.move, .transfer = {}});
    if (waits) return;
  }
  if (!pending.transfer) return;
  (*pending.transfer)->answer.error = is_done ? 0 : EIO;
  finish_(std::move(*pending.transfer));
}

}  // namespace score::pario
