// Defines the messages between the supervisor and the host agent of a host, over the link's
// standard input and output. Each line from the host begins with kMark, because shells may print
// lines of their own.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace score::scout {

inline constexpr std::string_view kMark = "scored-start: ";

// Each side accepts lines of at most this length.
inline constexpr std::size_t kMaxLineBytes = 4096;

// Holds the orders for a host_agent: lines "key value", then "go". Afterwards "beat" comes once per
// second.
struct Orders {
  std::string node;       // name of the node in the cluster
  uid_t uid = 0;          // uid of the user at the head
  std::string head_host;  // the head's host; empty: the origin of the ssh connection
  std::string own_host;   // used if that is unknown or a loopback address; may be empty
  std::uint16_t head_port = 0;
  std::string key;          // of the node: 64 hexadecimal digits
  std::uint32_t cores = 0;  // 0: all
  std::string memory;       // empty: all
  std::string hooks;        // lines with the table [hooks]; empty: none
  bool use_cgroups = true;  // false: the batch system owns the cgroups

  friend bool operator==(const Orders&, const Orders&) = default;
};

// Returns true for a numeric address, IPv4 or IPv6 without brackets, or a name.
[[nodiscard]] bool is_head_host(std::string_view text);

[[nodiscard]] std::string encode(const Orders& orders);

// Reads lines until "go".
class OrdersReader {
 public:
  // Returns true once the orders are complete. Errors: Malformed, which quotes the line.
  Result<bool> take_line(std::string_view line);

  [[nodiscard]] const Orders& orders() const { return orders_; }

 private:
  Orders orders_;
};

// Holds a message from a host.
struct Report {
  enum class Kind {
    Push,    // the script needs the programs; text: the installed version, or nothing
    Absent,  // as Push, but pushing is disabled
    Hello,   // the host agent runs and waits for its orders; text: the version
    Ready,   // the daemons run; text: "cgroup" or "signal"
    Note,    // a message for the user
    Error,   // it ends because of this error
    Gone,    // it has removed everything
  };
  Kind kind;
  std::string text;
};

[[nodiscard]] std::string encode(const Report& report);
// Returns nothing for lines without the mark and for unknown kinds.
[[nodiscard]] std::optional<Report> parse_report(std::string_view line);

}  // namespace score::scout
