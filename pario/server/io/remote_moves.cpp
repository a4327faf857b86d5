// A read copies data from the file into the server's memory, then by a remote write into the
// client's, and then replies. A write is a remote read, then a write to the file, then the reply.
// Neighbouring extents whose bytes are neighbours in the client's memory too are moved together.
#include "pario/server/io/remote_moves.hpp"

#include "pario/channel/endpoints.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace score::pario {
namespace {

constexpr std::size_t kOperations = 32;  // in one move at once: the table has 128

}  // namespace

void RemoteMoves::start(TransferPtr transfer, std::uint64_t length) {
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
  move.error = endpoint_.add_region(data.get(), data.get_deleter().size, move.region, move.offset);
  move.is_registered = move.error == 0;
  move.transfer = std::move(transfer);
}

bool RemoteMoves::advance() {
  bool something = false;
  for (Move& move : moves_) something |= advance(move);
  return something;
}

bool RemoteMoves::advance(Move& move) {
  bool something = false;
  std::erase_if(move.open, [&](pm::OperationId op) {
    const int result = endpoint_.test(op);
    if (result == EINPROGRESS) return false;
    if (move.error == 0) move.error = result;
    something = true;
    return true;
  });
  return start_parts(move) || something;
}

bool RemoteMoves::start_parts(Move& move) {
  bool something = false;
  const RemoteMemory& remote = move.transfer->request.remote;
  while (move.has_more() && move.open.size() < kOperations) {
    const Move::Part& part = move.parts[move.next];
    const pm::RegionName name{remote.region, remote.nonce, remote.offset + part.there};
    const auto length = static_cast<std::uint32_t>(part.length);
    const std::uint64_t here = move.offset + part.here;
    pm::OperationId op = 0;
    const int error = move.transfer->request.op == Op::Write
                          ? endpoint_.read(kClientRank, move.region, here, name, length, op)
                          : endpoint_.write(kClientRank, move.region, here, name, length, op);
    if (error == ENOBUFS) break;
    something = true;
    move.error = error;
    if (error != 0) break;
    move.open.push_back(op);
    ++move.next;
    moved_bytes_ += part.length;
  }
  return something;
}

RemoteMoves::Finished RemoteMoves::take_finished() {
  const auto is_free = [this](const Move& move) {
    return move.open.empty() && !move.has_more() &&
           (!move.is_registered || endpoint_.drop_region(move.region) == 0);
  };
  const auto found = std::ranges::find_if(moves_, is_free);
  if (found == moves_.end()) return {};
  Finished finished{std::move(found->transfer), found->error};
  moves_.erase(found);
  return finished;
}

std::vector<TransferPtr> RemoteMoves::close() {
  std::vector<TransferPtr> transfers;
  for (Move& move : std::exchange(moves_, {})) transfers.push_back(std::move(move.transfer));
  return transfers;
}

bool RemoteMoves::needs_room() const {
  return std::ranges::any_of(moves_,
                             [](const Move& move) { return move.open.empty() && move.has_more(); });
}

}  // namespace score::pario
