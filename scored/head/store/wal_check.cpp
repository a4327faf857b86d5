// The format is described at https://www.sqlite.org/fileformat2.html#the_write_ahead_log
#include "scored/head/store/wal_check.hpp"

#include "base/os/fd.hpp"

#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <span>
#include <unistd.h>
#include <utility>
#include <vector>

namespace score::head {
namespace {

constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kFrameHeaderBytes = 24;
constexpr std::uint32_t kMagic = 0x377f0682;  // + 1: checksums of big-endian words
constexpr std::uint32_t kMaxPage = 65'536;

std::uint32_t big_endian(const std::byte* at) {
  std::uint32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return std::endian::native == std::endian::big ? value : __builtin_bswap32(value);
}

// The checksum is cumulative, over pairs of words.
struct Checksum {
  bool is_big = false;
  std::uint32_t first = 0;
  std::uint32_t second = 0;

  void add(std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
      first += word(&bytes[i]) + second;
      second += word(&bytes[i + 4]) + first;
    }
  }

  [[nodiscard]] std::uint32_t word(const std::byte* at) const {
    const std::uint32_t value = big_endian(at);
    return is_big ? value : __builtin_bswap32(value);
  }

  [[nodiscard]] bool is_at(const std::byte* at) const {
    return big_endian(at) == first && big_endian(at + 4) == second;
  }
};

// Reads as much as there is.
Result<std::size_t> read_some(int fd, std::span<std::byte> into) {
  std::size_t got = 0;
  while (got < into.size()) {
    const ssize_t count = ::read(fd, &into[got], into.size() - got);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(errno_code(errno), "cannot read");
    if (count == 0) break;
    got += static_cast<std::size_t>(count);
  }
  return got;
}

// The last good frame may be followed by the rest of one commit that failed or was torn; its frames
// continue each other's checksums. Anything longer was a part of the log.
Status check_frames(int fd, std::span<const std::byte> salts, std::size_t page, Checksum sum) {
  std::vector<std::byte> frame(kFrameHeaderBytes + page);
  bool is_broken = false;
  int commits_behind = 0;
  for (;;) {
    const auto got = read_some(fd, frame);
    if (!got) return got.error();
    if (*got < frame.size()) return {};
    if (std::memcmp(&frame[8], salts.data(), salts.size()) != 0) return {};  // of an earlier log
    sum.add(std::span(frame).first(8));
    sum.add(std::span(frame).subspan(kFrameHeaderBytes));
    if (!sum.is_at(&frame[16])) {
      if (std::exchange(is_broken, true)) return {};
      sum.first = big_endian(&frame[16]);
      sum.second = big_endian(&frame[20]);
    }
    const bool is_commit = big_endian(&frame[4]) != 0;
    if (is_broken && is_commit && ++commits_behind > 1) {
      return fail(Errc::Malformed, "damaged: commits follow a broken frame");
    }
  }
}

}  // namespace

Status check_wal(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd)
    return errno == ENOENT ? Status() : Status(fail(errno_code(errno), "cannot open {}", path));
  std::array<std::byte, kHeaderBytes> header{};
  const auto got = read_some(fd.get(), header);
  if (!got) return got.error().with_context("{}", path);
  if (*got < header.size()) return {};
  const std::uint32_t magic = big_endian(header.data());
  const std::uint32_t page = big_endian(&header[8]);
  Checksum sum{(magic & 1U) != 0};
  sum.add(std::span(header).first(24));
  const bool is_sane = (magic & ~1U) == kMagic && sum.is_at(&header[24]) && page <= kMaxPage &&
                       page >= 512 && std::has_single_bit(page);
  if (!is_sane) return fail(Errc::Malformed, "{}: damaged header", path);
  if (auto sound = check_frames(fd.get(), std::span(header).subspan(16, 8), page, sum); !sound) {
    return sound.error().with_context("{}", path);
  }
  return {};
}

}  // namespace score::head
