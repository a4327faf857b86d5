// Computes where the bytes and the names of a volume lie. This is pure arithmetic: every client and
// every server computes the same.
//
// A file is cut into chunks of `stripe` bytes. Chunk k lies on server (first + k) mod servers. A
// server stores its chunks of a file one after the other in one data file, so on a volume with one
// server a data file is the file. (PIOUS calls this the declustering of a file into segments.)
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace score::pario {

// Offsets and sizes have the range of off_t: the end of an extent is at most this.
inline constexpr std::uint64_t kMaxOffset = std::numeric_limits<std::int64_t>::max();
inline constexpr std::uint32_t kMaxServers = 4'096;
inline constexpr std::uint64_t kMinStripe = 4'096;
inline constexpr std::uint64_t kMaxStripe = std::uint64_t{1} << 30;

// In the numbers of files and directories, the low 12 bits are the server that keeps the attributes
// (the home), and the other bits are a counter. 0 is not a file.
using FileId = std::uint64_t;
inline constexpr unsigned kHomeBits = 12;
inline constexpr FileId kRootId = FileId{1} << kHomeBits;  // on server 0

constexpr std::uint32_t home_of(FileId id) {
  return static_cast<std::uint32_t>(id & (kMaxServers - 1));
}

// A file with this bit in its number has the layout `local`: all its data is on its home. What is
// made in a directory with this bit has it too. So the layout needs no request, and never changes.
inline constexpr FileId kLocalBit = FileId{1} << 62;

constexpr bool is_local(FileId id) {
  return (id & kLocalBit) != 0;
}

// Returns the counter of a number.
constexpr std::uint64_t count_of(FileId id) {
  return (id & ~kLocalBit) >> kHomeBits;
}

constexpr FileId make_id(std::uint64_t count, std::uint32_t home) {
  return count << kHomeBits | home;
}

// Returns the server that keeps the entry `name` of the directory `parent`. This is SipHash with a
// fixed key, so that entries of one directory are spread over all servers.
std::uint32_t entry_server(FileId parent, std::string_view name, std::uint32_t servers);

// Returns the path of a server's part of a file, below its directory of data: "a3/0000000000001a3".
// The last digits of the counter spread the files over kDataFolders folders.
inline constexpr unsigned kDataFolders = 256;
std::string data_path(FileId id);

struct Striping {
  std::uint32_t servers = 1;                      // that have chunks of the file: 1 .. kMaxServers
  std::uint32_t first = 0;                        // server of chunk 0: the file's home
  std::uint64_t stripe = std::uint64_t{1} << 20;  // kMinStripe .. kMaxStripe, a power of two
};

bool is_valid(const Striping& striping);

// Returns the striping of a file on a volume of `servers` servers.
constexpr Striping striping_of(FileId id, std::uint32_t servers, std::uint64_t stripe) {
  return {is_local(id) ? 1 : servers, home_of(id) % servers, stripe};
}

// An extent has the bytes [offset, offset + length).
struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  friend bool operator==(const Extent&, const Extent&) = default;
};

// Returns true if the extent is not empty and ends at kMaxOffset at the latest.
constexpr bool is_valid(const Extent& extent) {
  return extent.length > 0 && extent.offset <= kMaxOffset &&
         extent.length <= kMaxOffset - extent.offset;
}

// A piece is the part of a transfer that one server does.
struct Piece {
  std::uint32_t server = 0;
  std::uint64_t offset = 0;  // in the server's data file
  std::uint64_t length = 0;
  std::uint64_t buffer = 0;  // offset in the caller's memory

  friend bool operator==(const Piece&, const Piece&) = default;
};

// Appends the pieces of a valid extent, in the order of the file. Neighbours on one server that
// also follow each other in its data file are joined (with one server: always).
void split(const Striping& striping, const Extent& extent, std::uint64_t buffer,
           std::vector<Piece>& pieces);

// Returns the bytes of the data file of `server` if the file has `size` bytes.
std::uint64_t local_size(const Striping& striping, std::uint32_t server, std::uint64_t size);

// Returns the end in the file of the last of `local` bytes on `server`; 0 if there are none. The
// largest value of all servers is the size of the file. Saturates at kMaxOffset.
std::uint64_t file_end(const Striping& striping, std::uint32_t server, std::uint64_t local);

// A view shows a process parts of a file as one linear sequence: blocks of `block` bytes, `stride`
// bytes apart, from `start` on. block == 0: everything from `start` on.
struct View {
  std::uint64_t start = 0;
  std::uint64_t block = 0;
  std::uint64_t stride = 0;  // >= block
};

bool is_valid(const View& view);
// Returns the `segment`-th of `segments` parts of a file, chunk by chunk (the segmented view of
// PIOUS).
View segmented_view(std::uint64_t stripe, std::uint32_t segment, std::uint32_t segments);

// Appends the extents of the file that the view shows at [offset, offset + length), in order.
// Returns false and appends nothing if an end lies beyond kMaxOffset, or there are more than `most`
// extents.
bool map(const View& view, const Extent& shown, std::size_t most, std::vector<Extent>& extents);

}  // namespace score::pario
