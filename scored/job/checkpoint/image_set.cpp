#include "scored/job/checkpoint/image_set.hpp"

#include "base/errc.hpp"
#include "base/text.hpp"
#include "pmlib/wire/crc32c.hpp"
#include "scored/job/checkpoint/shared_memory.hpp"
#include "scored/job/checkpoint/socket_images.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace score::shepherd {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTasks = "tasks";
constexpr std::string_view kList = "list";
constexpr std::string_view kPmi = "pmi";
constexpr std::size_t kMostText = 1U << 20U;
constexpr std::size_t kMostLog = 4U << 20U;
constexpr std::size_t kMostPmi = 128U << 20U;   // two batches of a fence
constexpr std::size_t kMostFiles = 64U << 20U;  // criu's lists of files and descriptors
constexpr std::size_t kMostReason = 400;
constexpr mode_t kFileMode = 0600;

struct FileSum {
  std::uint64_t bytes = 0;
  std::uint32_t sum = 0;
};

base::Error failed(std::string_view what, const std::string& where) {
  return base::fail(base::errno_code(errno), "cannot {} {}", what, where);
}

// Reads a file of the user and never follows a link there.
base::Result<FileSum> sum_of(int directory, const std::string& name, bool stores) {
  constexpr std::size_t kPiece = 1U << 18U;
  const base::UniqueFd file(openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return failed("open", name);
  FileSum found;
  std::vector<char> piece(kPiece);
  for (;;) {
    const ssize_t got = read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("read", name);
    if (got == 0) break;
    found.bytes += static_cast<std::uint64_t>(got);
    found.sum = pm::crc32c(found.sum, piece.data(), static_cast<std::size_t>(got));
  }
  if (stores && fsync(file.get()) != 0) return failed("store", name);
  return found;
}

base::Status make_directory(const std::string& path) {
  if (mkdir(path.c_str(), S_IRWXU) == 0 || errno == EEXIST) return {};
  const std::string above = path.substr(0, path.rfind('/'));
  if (errno != ENOENT || above.empty()) return failed("make", path);
  if (auto made = make_directory(above); !made) return made;
  if (mkdir(path.c_str(), S_IRWXU) == 0 || errno == EEXIST) return {};
  return failed("make", path);
}

base::Result<base::UniqueFd> open_own(const std::string& path) {
  base::UniqueFd opened(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));

  struct stat info {};

  if (!opened || fstat(opened.get(), &info) != 0) return failed("open", path);
  if (info.st_uid != geteuid()) {
    return base::fail(base::Errc::Denied, "{} belongs to another user", path);
  }
  return opened;
}

std::string sum_text(const FileSum& sum) {
  return fmt::format("{} {:08x}", sum.bytes, sum.sum);
}

std::string tasks_line(std::span<const std::uint32_t> tasks_on_node) {
  return fmt::format("tasks {}\n", fmt::join(tasks_on_node, " "));
}

base::Result<std::string> read_in(const std::string& directory, std::string_view name,
                                  std::size_t most = kMostText) {
  return base::read_file(fmt::format("{}/{}", directory, name), most);
}

}  // namespace

// ---- the tasks of a node

std::string image_text(const NodeImage& image) {
  std::string text = fmt::format("parent {}\nlast {}\n", image.parent, image.last);
  for (const pid_t task : image.tasks) text += fmt::format("task {}\n", task);
  for (const auto& one : image.streams) {
    text += fmt::format("stream {} {} {} {}\n", one.task, one.slot,
                        one.stream.what == CriuClient::What::Pipe ? "pipe" : "socket",
                        one.stream.inode);
  }
  if (image.network_key != 0) text += fmt::format("network {}\n", image.network_key);
  for (const std::uint64_t inode : image.sockets) text += fmt::format("pm {}\n", inode);
  if (!image.script.empty()) text += fmt::format("script {}\n", image.script);
  return text;
}

base::Result<NodeImage> parse_image(std::string_view text) {
  const auto bad = [] { return base::fail(base::Errc::Malformed, "the list of tasks"); };
  using What = CriuClient::What;
  NodeImage image;
  for (const auto line : base::split(text, '\n')) {
    if (line.empty()) continue;
    const auto words = base::split(line, ' ');
    const auto number = [&](std::size_t at) -> base::Result<std::uint64_t> {
      if (at >= words.size()) return bad();
      return base::parse_number<std::uint64_t>(words[at]);
    };
    const auto first = number(1);
    const auto pid = static_cast<pid_t>(std::min<std::uint64_t>(first.value_or(0), INT32_MAX));
    if (words[0] == "script") {
      image.script = std::string(line.substr(line.find(' ') + 1));
    } else if (words[0] == "stream") {
      const auto slot = number(2);
      const auto inode = number(4);
      if (words.size() != 5 || !first || !slot || !inode) return bad();
      image.streams.push_back({static_cast<std::uint32_t>(*first),
                               static_cast<std::uint32_t>(*slot),
                               {words[3] == "socket" ? What::Socket : What::Pipe, *inode, -1}});
    } else if (!first) {
      return bad();
    } else if (words[0] == "parent") {
      image.parent = pid;
    } else if (words[0] == "last") {
      image.last = pid;
    } else if (words[0] == "network") {
      image.network_key = *first;
    } else if (words[0] == "pm") {
      image.sockets.push_back(*first);
    } else if (words[0] == "task") {
      image.tasks.push_back(pid);
    }
  }
  if (image.parent <= 1 || image.tasks.empty()) return bad();
  return image;
}

// ---- the set

std::string ImageSet::node(std::uint32_t index) const {
  return fmt::format("{}/node_{}", directory_, index);
}

base::Result<base::UniqueFd> ImageSet::open_node(std::uint32_t index) const {
  return open_own(node(index));
}

base::Result<base::UniqueFd> ImageSet::make_node(std::uint32_t index) const {
  if (auto made = make_directory(directory_); !made) return made.error();
  if (auto own = open_own(directory_); !own) return own.error();
  if (mkdir(node(index).c_str(), S_IRWXU) != 0) return failed("make", node(index));
  return open_node(index);
}

base::Status ImageSet::replace_sockets(std::uint32_t index,
                                       std::span<const std::uint64_t> inodes) const {
  if (inodes.empty()) return {};
  const std::string files = node(index) + "/files.img";
  std::set<std::uint64_t> ids;
  const auto text = base::read_file(files, kMostFiles);
  if (!text) return text.error();
  const auto changed = shepherd::replace_sockets(*text, inodes, ids);
  if (!changed) return changed.error();
  if (auto put = base::replace_file(files, *changed, kFileMode); !put) return put;
  std::error_code error;
  std::vector<std::string> descriptors;
  for (fs::directory_iterator at(node(index), error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().filename().string().starts_with("fdinfo-")) descriptors.push_back(at->path());
  }
  for (const std::string& path : descriptors) {
    const auto image = base::read_file(path, kMostFiles);
    const auto done = image ? replace_descriptors(*image, ids) : image;
    if (!done) return done.error();
    if (auto put = base::replace_file(path, *done, kFileMode); !put) return put;
  }
  return error ? base::Status(base::fail(error, "cannot read {}", node(index))) : base::Status();
}

base::Status ImageSet::add_to_node(std::uint32_t index, const NodeImage& image,
                                   std::span<const pid_t> processes) const {
  if (auto replaced = replace_sockets(index, image.sockets); !replaced) return replaced;
  return save_shared_memory(shared_memory_of(processes), node(index));
}

base::Result<std::uint64_t> ImageSet::finish_node(std::uint32_t index,
                                                  const NodeImage& image) const {
  auto opened = open_node(index);
  if (!opened) return opened.error();
  const std::string tasks = fmt::format("{}/{}", node(index), kTasks);
  if (auto put = base::replace_file(tasks, image_text(image), kFileMode); !put) return put.error();
  if (!image.pmi.empty()) {
    const auto pmi =
        base::replace_file(fmt::format("{}/{}", node(index), kPmi), image.pmi, kFileMode);
    if (!pmi) return pmi.error();
  }
  std::string list;
  std::uint64_t bytes = 0;
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator at(node(index), error), end; !error && at != end;
       at.increment(error)) {
    names.push_back(at->path().filename());
  }
  if (error) return base::fail(error, "cannot read {}", node(index));
  std::ranges::sort(names);
  for (const auto& name : names) {
    if (name.ends_with(".log")) continue;
    const auto sum = sum_of(opened->get(), name, true);
    if (!sum) return sum.error();
    bytes += sum->bytes;
    list += fmt::format("{} {}\n", sum_text(*sum), name);
  }
  const std::string file = fmt::format("{}/{}", node(index), kList);
  if (auto put = base::replace_file(file, list, kFileMode); !put) return put.error();
  if (fsync(opened->get()) != 0) return failed("store", node(index));
  return bytes;
}

base::Status ImageSet::complete(std::span<const std::uint32_t> tasks_on_node,
                                std::string_view submission) const {
  std::string text = "scored-checkpoint 1\n" + tasks_line(tasks_on_node);
  for (std::uint32_t index = 0; index < tasks_on_node.size(); ++index) {
    if (tasks_on_node[index] == 0) continue;
    const auto opened = open_node(index);
    const auto sum = opened ? sum_of(opened->get(), std::string(kList), false)
                            : base::Result<FileSum>(opened.error());
    if (!sum) {
      return sum.error().with_context(
          "the images of all nodes are not in one directory: is it on a file system of all nodes?");
    }
    text += fmt::format("node {} {}\n", index, sum_text(*sum));
  }
  const auto job = base::replace_file(directory_ + "/job", submission, kFileMode);
  if (!job) return job;
  if (auto put = base::replace_file(directory_ + "/complete", text, kFileMode); !put) return put;
  remove_older();
  return {};
}

// A set that is not complete is of a save that failed, because a job is saved once at a time.
void ImageSet::remove_older() const {
  const fs::path own(directory_);
  std::error_code error;
  for (fs::directory_iterator at(own.parent_path(), error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename();
    const std::string mine = own.filename();
    const bool is_older = name.size() == mine.size() && name < mine;
    std::error_code ignored;
    if (is_older && !at->is_symlink(ignored)) fs::remove_all(at->path(), ignored);
  }
}

void ImageSet::abandon(std::uint32_t index) const {
  std::error_code ignored;
  if (access((directory_ + "/complete").c_str(), F_OK) == 0) return;
  fs::remove_all(node(index), ignored);
  rmdir(directory_.c_str());  // the last node succeeds
}

base::Result<NodeImage> ImageSet::check_node(std::uint32_t index,
                                             std::span<const std::uint32_t> tasks_on_node) const {
  if (auto own = open_own(directory_); !own) return own.error();
  const auto mark = read_in(directory_, "complete");
  if (!mark) return base::fail(base::Errc::NotFound, "{} is not a complete set", directory_);
  if (mark->find(tasks_line(tasks_on_node)) == std::string::npos) {
    return base::fail(base::Errc::WrongState,
                      "the saved job had other numbers of tasks on its nodes than {}",
                      fmt::join(tasks_on_node, " "));
  }
  auto opened = open_node(index);
  if (!opened) return opened.error();
  const auto bad = [&](std::string_view name) {
    return base::fail(base::Errc::Malformed, "{}/{} is damaged", node(index), name);
  };
  const auto of_list = sum_of(opened->get(), std::string(kList), false);
  const auto list = read_in(node(index), kList);
  if (!of_list || !list ||
      mark->find(fmt::format("node {} {}\n", index, sum_text(*of_list))) == std::string::npos) {
    return bad(kList);
  }
  for (const auto line : base::split(*list, '\n')) {
    if (line.empty()) continue;
    const std::string name(line.substr(line.rfind(' ') + 1));
    const auto sum = name.find('/') == std::string::npos
                         ? sum_of(opened->get(), name, false)
                         : base::Result<FileSum>(base::fail(base::Errc::Malformed, "path"));
    if (!sum || line != fmt::format("{} {}", sum_text(*sum), name)) return bad(name);
  }
  const auto tasks = read_in(node(index), kTasks);
  auto image = tasks ? parse_image(*tasks) : base::Result<NodeImage>(tasks.error());
  if (image && image->tasks.size() != tasks_on_node[index]) return bad(kTasks);
  if (image && list->find(fmt::format(" {}\n", kPmi)) != std::string::npos) {
    auto pmi = read_in(node(index), kPmi, kMostPmi);
    if (!pmi) return bad(kPmi);
    image->pmi = *std::move(pmi);
  }
  return image;
}

// A line of criu: "(00.1) 4001: Error (criu/files.c:12): Can't open".
std::string ImageSet::error_of(std::uint32_t index, const char* log) const {
  const auto text = read_in(node(index), log, kMostLog);
  if (!text) return {};
  for (const auto line : base::split(*text, '\n')) {
    const auto at = line.find("Error (");
    const auto end = at == line.npos ? at : line.find("): ", at);
    if (end != line.npos) return base::escape_terminal(line.substr(end + 3), kMostReason);
  }
  return {};
}

}  // namespace score::shepherd
