#include "scored/job/pmi/pmi_server.hpp"

#include "base/errc.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "proto/frames/frames.hpp"
#include "proto/frames/key_values.hpp"

#include <algorithm>
#include <array>
#include <utility>

// What MPICH's client does with a reply fixes the texts here: it compares cmd=, looks for rc= and a
// few keys, and reads a line into 1024 bytes. So the value limit that get_maxes gives is smaller
// than Hydra's 1024, with which a longest value would not fit its own reply line. A mapping too
// long for that line is not published; MPICH then asks every rank for its host instead.

namespace score::shepherd {

namespace {

namespace limits = base::limits;

constexpr std::size_t kClientLineBytes = 1024;  // PMIU_MAXLINE of MPICH
constexpr std::size_t kNameMax = 256;
constexpr std::size_t kKeyMax = 64;
constexpr std::size_t kValueMax = 896;
constexpr std::size_t kLongestFrameOfReply =
    60;  // "cmd=get_result rc=0 msg=success value=" and end
static_assert(kValueMax + kLongestFrameOfReply < kClientLineBytes);
static_assert(kKeyMax <= limits::kMaxPmiKeyBytes && kValueMax <= limits::kMaxPmiValueBytes);

// A node's batch must fit a FenceEnter beside its two numbers.
std::size_t max_batch_bytes() {
  static const std::size_t bytes = proto::find_rule(proto::FrameType::FenceEnter)->max_bytes - 64;
  return bytes;
}

std::int32_t number_or(std::optional<std::string_view> text, std::int32_t otherwise) {
  if (!text) return otherwise;
  return base::parse_number<std::int32_t>(*text).value_or(otherwise);
}

// The value of `key` in "key=value" lines.
std::optional<std::string_view> line_value(std::string_view lines, std::string_view key) {
  for (const auto line : base::split(lines, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals != line.npos && line.substr(0, equals) == key) return line.substr(equals + 1);
  }
  return std::nullopt;
}

}  // namespace

PmiServer::PmiServer(PmiJob job) : job_(std::move(job)), tasks_(job_.local_tasks) {
  if (job_.process_mapping.size() <= kValueMax) store("PMI_process_mapping", job_.process_mapping);
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
  if (from.spawn || line == "mcmd=spawn") return handle_spawn_line(task, line, out);
  auto command = parse_pmi_line(line);
  if (!command) return close(task, command.error().message(), out);
  const Handler handler = handler_of(command->name);
  if (handler == nullptr) {
    return close(task, "unknown command " + base::quote_value(command->name, 64), out);
  }
  if (from.state == State::InBarrier && command->name != "abort") {
    return close(task, base::quote_value(command->name, 64) + " inside a barrier", out);
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
      {"publish_name", &PmiServer::on_unsupported},
      {"unpublish_name", &PmiServer::on_unsupported},
      {"lookup_name", &PmiServer::on_unsupported},
      {"create_kvs", &PmiServer::on_unsupported},
      {"destroy_kvs", &PmiServer::on_unsupported},
  }};
  const auto* at = std::ranges::find(kHandlers, name, &Entry::first);
  return at == kHandlers.end() ? nullptr : at->second;
}

void PmiServer::close(std::uint32_t task, const std::string& why, PmiActions& out) {
  tasks_[task] = Task();
  tasks_[task].state = State::Closed;
  // Others may wait for this rank, which can no longer be served.
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
                    kValueMax),
        out);
}

void PmiServer::on_get_appnum(std::uint32_t task, const PmiCommand&, PmiActions& out) {
  const std::uint32_t app = task < job_.apps.size() ? job_.apps[task] : 0;
  reply(task, fmt::format("cmd=appnum appnum={}\n", app), out);
}

void PmiServer::on_get_universe_size(std::uint32_t task, const PmiCommand&, PmiActions& out) {
  reply(task, fmt::format("cmd=universe_size size={}\n", job_.size), out);
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
  if (value.size() > kValueMax) return "value_too_long";
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
    gathered_.clear();  // in the store already
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
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kAnswers{{
      {"publish_name", "publish_result"},
      {"unpublish_name", "unpublish_result"},
      {"lookup_name", "lookup_result"},
      {"create_kvs", "newkvs"},
      {"destroy_kvs", "kvs_destroyed"},
  }};
  const auto* answer =
      std::ranges::find(kAnswers, command.name, [](auto& pair) { return pair.first; });
  reply(task, fmt::format("cmd={} info=not_supported rc=-1 msg=not_supported\n", answer->second),
        out);
}

void PmiServer::handle_spawn_line(std::uint32_t task, std::string_view line, PmiActions& out) {
  auto& spawn = tasks_[task].spawn;
  if (!spawn) {
    spawn.emplace();
    return;
  }
  if (line != "endcmd") {
    if (spawn->size() + line.size() > limits::kMaxPmiBytesPerTask) {
      return close(task, "spawn command is too long", out);
    }
    (*spawn += line) += '\n';
    return;
  }
  // A spawn of several programs is several of these; one answer comes after the last.
  const bool last = line_value(*spawn, "totspawns") == line_value(*spawn, "spawnssofar");
  spawn.reset();
  if (!last) return;
  if (!std::exchange(has_refused_spawn_, true)) out.notes.emplace_back(task, kSpawnIsRefused);
  reply(task, "cmd=spawn_result rc=-1 msg=spawn_is_not_supported\n", out);
}

// Others wait for it inside the library, which only its end shows. Ranks that failed end
// their job by their exit code.
PmiActions PmiServer::task_ended(std::uint32_t task, bool failed) {
  PmiActions out;
  const State was = tasks_[task].state;
  const bool is_missed = was == State::Initialised || was == State::InBarrier;
  tasks_[task] = Task();
  tasks_[task].state = State::Closed;
  tasks_[task].is_passed_over = job_.keep_going || !(failed || is_missed);
  try_fence(out);
  if (is_missed && !failed) out.aborts.push_back({task, 1, "ended without MPI_Finalize"});
  return out;
}

void PmiServer::store(std::string_view key, std::string_view value) {
  auto [at, is_new] = store_.insert_or_assign(std::string(key), std::string(value));
  if (is_new) keys_.push_back(&at->first);
}

}  // namespace score::shepherd
