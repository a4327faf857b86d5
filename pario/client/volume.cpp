#include "pario/client/volume.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <sys/stat.h>

namespace score::pario {
namespace {

bool changes_names(Op op) {
  constexpr std::array kChanges{Op::Create, Op::Unlink, Op::Insert, Op::Rename, Op::Move};
  return std::ranges::find(kChanges, op) != kChanges.end();
}

}  // namespace

int Volume::open(const std::string& path, std::unique_ptr<Volume>& volume, std::string& message) {
  std::unique_ptr<Volume> made(new Volume);
  std::random_device random;
  made->client_ = std::uniform_int_distribution<std::uint64_t>(1)(random);
  if (const int error = read_volume(path, made->description_, message)) return error;
  if (const int error = made->connect(path, message)) return error;
  volume = std::move(made);
  return 0;
}

int Volume::connect(const std::string& path, std::string& message) {
  Transport transport = description_.transport;
  if (!read_transport(transport)) {
    message = "PARIO_TRANSPORT: expected pm, udp or tcp";
    return EINVAL;
  }
  int first = 0;
  std::size_t reached = 0;
  const auto count = static_cast<std::uint32_t>(description_.servers.size());
  for (std::uint32_t server = 0; server < count; ++server) {
    links_.push_back(std::make_unique<Link>(description_, server, transport));
    has_new_names_.emplace_back(false);
    const int error = links_.back()->open();
    if (error == 0) ++reached;
    if (error == 0 || first != 0) continue;
    first = error;
    const ServerAddress& address = description_.servers[server];
    message = path + ": server " + address.host + ":" + address.port + ": " +
              (error == EACCES ? "refuses the key of this file" : std::strerror(error));
    if (error == EACCES || error == EPROTO || description_.replicas > 1) return error;
  }
  if (reached > 0) message.clear();
  return reached > 0 ? 0 : first;
}

Striping Volume::striping(FileId id) const {
  return striping_of(id, servers(), description_.stripe);
}

std::uint32_t Volume::server_of(const Name& name) const {
  return entry_server(name.parent, name.name, servers());
}

int Volume::call(std::uint32_t server, Call& call) {
  links_[server]->start(call);
  links_[server]->finish(call);
  if (call.error == 0 && changes_names(call.request.op)) has_new_names_[server] = true;
  return call.error;
}

int Volume::call_home(Op op, FileId id, Call& one) {
  if (home_of(id) >= servers()) return ESTALE;
  one.request.op = op;
  one.request.id = id;
  if (keeper_ != nullptr && keeper_->is_open(id)) one.request.flags |= kOpened;
  return call(home_of(id), one);
}

int Volume::call_all(const Request& request, std::vector<Call>& calls, std::uint32_t except) {
  calls = std::vector<Call>(servers());
  for (std::uint32_t server = 0; server < servers(); ++server) {
    calls[server].request = request;
    if (server != except) links_[server]->start(calls[server]);
  }
  int error = 0;
  for (std::uint32_t server = 0; server < servers(); ++server) {
    if (server == except) continue;
    links_[server]->finish(calls[server]);
    if (error == 0) error = calls[server].error;
  }
  return error;
}

int Volume::named(Op op, const Name& name, Call& one) {
  if (name.name.size() > kMaxNameBytes) return ENAMETOOLONG;
  if (!is_valid_name(name.name)) return EINVAL;
  one.request.op = op;
  one.request.id = name.parent;
  one.request.name = name.name;
  return call(server_of(name), one);
}

// Takes the status from the body of a reply, and asks the home and the other servers if necessary.
int Volume::take_status(const Call& one, FileStatus& found, bool is_opened) {
  Attributes attributes;
  if (!parse_body(one.body, attributes)) return EPROTO;
  if (attributes.mode == 0) return status(attributes.id, found, is_opened);
  found = to_status(attributes);
  if (!found.is_wide || servers() == 1) return 0;
  return S_ISDIR(found.mode) ? add_times(found, attributes.size) : add_wide(found);
}

// The entries of a directory are spread over all servers, which know when they have changed. Those
// that do not answer are left out, and asked again next time.
int Volume::add_times(FileStatus& found, std::uint64_t version) {
  std::vector<Call> calls;
  const std::uint32_t home = home_of(found.id);
  const int error = call_all({.op = Op::GetAttributes, .id = found.id}, calls, home);
  std::int64_t latest = 0;
  for (std::uint32_t server = 0; server < servers(); ++server) {
    Attributes attributes;
    if (server == home || calls[server].error != 0) continue;
    if (!parse_body(calls[server].body, attributes)) return EPROTO;
    latest = std::max(latest, attributes.modified_ns);
    found.changed_ns = std::max(found.changed_ns, attributes.changed_ns);
  }
  if (latest != 0) found.modified_ns = std::max(found.modified_ns, latest);
  if (error != 0) return 0;
  Call settle;
  settle.request.number = static_cast<std::uint64_t>(latest);
  settle.request.other = version;
  static_cast<void>(call_home(Op::SettleTime, found.id, settle));
  return 0;
}

// The size is the end of the last byte of data on any server.
int Volume::add_wide(FileStatus& found) {
  const Striping striping = this->striping(found.id);
  const std::uint32_t home = home_of(found.id);
  found.size = file_end(striping, home, found.size);
  std::vector<Call> calls;
  const Request request{.op = Op::GetAttributes, .id = found.id};
  if (const int error = call_all(request, calls, home)) return error;
  for (std::uint32_t server = 0; server < servers(); ++server) {
    Attributes attributes;
    if (server == home) continue;
    if (!parse_body(calls[server].body, attributes)) return EPROTO;
    found.size = std::max(found.size, file_end(striping, server, attributes.size));
    found.blocks += attributes.blocks;
    if (attributes.modified_ns != 0) {
      found.modified_ns = std::max(found.modified_ns, attributes.modified_ns);
    }
    found.changed_ns = std::max(found.changed_ns, attributes.changed_ns);
  }
  return 0;
}

int Volume::status(FileId id, FileStatus& found, bool is_opened) {
  Call one;
  one.request.flags = is_opened ? kOpened : 0;
  const int error = call_home(Op::GetAttributes, id, one);
  if (error == EIO && id == kRootId) {  // names on other servers can still be found
    found = {.id = kRootId, .mode = S_IFDIR | 0700};
    return 0;
  }
  if (error != 0) return error;
  Attributes attributes;
  if (!parse_body(one.body, attributes) || attributes.mode == 0) return EPROTO;
  return take_status(one, found);
}

int Volume::named_status(FileId id, FileStatus& found) {
  if (home_of(id) >= servers()) return ESTALE;
  Call one;
  one.request = {.op = Op::GetAttributes, .id = id};
  const int error = call(home_of(id), one);
  return error != 0 ? error : take_status(one, found);
}

int Volume::find(FileId parent, std::string_view name, Entry& entry) {
  Call one;
  if (const int error = named(Op::Lookup, {parent, name}, one)) return error;
  Attributes attributes;
  if (!parse_body(one.body, attributes)) return EPROTO;
  entry.id = attributes.id;
  entry.mode = static_cast<std::uint32_t>(one.reply.number);
  return 0;
}

// Removes only the entry if the file is open here.
int Volume::unlink_kept(const Name& name, bool& is_kept) {
  Call found;
  if (const int error = named(Op::Lookup, name, found)) return error;
  Attributes attributes;
  if (!parse_body(found.body, attributes)) return EPROTO;
  if (S_ISDIR(found.reply.number) || !keeper_->is_open(attributes.id)) return 0;
  is_kept = true;
  Call one;
  one.request.number = attributes.id;
  if (const int error = named(Op::Unlink, name, one)) return error;
  return drop_name(attributes.id);
}

int Volume::unlink(FileId parent, std::string_view name) {
  if (keeper_ != nullptr && keeper_->has_open_files()) {
    bool is_kept = false;
    const int error = unlink_kept({parent, name}, is_kept);
    if (error != 0 || is_kept) return error;
  }
  Call one;
  if (const int error = named(Op::Unlink, {parent, name}, one)) return error;
  Attributes attributes;
  if (!parse_body(one.body, attributes)) return EPROTO;
  // The server of the entry has removed the file too if it is its home.
  if (attributes.links > 0) return 0;
  return attributes.mode == 0 ? remove_file(attributes.id) : remove_rest(attributes.id, attributes);
}

int Volume::remove_file(FileId id, std::uint16_t flags) {
  Call one;
  one.request.flags = flags;
  if (const int error = call_home(Op::Remove, id, one)) return error;
  Attributes attributes;
  if (one.body.empty()) return 0;  // the file did not exist
  if (!parse_body(one.body, attributes)) return EPROTO;
  return attributes.links > 0 ? 0 : remove_rest(id, attributes);
}

int Volume::remove_rest(FileId id, const Attributes& attributes) {
  if (attributes.wide == 0 || servers() == 1) return 0;
  std::vector<Call> calls;
  return call_all({.op = Op::Remove, .id = id}, calls, home_of(id));
}

// Prevents new entries in the directory from now on, if it is empty.
int Volume::seal(FileId id) {
  std::vector<Call> calls;
  const int error = call_all({.op = Op::SealDirectory, .id = id}, calls);
  if (error == 0) return 0;
  for (std::uint32_t server = 0; server < servers(); ++server) {
    Call undo;
    undo.request = {.op = Op::UnsealDirectory, .id = id};
    if (calls[server].error == 0) static_cast<void>(call(server, undo));
  }
  return error;
}

int Volume::rmdir(FileId parent, std::string_view name) {
  FileStatus found;
  if (const int error = lookup(parent, name, found)) return error;
  if (!S_ISDIR(found.mode)) return ENOTDIR;
  if (const int error = seal(found.id)) return error;
  Call one;
  one.request.flags = kDirectory;
  if (const int error = named(Op::Unlink, {parent, name}, one)) {
    std::vector<Call> calls;
    static_cast<void>(call_all({.op = Op::UnsealDirectory, .id = found.id}, calls));
    return error;
  }
  Attributes attributes;
  if (!parse_body(one.body, attributes)) return EPROTO;
  return attributes.mode == 0 ? remove_file(found.id) : 0;
}

// First creates the new entry, then removes the old one, so the file always has a name. With
// replicas the client does both.
int Volume::rename_across(const Name& from, const Name& to, bool exclusive, FileId& replaced) {
  Call found;
  if (const int error = named(Op::Lookup, from, found)) return error;
  Attributes source;
  if (!parse_body(found.body, source)) return EPROTO;
  Call there;
  Attributes target;
  if (named(Op::Lookup, to, there) == 0 && parse_body(there.body, target) &&
      target.id == source.id) {
    return exclusive ? EEXIST : 0;  // two names of one file stay
  }
  Call insert;
  insert.request.number = source.id;
  insert.request.mode = static_cast<std::uint32_t>(found.reply.number);
  insert.request.flags = exclusive ? kExclusive : 0;
  const bool has_replicas = description_.replicas > 1;
  const int made = has_replicas ? named(Op::Insert, to, insert) : move(from, to, insert);
  if (made != 0) return made;
  Attributes old;
  if (!parse_body(insert.body, old)) return EPROTO;
  replaced = old.id == source.id ? 0 : old.id;
  if (!has_replicas) return 0;
  Call remove;
  remove.request.number = source.id;
  const int error = named(Op::Unlink, from, remove);
  return error == ENOENT ? 0 : error;
}

// The server of the new entry removes the old one.
int Volume::move(const Name& from, const Name& to, Call& one) {
  one.request.other = from.parent;
  one.request.name2 = from.name;
  return named(Op::Move, to, one);
}

int Volume::rename(const Name& from, const Name& to, bool exclusive) {
  if (to.name.size() > kMaxNameBytes) return ENAMETOOLONG;
  if (!is_valid_name(to.name)) return EINVAL;
  FileStatus target;
  const int there = exclusive ? ENOENT : lookup(to.parent, to.name, target);
  if (there != 0 && there != ENOENT) return there;
  const bool is_directory = there == 0 && S_ISDIR(target.mode);
  if (is_directory) {  // only an empty one, and not by itself or by a file
    FileStatus source;
    if (const int error = lookup(from.parent, from.name, source)) return error;
    if (source.id == target.id) return 0;
    if (!S_ISDIR(source.mode)) return EISDIR;
    if (const int error = seal(target.id)) return error;
  }
  FileId replaced = 0;
  int error = 0;
  if (server_of(from) == server_of(to)) {
    Call one;
    one.request.number = to.parent;
    one.request.name2 = to.name;
    one.request.flags = exclusive ? kExclusive : 0;
    Attributes old;
    error = named(Op::Rename, from, one);
    if (error == 0 && !parse_body(one.body, old)) error = EPROTO;
    replaced = old.id;
  } else {
    error = rename_across(from, to, exclusive, replaced);
  }
  if (error != 0 && is_directory) {
    std::vector<Call> calls;
    static_cast<void>(call_all({.op = Op::UnsealDirectory, .id = target.id}, calls));
  }
  if (error != 0 || replaced == 0) return error;
  return drop_name(replaced);
}

int Volume::read_directory(FileId id, std::vector<Entry>& entries) {
  std::string memory(64 * std::size_t{1024}, '\0');
  std::uint32_t dead = 0;
  for (std::uint32_t server = 0; server < servers(); ++server) {
    std::string after;
    for (;;) {
      Call one;
      one.request = {.op = Op::ReadEntries, .id = id, .name = after};
      one.memory = {{memory.data(), memory.size()}};
      const int error = call(server, one);
      if (error == EIO && ++dead < servers()) break;
      if (error != 0) return error;
      if (one.reply.data_bytes == 0) break;
      const std::string_view bytes(memory.data(), one.reply.data_bytes);
      if (!parse_entries(bytes, entries)) return EPROTO;
      after = entries.back().name;
    }
  }
  return 0;
}

int Volume::set_mode(FileId id, std::uint32_t mode) {
  Call one;
  one.request.mode = mode;
  return call_home(Op::SetMode, id, one);
}

int Volume::truncate(FileId id, std::uint64_t size) {
  if (size > kMaxOffset) return EFBIG;
  OpenFile file{id, false};
  const Striping striping = this->striping(id);
  FileStatus found;
  if (const int error = status(id, found)) return error;
  if (S_ISDIR(found.mode)) return EISDIR;
  file.is_wide = found.is_wide;
  if (size > description_.stripe) {
    const Piece elsewhere{home_of(id) + 1, 0, 1, 0};
    if (const int error = make_wide(file, std::span(&elsewhere, 1))) return error;
  }
  int error = 0;
  for (std::uint32_t turn = 0; turn < (file.is_wide ? servers() : 1); ++turn) {
    const std::uint32_t server = (home_of(id) + turn) % servers();
    Call one;
    const std::uint64_t local = spread(id) == 1 ? size : local_size(striping, server, size);
    one.request = {.op = Op::Truncate, .flags = kOpened, .id = id, .number = local};
    if (const int failed = call(server, one); error == 0) error = failed;
  }
  return error;
}

int Volume::sync_all(FileId id) {
  std::vector<Call> calls;
  return call_all({.op = Op::Sync, .id = id}, calls);
}

// A server that is dead does not matter if this client has changed no name there since the last
// time: other names of the directory are on the disks of the others.
int Volume::sync_names(FileId directory) {
  std::vector<bool> had_new;
  for (std::atomic<bool>& has_new : has_new_names_) had_new.push_back(has_new.exchange(false));
  std::vector<Call> calls;
  call_all({.op = Op::Sync, .id = directory}, calls);
  int error = 0;
  for (std::uint32_t server = 0; server < servers(); ++server) {
    const int failed = calls[server].error;
    if (failed != 0 && had_new[server]) has_new_names_[server] = true;
    const bool matters = failed != 0 && (failed != EIO || had_new[server]);
    if (error == 0 && matters) error = failed;
  }
  return error;
}

int Volume::sync(FileId id) {
  FileStatus found;
  if (const int error = status(id, found, true)) return error;
  if (found.is_wide || S_ISDIR(found.mode)) {
    return S_ISDIR(found.mode) ? sync_names(id) : sync_all(id);
  }
  Call one;
  return call_home(Op::Sync, id, one);
}

int Volume::destroy() {
  std::vector<Call> calls;
  return call_all({.op = Op::Destroy, .id = kRootId}, calls);
}

int Volume::gather(FileId id, std::uint64_t group, const Gathered& part) {
  Call one;
  one.request.mode = pack_mode(part);
  one.request.number = group;
  one.request.other = pack_other(part);
  return call_home(Op::Gather, id, one);
}

int Volume::statistics(std::vector<Statistics>& statistics, std::vector<int>* errors) {
  std::vector<Call> calls;
  const int first = call_all({.op = Op::Statistics}, calls);
  statistics.assign(calls.size(), {});
  if (errors != nullptr) errors->clear();
  std::size_t reached = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (errors != nullptr) errors->push_back(calls[i].error);
    if (calls[i].error != 0) continue;
    ++reached;
    if (!parse_body(calls[i].body, statistics[i])) return EPROTO;
  }
  return reached > 0 ? 0 : first;
}

// While there is only the first stripe, the size of the part at the home is the size of the file.
// Before data is written beyond it, the home must be informed, because a client that needs the size
// asks the home first.
int Volume::make_wide(OpenFile& file, std::span<const Piece> pieces) {
  const std::uint32_t home = home_of(file.id);
  const auto is_behind = [&](const Piece& piece) {
    return piece.server != home || piece.offset + piece.length > description_.stripe;
  };
  if (spread(file.id) == 1 || file.is_wide || std::ranges::none_of(pieces, is_behind)) return 0;
  Call one;
  const int error = call_home(Op::SetWide, file.id, one);
  if (error == 0) file.is_wide = true;
  return error;
}

void Volume::stop_waiting() {
  for (const auto& link : links_) link->stop_waiting();
}

ssize_t Volume::read(OpenFile& file, const Span& span) {
  return start_read(file, span)->wait();
}

ssize_t Volume::write(OpenFile& file, const Span& span) {
  return start_write(file, span)->wait();
}

ssize_t Volume::append(OpenFile& file, const char* bytes, std::size_t length) {
  if (length == 0) return 0;
  FileStatus found;
  if (const int error = status(file.id, found, true)) return -error;
  Call one;
  one.request.number = length;
  one.request.other = found.size;
  if (const int error = call_home(Op::Reserve, file.id, one)) return -error;
  const Extent extent{one.reply.number, length};
  return write(file, {std::span(&extent, 1), const_cast<char*>(bytes)});
}

std::unique_ptr<Volume::Transfer> Volume::start_read(OpenFile& file, const Span& span) {
  std::unique_ptr<Transfer> transfer(new Transfer(*this, file, Op::Read));
  transfer->start(span);
  return transfer;
}

std::unique_ptr<Volume::Transfer> Volume::start_write(OpenFile& file, const Span& span) {
  std::unique_ptr<Transfer> transfer(new Transfer(*this, file, Op::Write));
  transfer->start(span);
  return transfer;
}

}  // namespace score::pario
