// This module is tested by tests/integration/run/test_checkpoint.py.
#include "scored/job/checkpoint/job_checkpoint.hpp"

#include "base/errc.hpp"
#include "base/text.hpp"
#include "proto/client.pb.h"
#include "scored/job/checkpoint/shared_memory.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <signal.h>
#include <sys/stat.h>
#include <utility>

// The node daemon orders Hold while the job's cgroup is frozen, so the tasks of all nodes are
// stopped at one moment, and no process can fork. SIGSTOP takes effect when the timetable lets the
// job run again, before a task executes anything. criu needs the tasks thawed, but not running.

namespace score::shepherd {

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr base::Duration kLook = 5ms;
constexpr base::Duration kAskAgain = 30s;
constexpr int kMostLooks = 200;  // until tasks that stand still wait for no server
constexpr std::size_t kMostList = 1U << 20U;
constexpr std::size_t kMostProcesses = 65'536;

std::vector<std::uint32_t> tasks_on_node(const Plan& plan) {
  return {plan.prepare.tasks_on_node().begin(), plan.prepare.tasks_on_node().end()};
}

void add_children(pid_t process, std::vector<pid_t>& all) {
  std::error_code error;
  for (fs::directory_iterator at(fmt::format("/proc/{}/task", process), error), end;
       !error && at != end; at.increment(error)) {
    const auto text = base::read_file(at->path() / "children", kMostList);
    if (!text) continue;
    for (const auto word : base::split(*text, ' ')) {
      if (const auto pid = base::parse_number<pid_t>(word)) all.push_back(*pid);
    }
  }
}

bool is_stopped(pid_t process) {
  const auto text = base::read_file(fmt::format("/proc/{}/stat", process), kMostList);
  if (!text) return true;  // it has ended
  const auto at = text->rfind(')');
  return at != text->npos && at + 2 < text->size() &&
         std::string_view("TtZX").find((*text)[at + 2]) != std::string_view::npos;
}

using What = CriuClient::What;

// Returns what kind of stream a descriptor is; nothing for files and devices.
std::optional<CriuClient::Stream> stream_of(int fd) {
  struct stat info {};

  if (fstat(fd, &info) != 0) return std::nullopt;
  if (!S_ISFIFO(info.st_mode) && !S_ISSOCK(info.st_mode)) return std::nullopt;
  return CriuClient::Stream{S_ISSOCK(info.st_mode) ? What::Socket : What::Pipe, info.st_ino, fd};
}

pid_t last_process_id() {
  const auto text = base::read_file("/proc/sys/kernel/ns_last_pid", kMostList);
  return text ? base::parse_number<pid_t>(base::trim(*text)).value_or(0) : 0;
}

}  // namespace

std::vector<pid_t> processes_below(pid_t root) {
  std::vector<pid_t> all{root};
  for (std::size_t i = 0; i < all.size() && all.size() < kMostProcesses; ++i)
    add_children(all[i], all);
  return all;
}

void JobCheckpoint::opened(std::uint32_t task, std::span<const base::UniqueFd> fds) {
  for (std::uint32_t slot = 0; slot < fds.size(); ++slot) {
    const auto stream = stream_of(fds[slot].get());
    if (stream) streams_.push_back({task, slot, {stream->what, stream->inode, -1}});
  }
}

// ---- orders

void JobCheckpoint::order(const wire::ShepherdCheckpoint& order) {
  if (is_busy_) {
    wire::ShepherdCheckpointed busy;
    busy.set_tag(order.tag());
    busy.set_reason("criu is still at work");
    return parts_.answer(busy);
  }
  order_ = order;
  parts_.loop.cancel(std::exchange(timer_, 0));
  switch (order.step()) {
    case wire::HOLD:
      return hold();
    case wire::SAVE:
      return save();
    case wire::COMPLETE: {
      // Fields of concatenated messages are merged.
      wire::Submit specified;
      *specified.mutable_spec() = parts_.plan.spec;
      const auto done = set().complete(tasks_on_node(parts_.plan),
                                       order.submission() + specified.SerializeAsString());
      if (done && every_ > base::Duration(0)) keep_saving(every_);
      return reply(done ? std::string() : done.error().message());
    }
    case wire::GO_ON:
      go_on();
      return reply({});
    case wire::ABANDON:
      set().abandon(parts_.plan.prepare.node_index());
      go_on();
      return reply({});
    case wire::END:
      is_held_ = false;
      signal_all(SIGKILL);
      return reply({});
    default:
      return reply("unknown step");
  }
}

void JobCheckpoint::keep_saving(base::Duration every) {
  every_ = every;
  parts_.loop.cancel(next_);
  next_ = parts_.loop.after(every, [this] { want_save(); });
}

// Asks again until the set is complete: a save may be refused, and a head may be away.
void JobCheckpoint::want_save() {
  wire::ShepherdCheckpointed question;
  question.set_wanted(true);
  parts_.answer(question);
  next_ = parts_.loop.after(std::min(every_, kAskAgain), [this] { want_save(); });
}

// The name comes from the head, and must not lead elsewhere.
ImageSet JobCheckpoint::set() const {
  std::string name = order_.set();
  std::ranges::replace(name, '/', '_');
  return ImageSet(fmt::format("{}/job_{}/{}", parts_.plan.spec.checkpoint(), parts_.plan.spec.job(),
                              name.starts_with('.') ? "set" : name));
}

// The next order may never come, so the tasks do not wait for it forever.
void JobCheckpoint::reply(const std::string& reason, std::uint64_t bytes) {
  parts_.loop.cancel(std::exchange(timer_, 0));
  if (is_held_) timer_ = parts_.loop.after(parts_.forgotten, [this] { go_on(); });
  wire::ShepherdCheckpointed answer;
  answer.set_tag(order_.tag());
  answer.set_reason(reason);
  answer.set_image_bytes(bytes);
  if (order_.step() == wire::COMPLETE) answer.set_directory(set().directory());
  parts_.answer(answer);
}

void JobCheckpoint::signal_all(int signal) const {
  const pid_t parent = parts_.parent();
  if (parent <= 1) return;
  for (const pid_t process : processes_below(parent)) kill(process, signal);
}

void JobCheckpoint::hold() {
  if (auto why = parts_.why_not(); !why.empty()) return reply(why);
  signal_all(SIGSTOP);
  is_held_ = true;
  reply({});
}

void JobCheckpoint::go_on() {
  timer_ = 0;
  is_held_ = false;
  signal_all(SIGCONT);
}

void JobCheckpoint::save() {
  if (auto why = parts_.why_not(); !why.empty()) return reply(why);
  looks_ = 0;
  save_when_stopped(order_.tag(), base::monotonic_now() + base::Duration(order_.limit_ns()) / 2);
}

// The servers answer meanwhile what the tasks have sent.
void JobCheckpoint::save_when_stopped(std::uint64_t tag, base::TimePoint deadline) {
  if (tag != order_.tag()) return;
  const bool are_stopped = std::ranges::all_of(processes_below(parts_.parent()), is_stopped);
  if (are_stopped && parts_.is_quiet()) return run_criu();
  if (are_stopped && ++looks_ > kMostLooks) {
    return reply("its tasks wait for each other in MPI_Init, or for PM; try again");
  }
  if (base::monotonic_now() > deadline) return reply("its processes were not stopped in time");
  timer_ = parts_.loop.after(kLook, [this, tag, deadline] { save_when_stopped(tag, deadline); });
}

NodeImage JobCheckpoint::describe() const {
  NodeImage image;
  image.parent = parts_.parent();
  image.last = last_process_id();
  image.tasks = parts_.tasks();
  image.streams = streams_;
  image.script = parts_.plan.prepare.script_path();

  struct stat info {};

  if (stat(fmt::format("/proc/{}/fd/4", image.parent).c_str(), &info) == 0) {
    image.streams.push_back({NodeImage::kOfParent, 0, {What::Socket, info.st_ino, -1}});
  }
  parts_.describe(image);
  return image;
}

void JobCheckpoint::run_criu() {
  const auto directory = set().make_node(parts_.plan.prepare.node_index());
  if (!directory) return reply(directory.error().message());
  std::vector<CriuClient::Stream> streams;
  for (const auto& one : describe().streams) streams.push_back(one.stream);
  is_busy_ = true;
  parts_.criu.save(directory->get(), parts_.parent(), streams,
                   [this](const base::Status& status) { saved(status); });
}

void JobCheckpoint::saved(const base::Status& status) {
  is_busy_ = false;
  const std::uint32_t index = parts_.plan.prepare.node_index();
  if (!status) {
    const auto why = set().error_of(index, "save.log");
    return reply(why.empty() ? status.error().message() : "criu: " + why);
  }
  const NodeImage image = describe();
  if (auto done = set().add_to_node(index, image, processes_below(parts_.parent())); !done) {
    return reply(done.error().message());
  }
  const auto bytes = set().finish_node(index, image);
  reply(bytes ? std::string() : bytes.error().message(), bytes ? *bytes : 0);
}

// ---- restore

base::Result<NodeImage> JobCheckpoint::check(const Plan& plan) {
  return ImageSet(plan.spec.restart()).check_node(plan.prepare.node_index(), tasks_on_node(plan));
}

void JobCheckpoint::restore(const Plan& plan, const NodeImage& image, CriuClient& criu, Ends ends,
                            const CriuClient::Done& done) {
  const ImageSet set(plan.spec.restart());
  const std::uint32_t index = plan.prepare.node_index();
  const auto directory = set.open_node(index);
  if (!directory) return done(directory.error());
  if (auto made = restore_shared_memory(set.node(index)); !made) return done(made);
  std::vector<base::UniqueFd> kept;
  std::vector<CriuClient::Stream> streams;
  for (std::uint32_t task = 0; task < image.tasks.size(); ++task) {
    auto fds = ends.open(task);
    if (!fds) return done(fds.error());
    for (const auto& saved : image.streams) {
      if (saved.task != task || saved.slot >= fds->size()) continue;
      const int fd = (*fds)[saved.slot].get();
      const auto now = stream_of(fd);
      if (now && now->what == saved.stream.what)
        streams.push_back({now->what, saved.stream.inode, fd});
    }
    for (auto& fd : *fds) kept.push_back(std::move(fd));
  }
  for (const auto& saved : image.streams) {
    if (saved.task == NodeImage::kOfParent)
      streams.push_back({What::Socket, saved.stream.inode, ends.parent.get()});
  }
  for (std::size_t i = 0; i < ends.sockets.size(); ++i) {
    streams.push_back({What::PmSocket, i, ends.sockets[i].get()});
  }
  criu.restore(directory->get(), image.last, streams, [set, index, done](const auto& status) {
    const auto why = status ? std::string() : set.error_of(index, "restore.log");
    if (why.empty()) return done(status);
    done(base::fail(base::Errc::Unsupported, "criu: {}", why));
  });
}

}  // namespace score::shepherd
