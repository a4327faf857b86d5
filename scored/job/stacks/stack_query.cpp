// This module is tested by stacks_test.cpp.
#include "scored/job/stacks/stack_query.hpp"

#include "base/errc.hpp"
#include "base/text.hpp"
#include "proto/documents/stack_tree.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace score::shepherd {

using base::Errc;
using base::fail;
using base::Result;
using base::Status;

namespace {

constexpr std::size_t kReadBytes = 64UL * 1024;
constexpr std::size_t kMostBytes = 2 * proto::StackTree::kMaxNodeBytes;
constexpr std::int64_t kNsPerMs = 1'000'000;
constexpr std::int64_t kLongestMs = 60'000;

Result<wire::StackTree> tree_of(std::string_view output) {
  const auto cut_off = [] { return fail(Errc::Malformed, "the reader of the stacks was ended"); };
  if (output.size() < kStackSizeDigits) return cut_off();
  std::size_t size = 0;
  const char* end = output.data() + kStackSizeDigits;
  const auto parsed = std::from_chars(output.data(), end, size, 16);
  if (parsed.ptr != end || output.size() - kStackSizeDigits != size) return cut_off();
  wire::StackTree tree;
  if (!tree.ParseFromArray(end, static_cast<int>(size))) return cut_off();
  return tree;
}

}  // namespace

std::string StackQuery::program_path() {
  return (base::own_directory() / "scored-stacks").string();
}

StackQuery::StackQuery(EventLoop& loop, Answer answer, std::string program)
    : loop_(loop), answer_(std::move(answer)), program_(std::move(program)) {}

StackQuery::~StackQuery() {
  answer_ = [](const wire::ShepherdStacksRead&) {};
  if (tag_ != 0) end({});
}

void StackQuery::begin(const wire::ShepherdStacks& request, std::span<const Task> tasks) {
  if (tag_ != 0) end("another request for the stacks has come");
  tag_ = request.tag();
  read_.clear();
  if (auto started = start(request, tasks); !started) end(started.error().context());
}

Status StackQuery::start(const wire::ShepherdStacks& request, std::span<const Task> tasks) {
  if (access(program_.c_str(), X_OK) != 0) {
    return fail(Errc::NotFound,
                "scored-stacks is not installed there: install the package scored-node, or build "
                "with libdw-dev");
  }
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return fail(base::errno_code(errno), "cannot make a pipe");
  base::UniqueFd reading(ends[0]);
  const base::UniqueFd writing(ends[1]);
  const std::int64_t limit = std::clamp(request.limit_ns() / kNsPerMs, std::int64_t{1}, kLongestMs);
  base::SpawnSpec spec;
  spec.path = program_;
  spec.argv = {spec.path, std::to_string(limit)};
  if (request.threads()) spec.argv.emplace_back("--threads");
  for (const Task& task : tasks) spec.argv.push_back(fmt::format("{}:{}", task.rank, task.process));
  spec.fds = {{writing.get(), STDOUT_FILENO}};
  spec.directory = "/";
  spec.new_session = true;
  spec.die_with_parent = true;
  auto spawned = base::spawn(spec);
  if (!spawned) return spawned.error();
  reader_ = *std::move(spawned);
  output_ = std::move(reading);
  if (auto set = base::set_nonblocking(output_.get(), true); !set) return set;
  timer_ = loop_.after(std::chrono::milliseconds(limit),
                       [this] { end("reading the stacks took too long"); });
  return loop_.add(output_.get(), EPOLLIN, [this](std::uint32_t) { on_output(); });
}

void StackQuery::on_output() {
  std::array<char, kReadBytes> buffer;
  const ssize_t got = ::read(output_.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) {
    read_.append(buffer.data(), static_cast<std::size_t>(got));
    if (read_.size() > kMostBytes) end("its stacks are too many");
    return;
  }
  end({});
}

// An empty reason means that the reader has written everything, or was ended.
void StackQuery::end(const std::string& reason) {
  loop_.cancel(std::exchange(timer_, 0));
  if (output_) loop_.remove(output_.get());
  output_.reset();
  if (reader_.pidfd) {
    [[maybe_unused]] const auto killed = base::send_signal(reader_.pidfd.get(), SIGKILL);
    // The table of tasks may have reaped it.
    [[maybe_unused]] const auto reaped = base::reap(reader_.pidfd.get(), true);
  }
  reader_ = {};
  wire::ShepherdStacksRead answer;
  answer.set_tag(std::exchange(tag_, 0));
  auto tree =
      reason.empty() ? tree_of(read_) : Result<wire::StackTree>(fail(Errc::Busy, "{}", reason));
  if (tree) {
    *answer.mutable_tree() = *std::move(tree);
  } else {
    answer.set_reason(tree.error().context());
  }
  answer_(answer);
}

}  // namespace score::shepherd
