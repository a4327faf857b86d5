#pragma once
// NodeKeys knows which generations of the nodes' keys are accepted. After a rotation the old key is
// accepted until the node uses the new one; after a revocation it is refused at once. Thread: the
// loop's.

#include "base/result.hpp"
#include "proto/transport/key_ring.hpp"

#include <cstdint>
#include <functional>
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

  // The file is created at the first change. It has one line per node whose key is not its first
  // one.
  explicit NodeKeys(std::string file) : file_(std::move(file)) {}

  // The handler is called at each change, when the new text of the file is on disk.
  void on_stored(std::function<void(const std::string& text)> then) {
    on_stored_ = std::move(then);
  }

  // Errors: Malformed, errno codes. A missing file counts as empty.
  [[nodiscard]] Status load();

  [[nodiscard]] const State& state(std::string_view node) const;
  [[nodiscard]] bool accepts(const proto::NodeIdentity& identity) const;
  // Returns the generation of the key that a setup token fetches.
  [[nodiscard]] std::uint64_t wanted(std::string_view node) const;

  // ---- changes are on disk when these return; after an error nothing has changed
  // From now on a token fetches a new key of these nodes, and both keys are accepted. An incomplete
  // rotation is continued: if one of `nodes` waits for its new key, only such nodes are returned.
  [[nodiscard]] Result<std::vector<std::string>> rotate(const std::vector<std::string>& nodes,
                                                        std::uint64_t now_s);
  // From now on only a new key is accepted, even if a new key had been given out before this.
  [[nodiscard]] Status revoke(const std::vector<std::string>& nodes, std::uint64_t now_s);
  // Records that the node has proven this key. Returns true if it is the new key; then the old one
  // is refused from now on.
  [[nodiscard]] Result<bool> used(const proto::NodeIdentity& identity);

 private:
  using States = std::map<std::string, State, std::less<>>;

  [[nodiscard]] Status store(States states);

  std::string file_;
  std::function<void(const std::string&)> on_stored_;
  States states_;
  std::uint64_t newest_ = 0;  // the greatest generation that was ever given
};

}  // namespace score::head
