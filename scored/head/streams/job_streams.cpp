#include "scored/head/streams/job_streams.hpp"

#include "base/model/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace score::head {
namespace {

constexpr std::size_t kMaxWatchers = 64;  // per job
// Output of a user's open jobs that is kept for clients that come late, and for watchers.
constexpr std::size_t kKeptOfUser = 8 * limits::kMiB;
constexpr std::size_t kLeastKept = 1 * limits::kKiB;

wire::Output output_of(JobId job, const OutputChunk& chunk, std::size_t skip) {
  wire::Output message;
  message.set_job(job.value());
  message.set_rank(chunk.rank.value());
  message.set_stream(chunk.is_error ? wire::STDERR : wire::STDOUT);
  message.set_data(chunk.data.substr(skip));
  if (chunk.attempt != AttemptId(0)) {
    message.set_attempt(chunk.attempt.value());
    message.set_node_index(chunk.node_index);
    message.set_offset(chunk.offset + skip);
  }
  return message;
}

}  // namespace

JobStreams::Stream* JobStreams::find(JobId job) {
  const auto found = streams_.find(job);
  return found == streams_.end() ? nullptr : &found->second;
}

const JobStreams::Stream* JobStreams::find(JobId job) const {
  const auto found = streams_.find(job);
  return found == streams_.end() ? nullptr : &found->second;
}

// ---- the life of a job -------------------------------------------------------------------------

void JobStreams::open(const Opening& opening) {
  if (find(opening.job) == nullptr) quiet_.try_emplace(opening.job, opening);
}

JobStreams::Stream* JobStreams::wake(JobId job) {
  const auto quiet = quiet_.find(job);
  if (quiet == quiet_.end()) return find(job);
  const Opening opening = quiet->second;
  quiet_.erase(quiet);
  room_.open(opening.user);
  Stream& stream = streams_.try_emplace(job, opening).first->second;
  stream.waiting_input.charge_to(input_budgets_.of(opening.user));
  return &stream;
}

void JobStreams::place(JobId job, AttemptId attempt, std::vector<NodeId> nodes,
                       std::vector<std::uint32_t> tasks_on_node) {
  Stream* stream = wake(job);
  if (stream == nullptr) return;
  if (stream->attempt != attempt) {
    close_exchanges(stream->attempt);
    forget_refusals(job, *stream);
    stream->repeats.assign(nodes.size(), RepeatFilter(stream->recovered));
    stream->recovered = false;
  }
  stream->attempt = attempt;
  stream->nodes = std::move(nodes);
  stream->tasks_on_node = std::move(tasks_on_node);
  stream->index.clear();
  for (std::uint32_t i = 0; i < stream->nodes.size(); ++i) stream->index[stream->nodes[i]] = i;
  fences_.open(attempt, stream->user, stream->nodes);
}

void JobStreams::close_exchanges(AttemptId attempt) {
  fences_.close(attempt);
  relays_.close(attempt);
}

void JobStreams::start_input(JobId job) {
  Stream* stream = wake(job);
  if (stream == nullptr) return;
  stream->input.start(input_nodes(*stream));
  give_input_room(job, *stream, stream->input.take_dropped());
  forward_input(job, *stream);
}

std::vector<std::uint32_t> JobStreams::input_nodes(const Stream& stream) {
  const auto nodes = nodes_of_ranks(stream.tasks_on_node, stream.distribution);
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; stream.stdin_rank == -1 && i < stream.tasks_on_node.size(); ++i) {
    if (stream.tasks_on_node[i] > 0) found.push_back(i);
  }
  if (stream.stdin_rank >= 0 && stream.stdin_rank < static_cast<std::int64_t>(nodes.size())) {
    found.push_back(nodes[static_cast<std::size_t>(stream.stdin_rank)]);
  }
  return found;
}

void JobStreams::release(JobId job) {
  if (Stream* stream = wake(job)) perform(job, *stream, stream->output.release());
}

void JobStreams::requeue(JobId job) {
  Stream* stream = wake(job);
  if (stream == nullptr) return;
  stream->output.restart();
  count_room(job, *stream);
  stream->input.restart();
  give_input_room(job, *stream, stream->input.take_dropped());
}

void JobStreams::abandon(JobId job) {
  if (Stream* stream = wake(job)) perform(job, *stream, stream->output.abandon());
}

void JobStreams::news(JobId job, const wire::JobStatus& status) {
  Stream* stream = find(job);
  if (stream == nullptr || stream->watches.empty()) return;
  wire::JobNews news;
  *news.mutable_status() = status;
  for (auto& [client, watch] : stream->watches) {
    news.set_tag(watch.tag);
    proto::send(*watch.connection, news);
  }
}

void JobStreams::finish(JobId job, wire::JobStatus status) {
  Stream* stream = wake(job);
  if (stream == nullptr || stream->ended) return;
  close_exchanges(stream->attempt);
  stream->ended = std::move(status);
  perform(job, *stream, stream->output.finish());
}

void JobStreams::close(JobId job, UserId user) {
  quiet_.erase(job);
  const auto found = streams_.find(job);
  if (found == streams_.end()) return;
  close_exchanges(found->second.attempt);
  const JobOutput& output = found->second.output;
  if (found->second.ended && output.is_unread()) kept_.add(job, user, output.kept());
  for (const auto& [client, watch] : found->second.watches) std::erase(jobs_of_[client], job);
  const UserId owner = found->second.user;
  room_.change(owner, found->second.waiting, 0);
  room_.close(owner, job);
  streams_.erase(found);
  ask_to_repeat(room_.take_due(owner));
}

// A user with many open jobs keeps less of each.
std::size_t JobStreams::most_kept(UserId user) const {
  return std::max(kLeastKept, kKeptOfUser / std::max<std::size_t>(room_.jobs(user), 1));
}

void JobStreams::send_kept(JobId job, proto::Connection& connection) const {
  for (const auto& chunk : kept_.of(job)) proto::send(connection, output_of(job, *chunk, 0));
}

bool JobStreams::has_front_end(JobId job) const {
  const Stream* stream = find(job);
  return stream != nullptr && stream->output.has_front_end();
}

bool JobStreams::has_clients(JobId job) const {
  const Stream* stream = find(job);
  return stream != nullptr && !stream->watches.empty();
}

bool JobStreams::is_delivered(JobId job) const {
  const Stream* stream = find(job);
  if (stream == nullptr) return !quiet_.contains(job);
  return stream->output.is_delivered();
}

bool JobStreams::is_on(NodeId node, AttemptId attempt) const {
  const Stream* stream = find(job_of(attempt));
  return stream != nullptr && stream->attempt == attempt && stream->index.contains(node);
}

bool JobStreams::is_current(AttemptId attempt) const {
  const Stream* stream = find(job_of(attempt));
  return stream != nullptr && stream->attempt == attempt && !stream->ended;
}

// ---- clients -----------------------------------------------------------------------------------

Status JobStreams::attach(JobId job, Watch watch) {
  Stream* stream = wake(job);
  if (stream == nullptr) return fail(Errc::NotFound, "job {} has no output to attach to", job);
  if (stream->watches.contains(watch.client)) {
    return fail(Errc::WrongState, "attached to job {} already", job);
  }
  if (stream->watches.size() >= kMaxWatchers) {
    return fail(Errc::Busy, "job {} has {} watchers already", job, kMaxWatchers);
  }
  if (watch.front_end && stream->output.has_front_end()) {
    return fail(Errc::Busy, "job {} has a front end already", job);
  }
  const bool has_input = std::any_of(stream->watches.begin(), stream->watches.end(),
                                     [](const auto& other) { return other.second.input; });
  if (watch.input && has_input) {
    return fail(Errc::Busy, "job {} gets its input from another client", job);
  }
  jobs_of_[watch.client].push_back(job);
  stream->watches[watch.client] = watch;
  perform(
      job, *stream,
      stream->output.attach(watch.client, watch.front_end, watch.window_bytes, watch.have_bytes));
  return {};
}

bool JobStreams::detach(JobId job, ClientId client) {
  Stream* stream = find(job);
  if (stream == nullptr) return false;
  const auto found = stream->watches.find(client);
  if (found == stream->watches.end()) return false;
  const bool was_front_end = found->second.front_end;
  const bool gave_input = found->second.input;
  stream->watches.erase(found);
  std::erase(jobs_of_[client], job);
  perform(job, *stream, stream->output.leave(client));
  if (was_front_end && gave_input && stream->input.accept({}, true)) forward_input(job, *stream);
  return was_front_end;
}

void JobStreams::client_gone(ClientId client) {
  const auto found = jobs_of_.find(client);
  if (found == jobs_of_.end()) return;
  for (const JobId job : std::vector<JobId>(found->second)) {
    Stream* stream = find(job);
    if (stream == nullptr) continue;
    const bool was_front_end = stream->watches[client].front_end;
    stream->watches.erase(client);
    perform(job, *stream, stream->output.leave(client));
    if (was_front_end) listener_->front_end_lost(job);
  }
  jobs_of_.erase(client);
}

void JobStreams::taken(JobId job, ClientId client, std::uint64_t bytes) {
  if (Stream* stream = find(job)) perform(job, *stream, stream->output.taken(client, bytes));
}

Status JobStreams::input(JobId job, ClientId client, std::string data, bool eof) {
  Stream* stream = find(job);
  const auto watch =
      stream == nullptr ? std::map<ClientId, Watch>::iterator() : stream->watches.find(client);
  if (stream == nullptr || watch == stream->watches.end() || !watch->second.input) {
    return fail(Errc::NotFound, "job {} gets no input from here", job);
  }
  if (!stream->input.has_started() && !stream->waiting_input.may_add(data.size())) {
    return fail(Errc::TooLarge, "too much input waits for jobs of this user that have not started");
  }
  if (auto accepted = stream->input.accept(std::move(data), eof); !accepted) return accepted;
  stream->waiting_input.set(stream->input.waiting_bytes());
  give_input_room(job, *stream, stream->input.take_dropped());
  forward_input(job, *stream);
  return {};
}

void JobStreams::forward_input(JobId, Stream& stream) {
  if (!stream.input.has_started()) return;
  for (JobInput::Piece& piece : stream.input.take_pieces()) {
    wire::TaskInput message;
    message.set_attempt(stream.attempt.value());
    message.set_data(std::move(piece.data));
    message.set_eof(piece.eof);
    const auto frame =
        proto::encode_frame(proto::FrameType::TaskInput, message.SerializeAsString());
    for (const std::uint32_t index : stream.input.targets()) {
      if (index < stream.nodes.size()) links_.send_shared(stream.nodes[index], frame);
    }
  }
  stream.waiting_input.set(0);
}

void JobStreams::give_input_room(JobId job, Stream& stream, std::uint64_t bytes) {
  if (bytes == 0) return;
  wire::InputTaken message;
  message.set_job(job.value());
  message.set_bytes(bytes);
  for (auto& [client, watch] : stream.watches) {
    if (watch.input) proto::send(*watch.connection, message);
  }
}

void JobStreams::resize(JobId job, ClientId client, std::uint32_t rows, std::uint32_t columns) {
  Stream* stream = find(job);
  if (stream == nullptr || stream->nodes.empty()) return;
  const auto watch = stream->watches.find(client);
  if (watch == stream->watches.end() || !watch->second.input) return;
  wire::TerminalSize message;
  message.set_attempt(stream->attempt.value());
  message.set_rows(rows);
  message.set_columns(columns);
  links_.send(stream->nodes.front(), message);  // rank 0 has the terminal
}

// ---- nodes -------------------------------------------------------------------------------------

void JobStreams::link_lost(NodeId node) {
  relays_.link_lost(node);
  for (auto& [job, stream] : streams_) {
    const auto found = stream.index.find(node);
    if (found == stream.index.end()) continue;
    stream.repeats[found->second].link_lost();
    room_.forget(stream.user, {job, found->second});
    fences_.link_lost(stream.attempt, found->second);
  }
}

void JobStreams::task_output(NodeId node, wire::TaskOutput&& message) {
  const JobId job = job_of(AttemptId(message.attempt()));
  Stream* stream = find(job);
  if (stream == nullptr) return;
  const std::uint32_t index = stream->index[node];
  RepeatFilter& filter = stream->repeats[index];
  const bool is_skipped = filter.skips(message.offset());
  if (!is_skipped && filter.has_refused()) room_.came(stream->user, {job, index});
  std::size_t bytes = message.data().size();
  if (!is_skipped && may_refuse(node, *stream, message)) {
    const std::size_t room = room_.room(stream->user, stream->waiting);
    const std::size_t more = room - std::min(room, JobOutput::kChunkCost);
    bytes = std::min(bytes, filter.repeated(message.offset(), bytes) + more);
  }
  const auto verdict = filter.arrived(message.offset(), bytes);
  acknowledge(*stream, index, verdict.acknowledge);
  if (verdict.gap || verdict.overrun) {
    const std::string_view what = verdict.gap ? "lost output" : "sent output beyond its window";
    listener_->abort(AttemptId(message.attempt()), fmt::format("{} {}", links_.name(node), what));
    return;
  }
  OutputChunk chunk;
  chunk.node_index = index;
  chunk.rank = Rank(message.rank());
  chunk.is_error = message.stream() == wire::STDERR;
  chunk.data = message.data().substr(static_cast<std::size_t>(verdict.drop),
                                     bytes - static_cast<std::size_t>(verdict.drop));
  chunk.attempt = AttemptId(message.attempt());
  chunk.offset = message.offset() + verdict.drop;
  stream->output.limit_kept(most_kept(stream->user));
  if (bytes < message.data().size()) refuse_rest(job, *stream, index);
  perform(job, *stream, stream->output.arrived(std::move(chunk)));
}

// An older node, or an older shepherd, would not send the output again.
bool JobStreams::may_refuse(NodeId node, const Stream& stream,
                            const wire::TaskOutput& message) const {
  return message.may_refuse() && stream.output.waits() && links_.link(node).vitals.passes_refusals;
}

void JobStreams::refuse_rest(JobId job, Stream& stream, std::uint32_t index) {
  stream.repeats[index].refuse();
  room_.refuse(stream.user, {job, index});
  wire::TaskOutputRefused message;
  message.set_attempt(stream.attempt.value());
  links_.send(stream.nodes[index], message);
}

void JobStreams::forget_refusals(JobId job, const Stream& stream) {
  for (std::uint32_t i = 0; i < stream.repeats.size(); ++i) room_.forget(stream.user, {job, i});
}

void JobStreams::ask_to_repeat(const std::vector<OutputRoom::Place>& places) {
  for (const auto& [job, index] : places) {
    const Stream* stream = find(job);
    if (stream == nullptr || index >= stream->nodes.size()) continue;
    wire::TaskOutputRefused message;
    message.set_attempt(stream->attempt.value());
    message.set_repeat(true);
    links_.send(stream->nodes[index], message);
  }
}

// Output that waits for no front end takes no room.
void JobStreams::count_room(JobId job, Stream& stream) {
  const std::size_t before = stream.waiting;
  stream.waiting = stream.output.waits() ? stream.output.waiting_bytes() : 0;
  room_.change(stream.user, before, stream.waiting);
  if (stream.waiting <= room_.share(stream.user) / 2) {
    ask_to_repeat(room_.take_all(stream.user, job));
  }
  ask_to_repeat(room_.take_due(stream.user));
}

void JobStreams::task_input_taken(NodeId node, const wire::TaskInputTaken& message) {
  const JobId job = job_of(AttemptId(message.attempt()));
  Stream* stream = find(job);
  if (stream == nullptr) return;
  give_input_room(job, *stream, stream->input.taken(stream->index[node], message.bytes()));
}

void JobStreams::fence_enter(NodeId node, wire::FenceEnter&& message) {
  const AttemptId attempt(message.attempt());
  const Stream* stream = find(job_of(attempt));
  if (stream == nullptr) return;
  const auto entered = fences_.entered(stream->index.at(node), std::move(message));
  if (entered) return;
  listener_->abort(attempt, fmt::format("{}: {}", links_.name(node), entered.error().context()));
}

void JobStreams::node_ended(NodeId node, AttemptId attempt) {
  if (!is_on(node, attempt)) return;
  fences_.node_ended(attempt, find(job_of(attempt))->index.at(node));
}

void JobStreams::relay(NodeId node, wire::JobRelay&& message) {
  const AttemptId attempt(message.attempt());
  const Stream* stream = find(job_of(attempt));
  if (stream == nullptr || stream->attempt != attempt) return;
  const auto from = stream->index.find(node);
  if (from == stream->index.end()) return;
  const JobRelays::Sender sender{attempt, stream->user, node};
  if (message.ask_bytes() > 0) return relays_.ask(sender, message.ask_bytes());
  if (message.node_index() >= stream->nodes.size()) return;
  const NodeId to = stream->nodes[message.node_index()];
  message.set_node_index(from->second);
  relays_.send(sender, to, proto::encode_frame(message));
}

// ---- actions of JobOutput -----------------------------------------------------------------------

void JobStreams::perform(JobId job, Stream& stream, const OutputActions& actions) {
  for (const OutputAction& action : actions) {
    if (const auto* send = std::get_if<SendOutput>(&action)) {
      send_output(job, stream, *send);
    } else if (const auto* credit = std::get_if<CreditNode>(&action)) {
      if (credit->node_index >= stream.repeats.size()) continue;
      acknowledge(stream, credit->node_index,
                  stream.repeats[credit->node_index].taken(credit->bytes));
    } else {
      send_end(stream, std::get<OutputOver>(action).client);
    }
  }
  count_room(job, stream);
  if (stream.ended && stream.output.is_delivered() &&
      !std::exchange(stream.reported_delivered, true)) {
    listener_->output_delivered(job);
  }
}

void JobStreams::acknowledge(const Stream& stream, std::uint32_t index, std::uint64_t bytes) {
  if (bytes == 0) return;
  wire::TaskOutputTaken message;
  message.set_attempt(stream.attempt.value());
  message.set_bytes(bytes);
  links_.send(stream.nodes[index], message);
}

void JobStreams::send_output(JobId job, Stream& stream, const SendOutput& action) {
  const auto watch = stream.watches.find(action.client);
  if (watch == stream.watches.end()) return;
  proto::send(*watch->second.connection, output_of(job, *action.chunk, action.skip));
}

void JobStreams::send_end(Stream& stream, ClientId client) {
  const auto watch = stream.watches.find(client);
  if (watch == stream.watches.end() || !stream.ended) return;
  wire::JobEnded message;
  message.set_tag(watch->second.tag);
  *message.mutable_status() = *stream.ended;
  proto::send(*watch->second.connection, message);
}

}  // namespace score::head
