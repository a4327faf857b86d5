#pragma once
// Which generations of the nodes' keys are accepted. A rotation accepts the old key until the node
// uses the new one; a revocation refuses the old one at once. Thread: the loop's.

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
    std::optional<std::uint64_t> next;         // accepted too, and replaces it when it is used
  };

  // The file is made at the first change: a line for each node whose key is not its first one.
  explicit NodeKeys(std::string file) : file_(std::move(file)) {}

  // Called with the new text of the file at each change, when it is on disk.
  void on_stored(std::function<void(const std::string& text)> then) {
    on_stored_ = std::move(then);
  }

  // Errors: Malformed, errno codes. A file that is not there is none.
  [[nodiscard]] Status load();

  [[nodiscard]] const State& state(std::string_view node) const;
  [[nodiscard]] bool accepts(const proto::NodeIdentity& identity) const;
  // The generation of the key that a setup token fetches.
  [[nodiscard]] std::uint64_t wanted(std::string_view node) const;

  // ---- changes are on disk when these return; an error leaves everything as it was
  // From now on a token fetches a new key of these nodes, and both are accepted. A rotation that is
  // not complete goes on: if one of `nodes` waits for its new key, only such nodes are given back.
  [[nodiscard]] Result<std::vector<std::string>> rotate(const std::vector<std::string>& nodes,
                                                        std::uint64_t now_s);
  // From now on only a new key is accepted, also if one was given before this.
  [[nodiscard]] Status revoke(const std::vector<std::string>& nodes, std::uint64_t now_s);
  // The node has proven this key. True: it is the new one, and the old one is refused from now on.
  [[nodiscard]] Result<bool> used(const proto::NodeIdentity& identity);

 private:
  using States = std::map<std::string, State, std::less<>>;

  [[nodiscard]] Status store(States states);

  std::string file_;
  std::function<void(const std::string&)> on_stored_;
  States states_;
  std::uint64_t newest_ = 0;  // of all generations that were ever given
};

}  // namespace score::head
