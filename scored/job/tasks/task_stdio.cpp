#include "scored/job/tasks/task_stdio.hpp"

#include "base/text/path_pattern.hpp"
#include "scored/job/plan/checks.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

namespace score::shepherd {

namespace {

constexpr mode_t kNewFileMode = 0666;  // the umask is subtracted
constexpr mode_t kNewDirectoryMode = 0777;

// Makes the directory and those above it that are missing. Other ranks may make them at the same
// time.
base::Status make_directories(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) == 0 || errno == EEXIST) return {};
  const auto failed = [&] { return base::fail(base::errno_code(errno), "create {}", path); };
  const std::string above = base::parent_directory(path);
  if (errno != ENOENT || above == path) return failed();
  if (auto made = make_directories(above, mode); !made) return made;
  if (mkdir(path.c_str(), mode) == 0 || errno == EEXIST) return {};
  return failed();
}

}  // namespace

base::Result<std::vector<base::UniqueFd>> TaskStdio::open_task(std::uint32_t task) {
  if (plan_.has_terminal(task)) return open_terminal(task);
  std::vector<base::UniqueFd> fds;
  auto in = open_stdin(task);
  if (!in) return in.error();
  fds.push_back(std::move(*in));
  for (const auto stream : {wire::STDOUT, wire::STDERR}) {
    auto out = open_stream(task, stream);
    if (!out) return out.error();
    fds.push_back(std::move(*out));
  }
  return fds;
}

TaskStdio::Opened TaskStdio::open_stdin(std::uint32_t task) {
  if (!plan_.spec.stdin_path().empty()) {
    auto path = name_of(task, plan_.spec.stdin_path());
    if (!path) return path.error();
    return open_input_file(*path);
  }
  if (!plan_.takes_input(task)) return base::open_file("/dev/null", O_RDONLY);
  auto pipe = base::make_pipe();
  if (!pipe) return pipe.error();
  if (auto set = base::set_nonblocking(pipe->write.get(), true); !set) return set.error();
  if (auto added = input_.add(std::move(pipe->write), false); !added) return added.error();
  return std::move(pipe->read);
}

// The open of a FIFO blocks until its other end is opened, which may never happen. For this reason
// the shepherd opens only its path, and the task, which may wait, opens the FIFO
// (TaskExecutor::open_input).
TaskStdio::Opened TaskStdio::open_input_file(const std::string& path) {
  auto place = base::open_file(path, O_PATH);
  if (!place) return place;
  struct stat info = {};
  if (fstat(place->get(), &info) == 0 && S_ISFIFO(info.st_mode)) return place;
  auto file = base::open_file(path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
  if (!file) return file;
  if (auto set = base::set_nonblocking(file->get(), false); !set) return set.error();
  return file;
}

TaskStdio::Opened TaskStdio::open_stream(std::uint32_t task, wire::Stream stream) {
  const bool is_stdout = stream == wire::STDOUT;
  const auto& pattern = is_stdout ? plan_.spec.stdout_path() : plan_.spec.stderr_path();
  if (!pattern.empty()) return open_output_file(task, pattern);
  auto pipe = base::make_pipe();
  if (!pipe) return pipe.error();
  if (auto set = base::set_nonblocking(pipe->read.get(), true); !set) return set.error();
  auto added = output_.add(plan_.rank_of(task), stream, std::move(pipe->read));
  if (!added) return added.error();
  return std::move(pipe->write);
}

// A file that several ranks or nodes share is truncated once, by the first that opens it. All of
// them append, so that none overwrites the lines of a different rank.
TaskStdio::Opened TaskStdio::open_output_file(std::uint32_t task, const std::string& pattern) {
  auto path = name_of(task, pattern);
  if (!path) return path.error();
  const auto scope = base::scope_of(pattern);
  const bool is_first = scope.per_rank || (task == 0 && (scope.per_node || plan_.rank_of(0) == 0));
  const int truncate = is_first && !plan_.spec.append_output() ? O_TRUNC : 0;
  // With O_NONBLOCK, a FIFO without a reader is an error instead of a shepherd that hangs.
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY;
  const mode_t mode = kNewFileMode & ~plan_.spec.umask();
  auto file = base::open_file(*path, flags | truncate, mode);
  if (!file && file.error().code() == std::errc::no_such_file_or_directory) {
    // Programs create the directory of a job's files after they have submitted the job, because its
    // name contains the job's number.
    const auto made =
        make_directories(base::parent_directory(*path), kNewDirectoryMode & ~plan_.spec.umask());
    if (!made) return made.error();
    file = base::open_file(*path, flags | truncate, mode);
  }
  if (!file) return file.error();
  if (auto set = base::set_nonblocking(file->get(), false); !set) return set.error();
  return file;
}

base::Result<std::string> TaskStdio::name_of(std::uint32_t task, const std::string& pattern) const {
  return file_name_of(plan_, task, pattern);
}

base::Result<std::vector<base::UniqueFd>> TaskStdio::open_terminal(std::uint32_t task) {
  const auto failed = [] { return base::fail(base::errno_code(errno), "cannot open a terminal"); };
  base::UniqueFd master(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  int locked = 0;
  if (!master || ioctl(master.get(), TIOCSPTLCK, &locked) != 0) return failed();
  base::UniqueFd slave(ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!slave) return failed();
  terminal_ = std::move(master);
  resize(plan_.spec.terminal_rows(), plan_.spec.terminal_columns());
  auto reading = base::duplicate(terminal_.get());
  auto writing = base::duplicate(terminal_.get());
  if (!reading || !writing) return failed();
  auto added = output_.add(plan_.rank_of(task), wire::STDOUT, std::move(*reading));
  if (added) added = input_.add(std::move(*writing), true);
  if (!added) return added.error();
  std::vector<base::UniqueFd> fds;
  for (int i = 0; i < 2; ++i) {
    auto copy = base::duplicate(slave.get());
    if (!copy) return copy.error();
    fds.push_back(std::move(*copy));
  }
  fds.push_back(std::move(slave));
  return fds;
}

void TaskStdio::resize(std::uint32_t rows, std::uint32_t columns) {
  if (!terminal_ || rows == 0 || columns == 0) return;
  winsize size{};
  size.ws_row = static_cast<unsigned short>(rows);
  size.ws_col = static_cast<unsigned short>(columns);
  ioctl(terminal_.get(), TIOCSWINSZ, &size);
}

}  // namespace score::shepherd
