#include "scored/job/pmi/pmi_server.hpp"

#include "base/errc.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "proto/frames/frames.hpp"
#include "proto/frames/key_values.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

// The texts of replies are determined by MPICH's client: it compares cmd=, looks for rc= and a few
// keys, and before MPICH 5 reads a line into 1024 bytes. For this reason the value limit in the
// reply to get_maxes is smaller than Hydra's 1024, with which a value of maximum length would not
// fit into its reply line. A mapping too long for that line is not published; MPICH then asks every
// rank for its host instead. MPICH 5 puts 4,096 bytes per rank, as 8,192 characters in as many
// values as that limit requires, and each rank gets all of them one by one. If all clients are
// known to accept it, one value may hold them all.

namespace score::shepherd {

namespace {

namespace limits = base::limits;

constexpr std::size_t kClientLineBytes = 1024;  // PMIU_MAXLINE of MPICH
constexpr std::size_t kNameMax = 256;
constexpr std::size_t kKeyMax = 64;
constexpr std::size_t kValueMax = 896;
constexpr std::size_t kLongValueMax = proto::kMaxValueBytes;
constexpr std::size_t kLongestFrameOfReply =
    60;  // "cmd=get_result rc=0 msg=success value=" and end
static_assert(kValueMax + kLongestFrameOfReply < kClientLineBytes);
static_assert(kKeyMax <= limits::kMaxPmiKeyBytes && kValueMax <= proto::kMaxValueBytes);

// A node's batch must fit into a FenceEnter together with its two numbers.
std::size_t max_batch_bytes() {
  static const std::size_t bytes = proto::find_rule(proto::FrameType::FenceEnter)->max_bytes - 64;
  return bytes;
}

std::int32_t number_or(std::optional<std::string_view> text, std::int32_t otherwise) {
  if (!text) return otherwise;
  return base::parse_number<std::int32_t>(*text).value_or(otherwise);
}

using Name = PmiActions::Name;

struct NameCommand {
  std::string_view command;
  Name::Kind kind;
  std::string_view answer;
};

constexpr std::array<NameCommand, 3> kNameCommands{{
    {"publish_name", Name::Kind::Publish, "publish_result"},
    {"unpublish_name", Name::Kind::Unpublish, "unpublish_result"},
    {"lookup_name", Name::Kind::Lookup, "lookup_result"},
}};

std::string name_answer(Name::Kind kind, bool is_good, std::string_view port) {
  const auto* command = std::ranges::find(kNameCommands, kind, &NameCommand::kind);
  std::string text =
      fmt::format("cmd={} info={} rc={} msg={}", command->answer, is_good ? "ok" : "failed",
                  is_good ? 0 : -1, is_good ? "success" : "failed");
  if (is_good && kind == Name::Kind::Lookup) text += fmt::format(" port={}", port);
  return text + "\n";
}

}  // namespace

PmiServer::PmiServer(PmiJob job) : job_(std::move(job)), tasks_(job_.local_tasks) {
  if (job_.process_mapping.size() <= value_max())
    store("PMI_process_mapping", job_.process_mapping);
  const auto pairs = proto::parse_key_values(job_.key_values);
  if (!pairs) return;
  for (const auto& pair : *pairs) store(pair.key, pair.value);
}

PmiActions PmiServer::receive(std::uint32_t task, std::string_view bytes) {
  PmiActions out;
  Task& from = tasks_[task];
  if (from.state == State::Closed) return out;
  from.reader.feed(bytes);
  while (from.state != State::Closed) {
    auto line = from.reader.next();
    if (!line) {
      close(task, line.error().message(), out);
      break;
    }
    if (!*line) break;
    handle_line(task, **line, out);
  }
  return out;
}

void PmiServer::handle_line(std::uint32_t task, std::string_view line, PmiActions& out) {
  Task& from = tasks_[task];
  const bool is_spawn = from.is_inside_spawn || line == "mcmd=spawn";
  const bool may_spawn = from.state == State::Fresh || from.state == State::Initialised;
  if (is_spawn && may_spawn) return handle_spawn_line(task, line, out);
  auto command = parse_pmi_line(line);
  if (!command) return close(task, command.error().message(), out);
  const Handler handler = handler_of(command->name);
  if (handler == nullptr) {
    return close(task, "unknown command " + base::quote_value(command->name, 64), out);
  }
  const bool is_busy = from.state == State::InBarrier || from.state == State::Asking;
  if (is_busy && command->name != "abort") {
    const auto* where = from.state == State::Asking ? " before its answer" : " inside a barrier";
    return close(task, base::quote_value(command->name, 64) + where, out);
  }
  (this->*handler)(task, *command, out);
}

PmiServer::Handler PmiServer::handler_of(std::string_view name) {
  using Entry = std::pair<std::string_view, Handler>;
  static constexpr std::array<Entry, 16> kHandlers{{
      {"init", &PmiServer::on_init},
      {"get_maxes", &PmiServer::on_get_maxes},
      {"get_appnum", &PmiServer::on_get_appnum},
      {"get_universe_size", &PmiServer::on_get_universe_size},
      {"get_my_kvsname", &PmiServer::on_get_my_kvsname},
      {"put", &PmiServer::on_put},
      {"get", &PmiServer::on_get},
      {"getbyidx", &PmiServer::on_getbyidx},
      {"barrier_in", &PmiServer::on_barrier_in},
      {"finalize", &PmiServer::on_finalize},
      {"abort", &PmiServer::on_abort},
      {"publish_name", &PmiServer::on_name},
      {"unpublish_name", &PmiServer::on_name},
      {"lookup_name", &PmiServer::on_name},
      {"create_kvs", &PmiServer::on_unsupported},
      {"destroy_kvs", &PmiServer::on_unsupported},
  }};
  const auto* at = std::ranges::find(kHandlers, name, &Entry::first);
  return at == kHandlers.end() ? nullptr : at->second;
}

void PmiServer::close(std::uint32_t task, const std::string& why, PmiActions& out) {
  tasks_[task] = Task();
  tasks_[task].state = State::Closed;
  // Other ranks may wait for this one, which can no longer be served.
  out.aborts.push_back({task, 1, "protocol error on its PMI connection: " + why});
  out.closed.push_back(task);
}

void PmiServer::reply(std::uint32_t task, std::string bytes, PmiActions& out) {
  out.replies.push_back({task, std::move(bytes)});
}

void PmiServer::on_init(std::uint32_t task, const PmiCommand& command, PmiActions& out) {
  const bool known = command.find("pmi_version") == "1";
  if (known) tasks_[task].state = State::Initialised;
  if (known) out.initialised.push_back(task);
  reply(task,
        std::string("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=") +
            (known ? "0\n" : "-1\n"),
        out);
}

void PmiServer::on_get_maxes(std::uint32_t task, const PmiCommand&, PmiActions& out) {
  reply(task,
        fmt::format("cmd=maxes kvsname_max={} keylen_max={} vallen_max={}\n", kNameMax, kKeyMax,
                    value_max()),
        out);
}

std::size_t PmiServer::value_max() const {
  return job_.takes_long_values ? kLongValueMax : kValueMax;
}

void PmiServer::on_get_appnum(std::uint32_t task, const PmiCommand&, PmiActions& out) {
  const std::uint32_t app = task < job_.apps.size() ? job_.apps[task] : 0;
  reply(task, fmt::format("cmd=appnum appnum={}\n", app), out);
}

void PmiServer::on_get_universe_size(std::uint32_t task, const PmiCommand&, PmiActions& out) {
  reply(task, fmt::format("cmd=universe_size size={}\n", std::max(job_.size, job_.universe)), out);
}

void PmiServer::on_get_my_kvsname(std::uint32_t task, const PmiCommand&, PmiActions& out) {
  reply(task, fmt::format("cmd=my_kvsname kvsname={}\n", job_.name), out);
}

std::string PmiServer::put_error(const Task& task, const PmiCommand& command) const {
  const auto key = command.find("key").value_or("");
  const auto value = command.find("value").value_or("");
  if (command.find("kvsname").value_or(job_.name) != job_.name) return "kvs_not_found";
  if (key.empty()) return "no_key";
  if (key.size() > kKeyMax) return "key_too_long";
  if (value.size() > value_max()) return "value_too_long";
  const std::size_t bytes = key.size() + value.size() + sizeof(std::uint32_t);
  if (task.bytes_put + bytes > limits::kMaxPmiBytesPerTask) return "too_many_pairs_of_this_task";
  if (gathered_.size() + bytes > max_batch_bytes()) return "too_many_pairs_on_this_node";
  return "";
}

void PmiServer::on_put(std::uint32_t task, const PmiCommand& command, PmiActions& out) {
  const std::string error = put_error(tasks_[task], command);
  if (!error.empty()) return reply(task, "cmd=put_result rc=-1 msg=" + error + "\n", out);
  const auto key = *command.find("key");
  const auto value = command.find("value").value_or("");
  if (auto added = proto::append_key_value(gathered_, key, value); !added) {
    return reply(task, "cmd=put_result rc=-1 msg=refused\n", out);
  }
  tasks_[task].bytes_put += key.size() + value.size();
  store(key, value);
  reply(task, "cmd=put_result rc=0 msg=success\n", out);
}

void PmiServer::on_get(std::uint32_t task, const PmiCommand& command, PmiActions& out) {
  if (command.find("kvsname").value_or(job_.name) != job_.name) {
    return reply(task, "cmd=get_result rc=-1 msg=kvs_not_found value=unknown\n", out);
  }
  const auto at = store_.find(std::string(command.find("key").value_or("")));
  if (at == store_.end()) {
    return reply(task, "cmd=get_result rc=-1 msg=key_not_found value=unknown\n", out);
  }
  reply(task, "cmd=get_result rc=0 msg=success value=" + at->second + "\n", out);
}

void PmiServer::on_getbyidx(std::uint32_t task, const PmiCommand& command, PmiActions& out) {
  const auto index = static_cast<std::size_t>(number_or(command.find("idx"), -1));
  if (index >= keys_.size()) {  // -1 too
    return reply(task, "cmd=getbyidx_results rc=-2 reason=no_more_keyvals\n", out);
  }
  const std::string& key = *keys_[index];
  reply(task,
        fmt::format("cmd=getbyidx_results rc=0 nextidx={} key={} val={}\n", index + 1, key,
                    store_.at(key)),
        out);
}

void PmiServer::on_barrier_in(std::uint32_t task, const PmiCommand&, PmiActions& out) {
  tasks_[task].state = State::InBarrier;
  try_fence(out);
}

void PmiServer::try_fence(PmiActions& out) {
  const auto waits = [](const Task& task) { return task.state == State::InBarrier; };
  const auto is_in = [&](const Task& task) { return waits(task) || task.is_passed_over; };
  if (fence_ || std::ranges::none_of(tasks_, waits) || !std::ranges::all_of(tasks_, is_in)) return;
  ++sequence_;
  if (job_.local_tasks == job_.size) {
    gathered_.clear();  // the pairs are in the store already
    return release_barrier(out);
  }
  fence_ = PmiActions::Fence{sequence_, std::exchange(gathered_, std::string())};
  out.fence = fence_;
}

base::Result<PmiActions> PmiServer::fence_done(std::uint64_t sequence,
                                               std::string_view key_values) {
  PmiActions out;
  if (!fence_ || fence_->sequence != sequence) return out;
  auto pairs = proto::parse_key_values(key_values);
  if (!pairs) return pairs.error();
  for (const auto& pair : *pairs) store(pair.key, pair.value);
  fence_.reset();
  release_barrier(out);
  return out;
}

void PmiServer::release_barrier(PmiActions& out) {
  for (std::uint32_t task = 0; task < tasks_.size(); ++task) {
    if (tasks_[task].state != State::InBarrier) continue;
    tasks_[task].state = State::Initialised;
    reply(task, "cmd=barrier_out rc=0\n", out);
  }
}

void PmiServer::on_finalize(std::uint32_t task, const PmiCommand&, PmiActions& out) {
  tasks_[task].state = State::Fresh;
  reply(task, "cmd=finalize_ack\n", out);
}

void PmiServer::on_abort(std::uint32_t task, const PmiCommand& command, PmiActions& out) {
  const auto message = command.find("message").value_or("");
  out.aborts.push_back({task, number_or(command.find("exitcode"), 1),
                        base::escape_terminal(message, limits::kMaxErrorTextBytes)});
  tasks_[task].state = State::Closed;
}

void PmiServer::on_unsupported(std::uint32_t task, const PmiCommand& command, PmiActions& out) {
  const auto* answer = command.name == "create_kvs" ? "newkvs" : "kvs_destroyed";
  reply(task, fmt::format("cmd={} info=not_supported rc=-1 msg=not_supported\n", answer), out);
}

void PmiServer::on_name(std::uint32_t task, const PmiCommand& command, PmiActions& out) {
  const auto kind = std::ranges::find(kNameCommands, command.name, &NameCommand::command)->kind;
  const auto service = command.find("service").value_or("");
  const auto port = command.find("port").value_or("");
  // The client that looks the name up takes a port only up to its first blank.
  if (service.empty() || port.size() > kValueMax || port.find(' ') != port.npos) {
    return reply(task, name_answer(kind, false, ""), out);
  }
  tasks_[task].state = State::Asking;
  tasks_[task].name = kind;
  out.names.push_back({task, kind, std::string(service), std::string(port)});
}

PmiActions PmiServer::name_done(std::uint32_t task, bool is_good, std::string_view port) {
  PmiActions out;
  Task& to = tasks_[task];
  if (to.state != State::Asking || !to.name) return out;
  const bool fits = port.size() <= kValueMax && port.find('\n') == std::string_view::npos;
  to.state = State::Initialised;
  reply(task, name_answer(*to.name, is_good && fits, port), out);
  return out;
}

// A spawn of several programs consists of several commands, and one answer follows the last.
void PmiServer::handle_spawn_line(std::uint32_t task, std::string_view line, PmiActions& out) {
  Task& from = tasks_[task];
  if (!from.is_inside_spawn) {
    if (!from.spawn) from.spawn.emplace();
    from.spawn->begin();
    from.is_inside_spawn = true;
    return;
  }
  const auto is_whole = from.spawn->take(line);
  if (!is_whole) return close(task, is_whole.error().message(), out);
  if (line == "endcmd") from.is_inside_spawn = false;
  if (!*is_whole) return;
  PmiSpawn what = std::move(from.spawn->whole());
  from.spawn.reset();
  from.state = State::Asking;
  from.name.reset();
  if (job_.can_spawn) return out.spawns.push_back({task, std::move(what)});
  if (!std::exchange(has_refused_spawn_, true)) out.notes.emplace_back(task, kSpawnIsRefused);
  from.state = State::Initialised;
  reply(task, "cmd=spawn_result rc=-1 msg=spawn_is_not_supported\n", out);
}

PmiActions PmiServer::spawn_done(std::uint32_t task, bool is_good) {
  PmiActions out;
  Task& to = tasks_[task];
  if (to.state != State::Asking || to.name) return out;
  to.state = State::Initialised;
  reply(task, is_good ? "cmd=spawn_result rc=0\n" : "cmd=spawn_result rc=-1 msg=spawn_failed\n",
        out);
  return out;
}

// Other ranks may wait for this one inside the MPI library, and only the end of the job releases
// them. Ranks that failed end their job by their exit code.
PmiActions PmiServer::task_ended(std::uint32_t task, bool failed) {
  PmiActions out;
  const State was = tasks_[task].state;
  const bool is_missed = was != State::Fresh && was != State::Closed;
  tasks_[task] = Task();
  tasks_[task].state = State::Closed;
  tasks_[task].is_passed_over = job_.keep_going || !(failed || is_missed);
  try_fence(out);
  if (is_missed && !failed) out.aborts.push_back({task, 1, "ended without MPI_Finalize"});
  return out;
}

bool PmiServer::is_quiet() const {
  const auto is_silent = [](const Task& task) {
    const bool waits = task.state == State::InBarrier || task.state == State::Asking;
    return !waits && !task.spawn && !task.is_inside_spawn && task.reader.is_empty();
  };
  return !fence_ && std::ranges::all_of(tasks_, is_silent);
}

// The first line names the key space, each task's state as a letter, and the bytes of the two
// batches that follow.
std::string PmiServer::saved() const {
  std::string states;
  for (const Task& task : tasks_) states += task.state == State::Initialised ? 'I' : 'F';
  std::string batch;
  for (const std::string* key : keys_) {
    // The pair was accepted once, so it fits.
    std::ignore = proto::append_key_value(batch, *key, store_.at(*key));
  }
  return fmt::format("pmi {} {} {}\n", job_.name, states, gathered_.size()) + gathered_ + batch;
}

base::Status PmiServer::restore(std::string_view text) {
  const auto malformed = [] { return base::fail(base::Errc::Malformed, "the saved PMI state"); };
  const auto end = text.find('\n');
  if (end == text.npos) return malformed();
  const auto words = base::split(text.substr(0, end), ' ');
  text.remove_prefix(end + 1);
  if (words.size() != 4 || words[0] != "pmi" || words[2].size() != tasks_.size()) {
    return malformed();
  }
  const auto gathered = base::parse_number<std::size_t>(words[3]);
  if (!gathered || *gathered > text.size() || *gathered > max_batch_bytes()) return malformed();
  const auto waiting = proto::parse_key_values(text.substr(0, *gathered));
  const auto pairs = proto::parse_key_values(text.substr(*gathered));
  if (!waiting || !pairs) return malformed();
  job_.name = std::string(words[1]);
  gathered_ = std::string(text.substr(0, *gathered));
  store_.clear();
  keys_.clear();
  for (const auto& pair : *pairs) store(pair.key, pair.value);
  for (std::size_t task = 0; task < tasks_.size(); ++task) {
    tasks_[task].state = words[2][task] == 'I' ? State::Initialised : State::Fresh;
  }
  return {};
}

void PmiServer::store(std::string_view key, std::string_view value) {
  auto [at, is_new] = store_.insert_or_assign(std::string(key), std::string(value));
  if (is_new) keys_.push_back(&at->first);
}

}  // namespace score::shepherd
