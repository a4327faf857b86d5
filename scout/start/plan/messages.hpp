// What the supervisor and the keeper of a host say to each other over the link's standard input and
// output. Each line from the host begins with kMark: shells print lines of their own there.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace score::scout {

inline constexpr std::string_view kMark = "scored-start: ";

// Longest line that either side accepts.
inline constexpr std::size_t kMaxLineBytes = 4096;

// What a keeper has to do; lines "key value", then "go". Later come "beat" once per second.
struct Orders {
  std::string node;       // its name in the cluster
  uid_t uid = 0;          // of the user at the head
  std::string head_host;  // the head's host; empty: where the ssh connection came from
  std::string own_host;   // used if that is unknown or a loopback address; may be empty
  std::uint16_t head_port = 0;
  std::string key;          // of the node: 64 hexadecimal digits
  std::uint32_t cores = 0;  // 0: all
  std::string memory;       // empty: all
  bool use_cgroups = true;  // false: the batch system owns the cgroups

  friend bool operator==(const Orders&, const Orders&) = default;
};

// An address in digits, IPv4 or IPv6 without brackets, or a name.
[[nodiscard]] bool is_head_host(std::string_view text);

[[nodiscard]] std::string encode(const Orders& orders);

// Takes lines until "go".
class OrdersReader {
 public:
  // True once the orders are complete. Errors: Malformed naming the line.
  Result<bool> take_line(std::string_view line);

  [[nodiscard]] const Orders& orders() const { return orders_; }

 private:
  Orders orders_;
};

// What a host says.
struct Report {
  enum class Kind {
    Push,    // the script: it needs the programs; text: the version that is installed, or nothing
    Absent,  // the script: as Push, but pushing is not wanted
    Hello,   // the keeper runs and waits for its orders; text: the version
    Ready,   // the daemons run; text: "cgroup" or "signal"
    Note,    // something to tell the user
    Error,   // it ends because of this
    Gone,    // it has removed everything
  };
  Kind kind;
  std::string text;
};

[[nodiscard]] std::string encode(const Report& report);
// Nothing for lines without the mark and for unknown kinds.
[[nodiscard]] std::optional<Report> parse_report(std::string_view line);

}  // namespace score::scout
