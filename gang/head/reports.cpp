// This file is tested by cluster_test.cpp.
#include "gang/head/reports.hpp"

namespace score::gang {

namespace {

std::optional<AttemptId> attempt_of(const base::NodeToHead& message) {
  return std::visit(
      [](const auto& m) -> std::optional<AttemptId> {
        if constexpr (requires { m.attempt; }) {
          return m.attempt;
        } else {
          return std::nullopt;
        }
      },
      message);
}

bool means_gone(const base::NodeToHead& message) {
  return std::holds_alternative<base::Exited>(message) ||
         std::holds_alternative<base::Refused>(message);
}

}  // namespace

std::optional<NodeIndex> Reports::heard(NodeId id, Step& step) {
  const auto node = p_.tables.nodes.find(id);
  if (!node || !p_.tables.nodes[*node].connected) {
    ++p_.tables.counters.stale_reports;
    return std::nullopt;
  }
  if (p_.tables.nodes.heard(*node, step)) p_.placer.capacity_grew();
  return node;
}

void Reports::heartbeat(NodeId id, Step& step) {
  if (const auto node = p_.tables.nodes.find(id)) p_.tables.nodes.hears(*node);
  heard(id, step);
}

void Reports::relayed_heartbeats(const RelayedHeartbeats& relayed_heartbeats, Step& step) {
  NodeTable& nodes = p_.tables.nodes;
  for (const NodeId id : relayed_heartbeats.hearing) {
    if (const auto node = nodes.find(id)) nodes.hears(*node);
  }
  for (const NodeId id : relayed_heartbeats.deaf) {
    const auto node = nodes.find(id);
    if (node && nodes[*node].connected) nodes.deaf(*node, step);
  }
  for (const NodeId id : relayed_heartbeats.alive) {
    const auto node = nodes.find(id);
    if (node && nodes[*node].connected && nodes.vouched(*node, step)) p_.placer.capacity_grew();
  }
  for (const NodeId id : relayed_heartbeats.silent) {
    const auto node = nodes.find(id);
    if (node && nodes[*node].connected)
      nodes.denied(*node, step.now - relayed_heartbeats.silent_for);
  }
}

void Reports::received(NodeId id, const base::NodeToHead& message, Step& step) {
  const auto node = heard(id, step);
  if (!node) return;
  const auto attempt = attempt_of(message);
  if (!attempt) {
    if (std::holds_alternative<base::TimetableApplied>(message)) ++p_.tables.counters.late_epochs;
    if (const auto* memory = std::get_if<base::MemoryReport>(&message))
      p_.parking.memory_reported(*node, *memory, step);
    return;
  }
  Job* job = p_.tables.jobs.find(base::job_of(*attempt));
  const auto member = job != nullptr ? job->member_on(*node) : std::nullopt;
  if (member && job->attempt() == *attempt && job->members->has_tasks(*member)) {
    about_job(*job, *member, message, step);
  } else {
    p_.reconciler.stranger(*node, *attempt, means_gone(message), step);
  }
}

void Reports::about_job(Job& job, std::size_t member, const base::NodeToHead& message, Step& step) {
  if (std::holds_alternative<base::Prepared>(message)) {
    p_.launching.prepared(job, member, step);
  } else if (const auto* refused = std::get_if<base::Refused>(&message)) {
    p_.ending.refused(job, member, *refused, step);
  } else if (const auto* exited = std::get_if<base::Exited>(&message)) {
    p_.ending.exited(job, member, *exited, step);
  } else if ((*job.members)[member] == Member::Started) {
    about_tasks(job, member, message, step);
  } else if (!std::holds_alternative<base::Started>(message)) {  // there are no tasks yet
    ++p_.tables.counters.stale_reports;
  }
}

void Reports::about_tasks(Job& job, std::size_t member, const base::NodeToHead& message,
                          Step& step) {
  if (std::holds_alternative<base::Started>(message)) {
    p_.launching.began(job, member, step);
    p_.parking.begun();
  } else if (const auto* ended = std::get_if<base::TaskEnded>(&message)) {
    auto exit = ended->exit;
    exit.was_ending = true;  // otherwise it would have come with Exited
    p_.ending.task_ended(job, member, exit, step);
  } else if (const auto* changed = std::get_if<base::ActivityChanged>(&message)) {
    p_.idle.report(job, member, changed->activity, step);
  } else if (const auto* reached = std::get_if<base::MeetingReached>(&message)) {
    if (!p_.meetings.came(job, member, *reached, step)) ++p_.tables.counters.stale_reports;
  } else if (const auto* parked = std::get_if<base::ParkReport>(&message)) {
    p_.parking.reported(job, member, *parked, step);
  } else if (const auto* aborted = std::get_if<base::AbortRequested>(&message)) {
    p_.ending.aborted(job, member, *aborted, step);
  }
}

}  // namespace score::gang
