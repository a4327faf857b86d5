#include "pario/server/metadata.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/stat.h>

namespace score::pario {
namespace {

constexpr std::uint32_t kModeBits = 07777;
constexpr std::size_t kMostChanged = 100'000;
constexpr std::int64_t kSecond = 1'000'000'000;

// Returns true if the name of a request is an entry of a directory.
bool is_of_entry(Op op) {
  return op != Op::ReadEntries && op != Op::GetValue && op != Op::SetValue;
}

}  // namespace

void Metadata::run(Transfer& transfer, std::int64_t now_ns) {
  now_ns_ = now_ns;
  const Request& request = transfer.request;
  sent_ = {transfer.data.get(), takes_data(request.op) ? request.data_bytes : 0};
  Answer& answer = transfer.answer;
  const bool is_named = !request.name.empty() && is_of_entry(request.op);
  if (is_named && entry_server(request.id, request.name, place_.servers) != place_.server) {
    answer.error = EXDEV;
    return;
  }
  const bool is_once = (request.flags & kOnce) != 0;
  if (is_once) answer.error = repeat(request, answer);
  if (answer.error == 0) note_touched(transfer);
  if (answer.error != 0 || answer.is_repeated) return;
  client_ = transfer.client;
  is_kept_ = false;
  answer.error = is_named ? run_name(request, answer) : run_id(request, transfer);
  if (is_once && answer.error == 0) answer.error = remember(request, answer);
  if ((request.flags & kForwarded) != 0) return;
  uses_.answered(request, answer, client_, now_ns);
  if (is_kept_) transfer.request.flags |= kKept;  // so does the other replica
}

// If the process that removed a file was killed, the data of the file may still exist.
int Metadata::repeat(const Request& request, Answer& answer) {
  Store::Answered known;
  const int error = store_.get_answer(request.once, known);
  if (error != 0) return error == ENOENT ? 0 : error;
  if (known.sequence - request.once.sequence < UINT32_MAX / 2 &&
      known.sequence != request.once.sequence) {
    return ESTALE;  // the client has received its answer, and has sent a later request
  }
  answer.is_repeated = known.sequence == request.once.sequence;
  if (!answer.is_repeated) return 0;
  answer.number = known.number;
  answer.body = std::move(known.body);
  Attributes removed;
  const bool has_left = parse_body(answer.body, removed) && removed.links > 0;
  const auto is_here = [this](FileId id) {
    Inode inode;
    return home_of(id) == place_.server && store_.get(id, inode) == 0;
  };
  if (request.op == Op::Remove && !has_left && !is_here(request.id)) {
    removals_.push_back(request.id);
  }
  if (request.op == Op::Unlink && request.number == 0 && !has_left &&
      home_of(removed.id) == place_.server && !is_here(removed.id)) {
    removals_.push_back(removed.id);
  }
  return 0;
}

// Names the directories whose entries the request changes, also if it is repeated: its first answer
// may have been lost before their homes knew.
void Metadata::note_touched(Transfer& transfer) const {
  const Request& request = transfer.request;
  if (place_.servers == 1 || (request.flags & kForwarded) != 0) return;
  const auto note = [&](std::size_t index, FileId directory) {
    if (home_of(directory) != place_.server) transfer.touched[index] = directory;
  };
  switch (request.op) {
    case Op::Rename:
      note(1, request.number);
      [[fallthrough]];
    case Op::Create:
    case Op::Unlink:
    case Op::Insert:
    case Op::Move:
      return note(0, request.id);
    default:
      return;
  }
}

int Metadata::remember(const Request& request, const Answer& answer) {
  return store_.put_answer(request.once,
                           {request.once.sequence, now_ns_, answer.number, answer.body});
}

int Metadata::run_name(const Request& request, Answer& answer) {
  switch (request.op) {
    case Op::Lookup: {
      Target target;
      const int error = store_.find(request.id, request.name, target);
      if (error == ENOENT && check_open(request.id) == ESTALE) return ESTALE;
      return error != 0 ? error : describe(target, answer);
    }
    case Op::Create:
      return create(request, answer);
    case Op::Unlink:
      return unlink(request, answer);
    case Op::Insert:
    case Op::Move:
      return insert(request, answer);
    case Op::Rename:
      return rename(request, answer);
    default:
      return EINVAL;
  }
}

int Metadata::run_id(const Request& request, Transfer& transfer) {
  if (const int error = check_number(request)) return error;
  switch (request.op) {
    case Op::GetAttributes:
      return describe(request.id, transfer.answer);
    case Op::SetMode:
    case Op::SetWide:
      return change(request);
    case Op::SetTime:
      return set_time(request);
    case Op::Remove:
      return remove(request, transfer.answer);
    case Op::SealDirectory:
      return seal(request);
    case Op::UnsealDirectory:
      return store_.set_sealed(request.id, false);
    case Op::Truncate:
      if (const int error = check_exists(request.id)) return error;
      if (const int error = store_.remove_end(request.id)) return error;
      return data_.truncate(request.id, request.number);
    case Op::Reserve:
      return reserve(request, transfer.answer);
    case Op::ReadEntries: {
      std::string bytes;
      const int error = store_.read_entries(request.id, request.name, transfer.memory, bytes);
      std::ranges::copy(bytes, transfer.data.get());
      transfer.answer.data_bytes = static_cast<std::uint32_t>(bytes.size());
      return error;
    }
    case Op::MakeFile:
      return make_file(request, transfer.answer);
    case Op::ReportChange:
      if (home_of(request.id) != place_.server) return EINVAL;
      directories_.reported(request.id);
      return 0;
    case Op::SettleTime:
      if (home_of(request.id) != place_.server) return EINVAL;
      directories_.settle(request.id, request.other, static_cast<std::int64_t>(request.number));
      return 0;
    case Op::Hold:
      return uses_.hold(sent_, client_, now_ns_);
    case Op::Lock:
      return uses_.lock(request, sent_, transfer.answer);
    default:
      return run_tree(request, transfer);
  }
}

int Metadata::run_tree(const Request& request, Transfer& transfer) {
  Trees::Result result;
  Answer& answer = transfer.answer;
  if (const int error = trees_.run(request, sent_, now_ns_, result)) return error;
  answer.number = result.number;
  if (request.op == Op::ChangeLinks) {
    Attributes attributes;
    int error = attributes_of(request.id, attributes);
    put(answer.body, attributes);
    if (error == 0 && attributes.links > 0) error = uses_.named(request.id);
    if (error == 0 && attributes.links == 0) {
      error = uses_.keep_open(request.id, client_, now_ns_);
    }
    return error;
  }
  if (result.data.size() > transfer.memory) return ERANGE;
  std::ranges::copy(result.data, transfer.data.get());
  answer.data_bytes = static_cast<std::uint32_t>(result.data.size());
  return 0;
}

int Metadata::attributes_of(FileId id, Attributes& attributes) {
  attributes = {.id = id};
  if (home_of(id) == place_.server) {
    Inode inode;
    if (const int error = store_.get(id, inode)) return error;
    attributes.mode = inode.mode;
    attributes.wide = inode.wide;
    attributes.modified_ns = inode.modified_ns;
    attributes.changed_ns = inode.changed_ns;
    attributes.accessed_ns = inode.accessed_ns;
    attributes.group = inode.group;
    attributes.links = inode.links;
  }
  if (S_ISLNK(attributes.mode)) {
    std::string target;
    if (store_.find_value(id, {}, target) == 0) attributes.size = target.size();
    return 0;
  }
  DataStatus status;
  if (!S_ISDIR(attributes.mode) && data_.status(id, status) == 0) {
    attributes.size = status.size;
    attributes.blocks = status.blocks;
    attributes.modified_ns = status.modified_ns;
    attributes.changed_ns = std::max(attributes.changed_ns, status.changed_ns);
  } else {
    add_directory_times(id, attributes);
  }
  return 0;
}

void Metadata::add_directory_times(FileId id, Attributes& attributes) {
  const bool is_home = home_of(id) == place_.server;
  std::int64_t changed = changed_of(id);  // 0: not known
  if (is_home) changed = std::max(changed, directories_.time(id));
  if (attributes.mode == 0) attributes.modified_ns = changed;
  if (changed != 0) attributes.modified_ns = std::max(attributes.modified_ns, changed);
  // A program can set the time of modification to one in the future; that of the change follows
  // the clock.
  attributes.changed_ns = std::max(attributes.changed_ns, std::min(changed, now_ns_));
  if (!is_home || !S_ISDIR(attributes.mode) || place_.servers == 1) return;
  attributes.wide = directories_.is_open(id) ? 1 : 0;
  attributes.size = directories_.version(id);
}

int Metadata::describe(FileId id, Answer& answer) {
  Attributes attributes;
  if (const int error = attributes_of(id, attributes)) return error;
  put(answer.body, attributes);
  return 0;
}

int Metadata::describe(const Target& target, Answer& answer) {
  answer.number = target.mode;
  if (home_of(target.id) == place_.server) return describe(target.id, answer);
  put(answer.body, Attributes{.id = target.id});
  return 0;
}

std::int64_t Metadata::changed_of(FileId directory) {
  const auto found = changed_.find(directory);
  std::int64_t stored = 0;
  if (found != changed_.end()) return found->second;
  return store_.get_changed(directory, stored) == 0 ? stored : 0;
}

int Metadata::touch(FileId directory) {
  const std::int64_t before = changed_of(directory);
  if (changed_.size() >= kMostChanged) changed_.clear();
  changed_[directory] = now_ns_;
  return before / kSecond == now_ns_ / kSecond ? 0 : store_.put_changed(directory, now_ns_);
}

int Metadata::check_open(FileId directory) {
  bool sealed = false;
  const int error = store_.is_sealed(directory, sealed);
  return error != 0 ? error : sealed ? ESTALE : 0;
}

int Metadata::check_number(const Request& request) {
  switch (request.op) {
    case Op::GetAttributes:
    case Op::SetMode:
    case Op::SetTime:
    case Op::Truncate:
    case Op::ChangeLinks:
    case Op::GetValue:
    case Op::SetValue:
    case Op::ListValues:
    case Op::SetGroup:
    case Op::Lock:
      break;
    default:
      return 0;
  }
  if (home_of(request.id) != place_.server || (request.flags & kForwarded) != 0) return 0;
  const bool is_refused = (request.flags & kOpened) == 0 && request.op != Op::Lock;
  if (is_refused && uses_.is_kept(request.id)) return ENOENT;
  Inode inode;
  return store_.get(request.id, inode);
}

int Metadata::check_exists(FileId id) {
  if (home_of(id) != place_.server) return 0;
  Inode inode;
  const int error = store_.get(id, inode);
  if (error != 0 || S_ISREG(inode.mode)) return error;
  return S_ISDIR(inode.mode) ? EISDIR : EINVAL;
}

int Metadata::create(const Request& request, Answer& answer) {
  const bool is_link = S_ISLNK(request.mode) && !sent_.empty();
  const bool is_other = S_ISFIFO(request.mode) || S_ISSOCK(request.mode);
  if (!S_ISREG(request.mode) && !S_ISDIR(request.mode) && !is_link && !is_other) return EINVAL;
  if (const int error = check_open(request.id)) return error;
  Target target;
  int error = store_.find(request.id, request.name, target);
  if (error == 0) {
    return (request.flags & kExclusive) != 0 ? EEXIST : describe(target, answer);
  }
  if (error != ENOENT) return error;
  if (!has_room_for_file(data_.quota(), store_.count())) return ENOSPC;
  error = choose_id(request, target.id);
  if (error == 0 && home_of(target.id) != place_.server) return EINVAL;
  target.mode = request.mode & (S_IFMT | kModeBits);
  const Inode inode{target.mode, 0, now_ns_, now_ns_};
  if (error == 0) error = store_.put(target.id, inode);
  if (error == 0 && is_link) error = store_.store_value(target.id, {}, sent_);
  if (error == 0) error = store_.put(request.id, request.name, target);
  if (error == 0) error = touch(request.id);
  if (error == 0 && S_ISDIR(target.mode)) directories_.made(target.id);
  return error != 0 ? error : describe(target, answer);
}

int Metadata::choose_id(const Request& request, FileId& id) {
  id = request.forwarded.new_id;
  const int error = id != 0 ? store_.take_id(id) : store_.make_id(id);
  if ((request.flags & kLocalLayout) != 0) id |= kLocalBit;
  return error;
}

int Metadata::make_file(const Request& request, Answer& answer) {
  FileId id = 0;
  if (!S_ISREG(request.mode)) return EINVAL;
  if (!has_room_for_file(data_.quota(), store_.count())) return ENOSPC;
  int error = choose_id(request, id);
  if (error == 0 && home_of(id) != place_.server) return EINVAL;
  Inode inode{request.mode & (S_IFMT | kModeBits), 0, now_ns_, now_ns_};
  inode.links = 0;
  if (error == 0) error = store_.put(id, inode);
  if (error == 0) error = uses_.keep_open(id, client_, now_ns_);
  return error != 0 ? error : describe(id, answer);
}

int Metadata::drop_name(const Request& request, FileId id, Answer& answer) {
  const bool must_be_nameless = (request.flags & (kNameless | kPurge)) != 0;
  Inode inode;
  int error = store_.get(id, inode);
  const bool stays = error == 0 && (must_be_nameless ? inode.links > 0 : inode.links > 1);
  if (stays && !must_be_nameless) {
    --inode.links;
    inode.changed_ns = now_ns_;
    error = store_.put(id, inode);
  }
  if (stays) return error != 0 ? error : describe(id, answer);
  Attributes attributes{.id = id};
  if (error == 0) error = attributes_of(id, attributes);
  attributes.links = 0;
  if (error == 0 && !S_ISDIR(inode.mode) && uses_.must_keep(request, id, client_, now_ns_)) {
    attributes.wide = 0;  // the client does not remove the data on other servers
    put(answer.body, attributes);
    is_kept_ = true;
    return uses_.keep(id, inode, now_ns_);
  }
  put(answer.body, attributes);
  directories_.forget(id);
  if (error == 0) error = store_.remove(id);
  if (error == 0 || error == ENOENT) error = store_.remove_end(id);
  uses_.removed(id);
  if (error == 0) removals_.push_back(id);
  return error;
}

int Metadata::unlink(const Request& request, Answer& answer) {
  Target target;
  if (const int error = store_.find(request.id, request.name, target)) return error;
  if (request.number != 0) {  // only the entry, for a rename to a different server
    if (request.number != target.id) return ENOENT;
    const int error = touch(request.id);
    return error != 0 ? error : store_.remove(request.id, request.name);
  }
  const bool is_directory = S_ISDIR(target.mode);
  if (is_directory != ((request.flags & kDirectory) != 0)) return is_directory ? EISDIR : ENOTDIR;
  answer.number = target.mode;
  int error = store_.remove(request.id, request.name);
  if (error == 0) error = touch(request.id);
  if (error != 0) return error;
  if (home_of(target.id) == place_.server) return drop_name(request, target.id, answer);
  put(answer.body, Attributes{.id = target.id});
  return 0;
}

// Finds what a new entry of type `mode` would replace, and checks whether it may.
int Metadata::check_replaced(const Request& request, std::uint32_t mode, Target& old,
                             bool& is_there) {
  const bool is_rename = request.op == Op::Rename;
  const FileId directory = is_rename ? request.number : request.id;
  if (const int error = check_open(directory)) return error;
  const int error = store_.find(directory, is_rename ? request.name2 : request.name, old);
  is_there = error == 0;
  if (error == ENOENT) return 0;
  if (error != 0) return error;
  if ((request.flags & kExclusive) != 0) return EEXIST;
  if ((request.flags & kExchange) != 0) return 0;
  if (S_ISDIR(old.mode) != S_ISDIR(mode)) return S_ISDIR(mode) ? ENOTDIR : EISDIR;
  // A directory that is replaced was found empty and sealed.
  return S_ISDIR(old.mode) && check_open(old.id) != ESTALE ? ENOTEMPTY : 0;
}

int Metadata::insert(const Request& request, Answer& answer) {
  Target old;
  bool is_there = false;
  if (const int error = check_replaced(request, request.mode, old, is_there)) return error;
  answer.number = old.mode;
  put(answer.body, Attributes{.id = is_there ? old.id : 0});
  const int error = touch(request.id);
  return error != 0 ? error : store_.put(request.id, request.name, {request.number, request.mode});
}

int Metadata::rename(const Request& request, Answer& answer) {
  if (entry_server(request.number, request.name2, place_.servers) != place_.server) return EXDEV;
  Target source;
  if (const int error = store_.find(request.id, request.name, source)) return error;
  Target old;
  bool is_there = false;
  const bool has_old = store_.find(request.number, request.name2, old) == 0;
  const bool is_exchange = (request.flags & kExchange) != 0;
  if (is_exchange && !has_old) return ENOENT;
  if (has_old && old.id == source.id) {  // two names of one file stay
    const bool is_refused = (request.flags & kExclusive) != 0 && request.name != request.name2;
    put(answer.body, Attributes{});
    return is_refused ? EEXIST : 0;
  }
  if (is_exchange) {
    put(answer.body, Attributes{});
    int error = store_.put(request.number, request.name2, source);
    if (error == 0) error = store_.put(request.id, request.name, old);
    if (error == 0) error = touch(request.id);
    return error != 0 ? error : touch(request.number);
  }
  old = {};
  if (const int error = check_replaced(request, source.mode, old, is_there)) return error;
  answer.number = old.mode;
  put(answer.body, Attributes{.id = is_there ? old.id : 0});
  int error = store_.put(request.number, request.name2, source);
  if (error == 0) error = store_.remove(request.id, request.name);
  if (error == 0) error = touch(request.id);
  return error != 0 ? error : touch(request.number);
}

int Metadata::remove(const Request& request, Answer& answer) {
  if (request.id == kRootId) return EBUSY;
  if (home_of(request.id) == place_.server) {
    Inode inode;
    const int error = store_.get(request.id, inode);
    if (error != 0) return error == ENOENT ? 0 : error;
    return drop_name(request, request.id, answer);
  }
  removals_.push_back(request.id);
  return 0;
}

int Metadata::reserve(const Request& request, Answer& answer) {
  Inode inode;
  if (const int error = store_.get(request.id, inode)) return error;
  DataStatus status;
  std::uint64_t known = 0;
  if (const int error = store_.get_end(request.id, known)) return error;
  std::uint64_t end = std::max(request.other, known);
  // If a file has data on several servers, the client has determined the end.
  if (inode.wide == 0 && data_.status(request.id, status) == 0) end = std::max(end, status.size);
  if (request.number > kMaxOffset - end) return EFBIG;
  answer.number = end;
  return store_.put_end(request.id, end + request.number);
}

int Metadata::change(const Request& request) {
  Inode inode;
  if (const int error = store_.get(request.id, inode)) return error;
  if (request.op == Op::SetWide) {
    if (inode.wide != 0) return 0;
    inode.wide = 1;
  } else {
    inode.mode = (inode.mode & S_IFMT) | (request.mode & kModeBits);
    inode.changed_ns = now_ns_;
  }
  return store_.put(request.id, inode);
}

int Metadata::set_time(const Request& request) {
  const bool is_modified = (request.mode & kSetModified) != 0;
  if (home_of(request.id) == place_.server) {
    Inode inode;
    if (const int error = store_.get(request.id, inode)) return error;
    if (is_modified) inode.modified_ns = static_cast<std::int64_t>(request.number);
    if ((request.mode & kSetAccessed) != 0) {
      inode.accessed_ns = static_cast<std::int64_t>(request.other);
    }
    inode.changed_ns = now_ns_;
    if (const int error = store_.put(request.id, inode)) return error;
  }
  if (!is_modified) return 0;
  directories_.set_time(request.id, static_cast<std::int64_t>(request.number));
  const auto time_ns = static_cast<std::int64_t>(request.number);
  if (changed_of(request.id) != 0) {  // a directory
    changed_[request.id] = time_ns;
    return store_.put_changed(request.id, time_ns);
  }
  return data_.set_time(request.id, static_cast<std::int64_t>(request.number));
}

int Metadata::seal(const Request& request) {
  if (request.id == kRootId) return EBUSY;
  bool has = false;
  if (const int error = store_.has_entries(request.id, has)) return error;
  if (has) return ENOTEMPTY;
  changed_.erase(request.id);
  const int error = store_.remove_changed(request.id);
  return error != 0 ? error : store_.set_sealed(request.id, true);
}

}  // namespace score::pario
