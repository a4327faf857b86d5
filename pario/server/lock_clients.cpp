#include "pario/server/lock_clients.hpp"

#include "base/os/log.hpp"
#include "pario/server/connection.hpp"

#include <cerrno>

namespace score::pario {

int LockClients::note(const Transfer& transfer, std::int64_t now_ms) {
  const Request& request = transfer.request;
  if (request.op == Op::Lock && (request.mode & kDropClient) != 0) return 0;
  Client& client = clients_[request.number];
  // A request of a broken connection can arrive late, and would undo later ones.
  if (transfer.client < client.connection) return ESTALE;
  client.connection = transfer.client;
  client.is_connected = true;
  client.seen_ms = now_ms;
  return 0;
}

bool LockClients::must_wait(Transfer& transfer, std::int64_t now_ms) const {
  const bool waits = (transfer.request.mode & kWaitForLock) != 0;
  if (transfer.answer.error != EAGAIN || !waits || transfer.connection == nullptr) return false;
  if (transfer.waits_until_ms == 0) transfer.waits_until_ms = now_ms + kWaitMs;
  return now_ms < transfer.waits_until_ms;
}

void LockClients::park(TransferPtr transfer) {
  transfer->connection->park(1);
  waiting_.push_back(std::move(transfer));
}

void LockClients::answered(const Transfer& transfer) {
  const Request& request = transfer.request;
  if (transfer.answer.error != 0 || (request.mode & kTestLock) != 0) return;
  const auto client = clients_.find(request.number);
  if (client != clients_.end()) {
    if (transfer.answer.number > 0) {
      client->second.files.insert(request.id);
    } else {
      client->second.files.erase(request.id);
    }
  }
  if ((request.mode & kExclusiveLock) == 0) freed_.insert(request.id);
}

template <typename Condition>
std::vector<TransferPtr> LockClients::end_if(Condition ends) {
  std::vector<TransferPtr> ended;
  std::deque<TransferPtr> left;
  for (TransferPtr& transfer : waiting_) {
    if (!ends(*transfer)) {
      left.push_back(std::move(transfer));
      continue;
    }
    transfer->connection->park(-1);
    ended.push_back(std::move(transfer));
  }
  waiting_.swap(left);
  return ended;
}

// They run in the order in which they came.
std::vector<TransferPtr> LockClients::take_ready() {
  if (freed_.empty()) return {};
  const std::set<FileId> freed = std::exchange(freed_, {});
  auto ready = end_if([&](const Transfer& one) { return freed.contains(one.request.id); });
  for (TransferPtr& transfer : ready) transfer->answer = {};
  return ready;
}

std::vector<TransferPtr> LockClients::leave(const Connection& connection, std::int64_t now_ms) {
  for (auto& [number, client] : clients_) {
    if (client.connection != connection.number()) continue;
    client.is_connected = false;
    client.seen_ms = now_ms;
  }
  return end_if([&](const Transfer& one) { return one.connection == &connection; });
}

std::vector<TransferPtr> LockClients::tick(bool leads, std::int64_t now_ms) {
  if (leads && !has_led_) load(now_ms);
  has_led_ = leads;
  for (auto at = clients_.begin(); leads && at != clients_.end();) {
    Client& client = at->second;
    const std::int64_t limit = client.is_connected ? kSilenceLimitMs : kReconnectMs;
    if (now_ms - client.seen_ms < limit) {
      ++at;
      continue;
    }
    if (!client.files.empty()) {
      log_warning("Lost a client; its locks are released",
                  kv("files", static_cast<unsigned>(client.files.size())));
    }
    for (const FileId file : client.files) drop(at->first, file);
    at = clients_.erase(at);
  }
  return end_if([&](const Transfer& one) { return !leads || now_ms >= one.waits_until_ms; });
}

// Clients that had locks when the server was killed have time to connect again.
void LockClients::load(std::int64_t now_ms) {
  std::vector<FileId> files;
  std::vector<FileLock> locks;
  if (store_.list_locked(files) != 0) return;
  for (const FileId file : files) {
    if (store_.get_locks(file, locks) != 0) continue;
    for (const FileLock& lock : locks) {
      Client& client = clients_[lock.client];
      client.files.insert(file);
      if (client.seen_ms == 0) client.seen_ms = now_ms;
    }
  }
}

void LockClients::drop(std::uint64_t client, FileId file) {
  const Request request{.op = Op::Lock, .id = file, .mode = kDropClient, .number = client};
  peers_.ask(part_, request, [this, client, file](int error, const Reply&) {
    // The file may be gone. Otherwise it is tried again later.
    if (error == 0 || error == ESTALE) return;
    Client& again = clients_[client];
    again.files.insert(file);
    if (again.seen_ms == 0) again.seen_ms = monotonic_ms();
  });
}

}  // namespace score::pario
