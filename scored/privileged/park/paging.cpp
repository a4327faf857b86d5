// A process is named by its pidfd, which is opened before the cgroup is asked once more whether the
// process belongs to it: a number that has been used again is not touched. The kernel leaves out
// pages that several processes map, so what has gone out is measured afterwards.
#include "scored/privileged/park/paging.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <map>
#include <set>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

namespace score::park {
namespace {

// One call writes or reads this much, so the caller can end the work soon.
constexpr std::uint64_t kPiece = 16ULL << 20U;
constexpr std::uint64_t kSwapReserve = 32ULL << 20U;  // of the host, is left free
// A rate is judged once this much is written, or this much time has passed.
constexpr double kJudgedBytes = 64.0 * (1U << 20U);
constexpr double kJudgedSeconds = 3;
constexpr std::size_t kMostProcesses = 65'536;

class File {
 public:
  explicit File(int fd) : fd_(fd) {}

  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  File(const File&) = delete;
  File& operator=(const File&) = delete;

  ~File() {
    if (fd_ >= 0) close(fd_);
  }

  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

template <class Take>
bool read_file(int fd, Take&& take) {
  char buffer[16'384];
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;
    take(std::string_view(buffer, static_cast<std::size_t>(got)));
  }
}

std::vector<pid_t> processes_of(int directory) {
  std::vector<pid_t> out;
  const File file(openat(directory, "cgroup.procs", O_RDONLY | O_CLOEXEC));
  std::uint64_t number = 0;
  read_file(file.get(), [&](std::string_view text) {
    for (const char letter : text) {
      if (letter >= '0' && letter <= '9') {
        number = number * 10 + static_cast<std::uint64_t>(letter - '0');
        number = std::min<std::uint64_t>(number, INT32_MAX);
      } else {
        if (number > 1 && out.size() < kMostProcesses) out.push_back(static_cast<pid_t>(number));
        number = 0;
      }
    }
  });
  return out;
}

// Holds a descriptor of each process of the cgroup. One that has ended, or that others took the
// number of, has none.
class Processes {
 public:
  explicit Processes(int directory) {
    for (const pid_t pid : processes_of(directory)) {
      File process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
      if (process.get() >= 0) opened_.emplace(pid, std::move(process));
    }
    const std::vector<pid_t> again = processes_of(directory);
    const std::set<pid_t> there(again.begin(), again.end());
    std::erase_if(opened_, [&](const auto& process) { return !there.contains(process.first); });
  }

  [[nodiscard]] int operator[](pid_t pid) const {
    const auto found = opened_.find(pid);
    return found == opened_.end() ? -1 : found->second.get();
  }

 private:
  std::map<pid_t, File> opened_;
};

long advise(int process, std::uint64_t start, std::uint64_t length, int advice) {
  iovec range{};
  range.iov_base = reinterpret_cast<void*>(start);  // NOLINT: an address of the other process
  range.iov_len = length;
  return syscall(SYS_process_madvise, process, &range, 1UL, advice, 0U);
}

std::string slow_swap(std::uint64_t rate, std::uint64_t least) {
  char text[160];
  std::snprintf(text, sizeof text,
                "swap takes %.1f MB/s, and [memory] least_rate asks for %.1f MB/s",
                static_cast<double>(rate) / 1e6, static_cast<double>(least) / 1e6);
  return text;
}

// Finds out whether the swap is fast enough.
class RateCheck {
 public:
  explicit RateCheck(std::uint64_t least) : least_(least) {}

  [[nodiscard]] std::string check(double written) const {
    const double passed = static_cast<double>(now_ns() - began_) / 1e9;
    if (written < kJudgedBytes && passed < kJudgedSeconds) return {};
    const auto rate = static_cast<std::uint64_t>(written / (passed + 1e-3));
    return rate < least_ ? slow_swap(rate, least_) : std::string();
  }

 private:
  std::uint64_t least_;
  std::uint64_t began_ = now_ns();
};

// Regions that were used most go out last; of these, small ones, which are stacks and the like.
double heat_of(const Region& region) {
  return region.rss == 0 ? 0
                         : static_cast<double>(region.referenced) / static_cast<double>(region.rss);
}

}  // namespace

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t memory_info(const char* name) {
  const File file(open("/proc/meminfo", O_RDONLY | O_CLOEXEC));
  std::string text;
  read_file(file.get(), [&](std::string_view more) { text += more; });
  const auto at = text.find(std::string("\n") + name);
  if (at == std::string::npos) return 0;
  const auto digits = text.find_first_of("0123456789", at);
  std::uint64_t kilobytes = 0;
  if (digits != std::string::npos) {
    std::from_chars(text.data() + digits, text.data() + text.size(), kilobytes);
  }
  return kilobytes * 1'024;
}

void Paging::look_at(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/smaps";
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  RegionReader reader;
  if (file.get() < 0) return;
  read_file(file.get(), [&](std::string_view text) { reader.feed(text); });
  for (const Region& region : reader.finish()) {
    measure_.pss += region.pss;
    measure_.swap += region.swap;
    if (region.may_leave()) measure_.may_leave += std::min(region.anonymous, region.rss);
    if (region.may_leave() || region.swap > 0) pieces_.push_back({pid, region});
  }
}

bool Paging::look() {
  measure_ = {};
  pieces_.clear();
  for (const pid_t pid : processes_of(place_.directory)) look_at(pid);
  return measure_.pss + measure_.swap > 0;
}

std::string Paging::reclaim(std::uint64_t most, const GoesOn& goes_on) {
  for (; done() + kPiece <= most && goes_on(); done_ += static_cast<double>(kPiece)) {
    const std::string bytes = std::to_string(kPiece);
    if (write(place_.reclaim, bytes.data(), bytes.size()) >= 0) continue;
    if (errno == EAGAIN) return {};  // it has reclaimed less: there is no more
    return std::string("cannot reclaim its memory: ") + std::strerror(errno);
  }
  return {};
}

std::string Paging::write_out(std::uint64_t most, std::uint64_t least_rate, const GoesOn& goes_on) {
  const RateCheck rate(least_rate);
  std::sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) {
    const double of_a = heat_of(a.region);
    const double of_b = heat_of(b.region);
    return of_a != of_b ? of_a < of_b : a.region.rss > b.region.rss;
  });
  order_.clear();
  for (const Piece& piece : pieces_) {
    order_.emplace(std::pair(piece.pid, piece.region.start), order_.size());
  }
  done_ = 0;
  is_reading_ = false;
  if (place_.reclaim >= 0) return reclaim(std::min(most, measure_.may_leave), goes_on);
  const Processes processes(place_.directory);
  for (const Piece& piece : pieces_) {
    const Region& region = piece.region;
    const int process = processes[piece.pid];
    if (!region.may_leave() || process < 0) continue;
    const double density =
        static_cast<double>(region.anonymous) / static_cast<double>(region.end - region.start);
    for (std::uint64_t at = region.start; at < region.end; at += kPiece) {
      const std::uint64_t length = std::min(kPiece, region.end - at);
      const double more = density * static_cast<double>(length);
      const bool has_room =
          done_ + more <= static_cast<double>(most) && memory_info("SwapFree:") > kSwapReserve;
      if (!has_room || !goes_on()) return {};
      const long done = advise(process, at, length, MADV_PAGEOUT);
      if (done < 0 && (errno == EPERM || errno == ENOSYS || errno == EACCES)) {
        return std::string("cannot write its memory to swap: ") + std::strerror(errno);
      }
      if (done < 0) break;  // the region or the process is gone
      done_ += more;
      if (std::string slow = rate.check(done_); !slow.empty()) return slow;
    }
  }
  return {};
}

void Paging::order_for_reading() {
  look();
  std::erase_if(pieces_, [](const Piece& piece) { return piece.region.swap == 0; });
  const auto rank_of = [this](const Piece& piece) {
    const auto found = order_.find({piece.pid, piece.region.start});
    return found == order_.end() ? 0 : found->second;
  };
  std::stable_sort(pieces_.begin(), pieces_.end(),
                   [&](const Piece& a, const Piece& b) { return rank_of(a) > rank_of(b); });
  is_reading_ = true;
  done_ = 0;
  next_ = 0;
  next_at_ = 0;
}

void Paging::read_back(std::uint64_t most, const GoesOn& goes_on) {
  if (!is_reading_) order_for_reading();
  const Processes processes(place_.directory);
  for (; next_ < pieces_.size(); ++next_, next_at_ = 0) {
    const Region& region = pieces_[next_].region;
    const int process = processes[pieces_[next_].pid];
    const double density =
        static_cast<double>(region.swap) / static_cast<double>(region.end - region.start);
    if (next_at_ == 0) next_at_ = region.start;
    while (process >= 0 && next_at_ < region.end) {
      const std::uint64_t length = std::min(kPiece, region.end - next_at_);
      const double more = density * static_cast<double>(length);
      if (done_ + more > static_cast<double>(most) || !goes_on()) return;
      if (advise(process, next_at_, length, MADV_WILLNEED) < 0) break;
      next_at_ += length;
      done_ += more;
    }
  }
}

void Paging::read_all_back(const GoesOn& goes_on) {
  order_for_reading();
  read_back(UINT64_MAX, goes_on);
}

}  // namespace score::park
