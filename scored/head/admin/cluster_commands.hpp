#pragma once
// The commands about the whole cluster: settings, nodes, reservations and the configuration file.

#include "scored/head/admin/command_steps.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/jobs/fair_shares.hpp"
#include "scored/head/nodes/node_changes.hpp"
#include "scored/head/reservations/reservation_manager.hpp"
#include "scored/head/streams/job_networks.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace score::head {

class ClusterCommands {
 public:
  struct Parts {         // all must outlive the object
    HeadConfig& config;  // the one in the context; a reload changes it
    JobNetworks& networks;
    FairShares& shares;
    ReservationManager& reservations;
    std::function<Result<HeadConfig>()> read_configuration;  // reads and checks the file
  };

  ClusterCommands(HeadContext& head, Parts parts) : head_(head), parts_(std::move(parts)) {}

  // Each check() returns what must be on disk before the command is carried out, and changes
  // nothing.
  Result<Changes> check(const Peer& peer, const ChangeSetting& command);
  Result<Changes> check(const Peer& peer, const ChangeNodes& command);
  Result<Changes> check(const Peer& peer, const DrainNodes& command);
  Result<Changes> check(const Peer& peer, const ReserveNodes& command);
  Result<Changes> check(const Peer& peer, const RemoveReservation& command);
  Result<Changes> check(const Peer& peer, const ReloadConfiguration& command);

  // Each prepare() changes the cluster; the returned effect sends what follows from the change. It
  // fails if something has changed since check().
  Result<Effect> prepare(const Peer& peer, const ChangeSetting& command);
  Result<Effect> prepare(const Peer& peer, const ChangeNodes& command);
  Result<Effect> prepare(const Peer& peer, const DrainNodes& command);
  Result<Effect> prepare(const Peer& peer, const ReserveNodes& command);
  Result<Effect> prepare(const Peer& peer, const RemoveReservation& command);
  Result<Effect> prepare(const Peer& peer, const ReloadConfiguration& command);

  // Adds a node of the configuration to the cluster. Errors: the cluster's.
  [[nodiscard]] Status add_node(const std::string& name);
  // Gives the cluster the partitions, switches and licenses of the configuration.
  void apply_rules();

 private:
  // Checks the command, and returns the changes with it.
  [[nodiscard]] Result<NodeChanges> changes_with(const ChangeNodes& command) const;
  void add(const std::string& node);
  void remove(const std::string& node);
  [[nodiscard]] Result<std::vector<NodeId>> nodes_of(const DrainNodes& command) const;
  Result<Changes> check_file(const HeadConfig& wanted);
  void take_file(HeadConfig wanted);
  // Applies a change of the configuration file that has been checked and stored.
  void change(const ChangeSetting& command);

  [[nodiscard]] TimePoint now() const { return head_.runner.now(); }

  HeadContext& head_;
  Parts parts_;
  std::optional<HeadConfig> wanted_;  // from the reload that is being stored
};

}  // namespace score::head
