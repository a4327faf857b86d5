#pragma once
// NodeChanges holds the nodes that `scadm node add` and `scadm node remove` have added to and taken
// away from those of the configuration file. It is a value. The log has its text, so both of two
// heads know it; each writes it to kNodeChangesFile in its state directory.

#include "base/result.hpp"
#include "scored/head/config/config.hpp"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

class NodeChanges {
 public:
  // Reads the file of a state directory. A missing file counts as empty. Errors: Malformed, errno
  // codes.
  [[nodiscard]] static Result<NodeChanges> load(const std::string& state_dir);
  // Errors: Malformed.
  [[nodiscard]] static Result<NodeChanges> parse(std::string_view text);

  // Replaces the file. The log has the text, so an error is only logged.
  void write(const std::string& state_dir) const;

  // Returns the text of the file: a line "+node05" or "-node05" per node.
  [[nodiscard]] std::string text() const;

  void add(const std::string& node);
  void remove(const std::string& node);

  // Returns the nodes of the cluster: those of the file in their order, then the added ones.
  [[nodiscard]] std::vector<std::string> applied_to(
      const std::vector<std::string>& configured) const;

  friend bool operator==(const NodeChanges&, const NodeChanges&) = default;

 private:
  std::set<std::string> added_, removed_;  // disjoint
};

// Applies the changes in the state directory to the nodes of the file.
[[nodiscard]] Status apply_node_changes(HeadConfig& config);

}  // namespace score::head
