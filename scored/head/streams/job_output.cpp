#include "scored/head/streams/job_output.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace score::head {

OutputActions JobOutput::arrived(OutputChunk chunk) {
  OutputActions actions;
  if (chunk.data.empty()) return actions;
  const std::uint64_t size = chunk.data.size();
  log_.push_back({end_, std::make_shared<const OutputChunk>(std::move(chunk))});
  end_ += size;
  if (!waits_) give_back(end_, actions);
  pump_all(actions);
  trim();
  return actions;
}

OutputActions JobOutput::attach(ClientId id, bool front_end, std::uint64_t window,
                                std::uint64_t have_bytes) {
  have_bytes = std::min(have_bytes, kMaxOffset);
  if (front_end && std::exchange(rebase_, false)) {
    for (Entry& entry : log_) entry.offset += have_bytes;
    for (auto& [other, client] : clients_) client.next += have_bytes;
    begin_ += have_bytes;
    end_ += have_bytes;
    given_back_ += have_bytes;
    front_taken_ += have_bytes;
  }
  OutputActions actions;
  Client& client = clients_[id];
  client.window = std::clamp<std::uint64_t>(window, kMinWindow, kMaxWindow);
  client.next = std::clamp(have_bytes, begin_, end_);
  if (front_end) {
    front_end_ = id;
    front_taken_ = client.next;
    if (waits_) give_back(front_taken_, actions);
  }
  pump(id, client, actions);
  trim();
  return actions;
}

OutputActions JobOutput::taken(ClientId id, std::uint64_t bytes) {
  OutputActions actions;
  const auto found = clients_.find(id);
  if (found == clients_.end()) return actions;
  Client& client = found->second;
  client.in_flight -= std::min(client.in_flight, bytes);
  if (id == front_end_) {
    front_taken_ = client.next - std::min(client.in_flight, client.next);
    if (waits_) give_back(front_taken_, actions);
  }
  pump(id, client, actions);
  trim();
  return actions;
}

OutputActions JobOutput::leave(ClientId id) {
  clients_.erase(id);
  if (id == front_end_) front_end_ = ClientId();
  trim();
  return {};
}

OutputActions JobOutput::release() {
  OutputActions actions;
  waits_ = false;
  give_back(end_, actions);
  trim();
  return actions;
}

OutputActions JobOutput::abandon() {
  wanted_ = false;
  return release();
}

bool JobOutput::is_delivered() const {
  const bool all_told = std::all_of(clients_.begin(), clients_.end(),
                                    [](const auto& client) { return client.second.knows_end; });
  return over_ && all_told && (!wanted_ || front_taken_ >= end_);
}

std::vector<std::shared_ptr<const OutputChunk>> JobOutput::kept() const {
  std::vector<std::shared_ptr<const OutputChunk>> chunks;
  for (const Entry& entry : log_) chunks.push_back(entry.chunk);
  return chunks;
}

std::size_t JobOutput::waiting_bytes() const {
  const auto first = std::upper_bound(log_.begin(), log_.end(), given_back_,
                                      [](std::uint64_t at, const Entry& entry) {
                                        return at < entry.offset + entry.chunk->data.size();
                                      });
  const auto chunks = static_cast<std::size_t>(log_.end() - first);
  return static_cast<std::size_t>(end_ - given_back_) + chunks * kChunkCost;
}

OutputActions JobOutput::finish() {
  OutputActions actions;
  over_ = true;
  pump_all(actions);
  return actions;
}

void JobOutput::pump_all(OutputActions& actions) {
  for (auto& [id, client] : clients_) pump(id, client, actions);
}

void JobOutput::pump(ClientId id, Client& client, OutputActions& actions) {
  if (client.next < begin_ && client.in_flight < client.window)
    send_missed_marker(id, client, actions);
  auto entry = std::upper_bound(
      log_.begin(), log_.end(), client.next,
      [](std::uint64_t offset, const Entry& candidate) { return offset < candidate.offset; });
  if (entry != log_.begin()) --entry;
  for (; entry != log_.end() && client.next < end_ && client.next >= begin_; ++entry) {
    const auto skip = static_cast<std::size_t>(client.next - entry->offset);
    const std::uint64_t size = entry->chunk->data.size() - skip;
    if (size == 0) continue;
    if (client.in_flight > 0 && client.in_flight + size > client.window) return;
    client.in_flight += size;
    client.next += size;
    actions.emplace_back(SendOutput{id, entry->chunk, skip});
  }
  if (over_ && client.next == end_ && !std::exchange(client.knows_end, true)) {
    actions.emplace_back(OutputOver{id});
  }
}

void JobOutput::send_missed_marker(ClientId id, Client& client, OutputActions& actions) const {
  OutputChunk marker;
  marker.is_error = true;
  marker.data = fmt::format("scored: {} bytes of output are missing here\n", begin_ - client.next);
  client.next = begin_;
  client.in_flight += marker.data.size();
  actions.emplace_back(SendOutput{id, std::make_shared<const OutputChunk>(std::move(marker)), 0});
}

void JobOutput::give_back(std::uint64_t offset, OutputActions& actions) {
  std::map<std::uint32_t, std::uint64_t> credits;
  auto entry = std::upper_bound(
      log_.begin(), log_.end(), given_back_,
      [](std::uint64_t at, const Entry& candidate) { return at < candidate.offset; });
  if (entry != log_.begin()) --entry;
  for (; entry != log_.end() && given_back_ < offset; ++entry) {
    const std::uint64_t upto = std::min(offset, entry->offset + entry->chunk->data.size());
    if (upto <= given_back_) continue;
    credits[entry->chunk->node_index] += upto - given_back_;
    given_back_ = upto;
  }
  for (const auto& [node_index, bytes] : credits)
    actions.emplace_back(CreditNode{node_index, bytes});
}

// While a front end drives, output that it has not taken is always kept, because its room was not
// given back to the nodes. Of many small chunks fewer bytes are kept than of large ones.
void JobOutput::trim() {
  const std::size_t for_clients = !waits_ && !clients_.empty() ? kKeptForClients : kKeptBytes;
  const std::size_t keep = std::min(for_clients, most_kept_);
  const std::uint64_t want = end_ - std::min<std::uint64_t>(end_, keep);
  const std::uint64_t limit = waits_ ? std::min(given_back_, want) : want;
  const std::uint64_t most = waits_ ? given_back_ : end_;
  const auto end_of_first = [&] { return log_.front().offset + log_.front().chunk->data.size(); };
  while (!log_.empty()) {
    const bool are_too_many = log_.size() * kChunkCost > keep && end_of_first() <= most;
    if (end_of_first() > limit && !are_too_many) break;
    begin_ = end_of_first();
    log_.pop_front();
  }
}

}  // namespace score::head
