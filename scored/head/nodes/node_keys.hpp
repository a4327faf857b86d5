#pragma once
// NodeKeys knows which generations of the nodes' keys are accepted. After a rotation the old key is
// accepted until the node uses the new one; after a revocation it is refused at once. It is a
// value: NodeKeyManager changes a copy, which is in force when the log has its text. Thread: the
// loop's.

#include "base/result.hpp"
#include "proto/transport/key_ring.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace score::head {

class NodeKeys {
 public:
  struct State {
    std::optional<std::uint64_t> current = 0;  // accepted; none: revoked
    std::optional<std::uint64_t> next;         // accepted too; replaces `current` when it is used
  };

  // The file has one line per node whose key is not its first one.
  explicit NodeKeys(std::string file) : file_(std::move(file)) {}

  // Errors: Malformed, errno codes. A missing file counts as empty.
  [[nodiscard]] Status load();

  [[nodiscard]] const State& state(std::string_view node) const;
  [[nodiscard]] bool accepts(const proto::NodeIdentity& identity) const;
  // Returns the generation of the key that a setup token fetches.
  [[nodiscard]] std::uint64_t wanted(std::string_view node) const;

  // Returns the text of the file.
  [[nodiscard]] std::string text() const;

  // ---- changes
  // From now on a token fetches a new key of these nodes, and both keys are accepted. An incomplete
  // rotation is continued: if one of `nodes` waits for its new key, only such nodes are returned.
  std::vector<std::string> rotate(const std::vector<std::string>& nodes, std::uint64_t now_s);
  // From now on only a new key is accepted, even if a new key had been given out before this.
  void revoke(const std::vector<std::string>& nodes, std::uint64_t now_s);
  // Records that the node has proven this key. Returns true if it is the new key; then the old one
  // is refused from now on.
  bool used(const proto::NodeIdentity& identity);

 private:
  using States = std::map<std::string, State, std::less<>>;

  std::string file_;
  States states_;
  std::uint64_t newest_ = 0;  // the greatest generation that was ever given
};

}  // namespace score::head
