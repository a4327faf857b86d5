#include "pario/server/holds/purges.hpp"

namespace score::pario {

void Purges::tick(bool leads, std::int64_t now_ns) {
  if (!leads) {
    has_led_ = false;
    return;
  }
  if (!has_led_) has_led_ = uses_.load(now_ns) == 0;
  for (const FileId id : uses_.expired(now_ns)) {
    if (running_.insert(id).second) start(id);
  }
}

bool Purges::may_be_wide(FileId id) {
  Inode inode;
  return store_.get(id, inode) != 0 || inode.wide != 0;
}

// The data on other servers goes first. If one of them cannot be reached, the file is tried again.
void Purges::start(FileId id) {
  const auto purge = std::make_shared<Purge>(Purge{.id = id});
  const bool is_wide = place_.servers > 1 && may_be_wide(id);
  purge->waits_for = is_wide ? place_.servers - 1 : 0;
  if (!is_wide) return remove_here(id);
  for (std::uint32_t server = 0; server < place_.servers; ++server) {
    if (server == place_.part) continue;
    peers_.ask(server, {.op = Op::Remove, .id = id},
               [this, purge](int error, const Reply&) { ended(purge, error); });
  }
}

void Purges::ended(const std::shared_ptr<Purge>& purge, int error) {
  if (error != 0) purge->has_failed = true;
  if (--purge->waits_for > 0) return;
  if (purge->has_failed) {
    running_.erase(purge->id);
  } else {
    remove_here(purge->id);
  }
}

void Purges::remove_here(FileId id) {
  peers_.ask(place_.part, {.op = Op::Remove, .flags = kPurge, .id = id},
             [this, id](int, const Reply&) { running_.erase(id); });
}

}  // namespace score::pario
