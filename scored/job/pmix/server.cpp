#include "scored/job/pmix/server.hpp"

#include "base/errc.hpp"
#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "base/text.hpp"
#include "proto/node.pb.h"
#include "proto/shepherd.pb.h"
#include "scored/job/pmix/client_env.hpp"
#include "scored/job/pmix/exchange.hpp"
#include "scored/job/pmix/fence_queue.hpp"
#include "scored/job/pmix/group_part.hpp"
#include "scored/job/pmix/info_list.hpp"
#include "scored/job/pmix/job_info.hpp"
#include "scored/job/pmix/published.hpp"
#include "scored/job/pmix/spawn/spawn_request.hpp"
#include "scored/job/pmix/spawn/worlds.hpp"

#include <pmix.h>
#include <pmix_server.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <sys/eventfd.h>
#include <unistd.h>

namespace score::pmix {

namespace {

struct FenceToken {
  pmix_modex_cbfunc_t call;
  void* data;
};

struct SpawnCall {
  pmix_spawn_cbfunc_t call;
  void* data;
};

using Answered = std::function<void(const Exchange::Answer&)>;

using shepherd::Plan;

struct ServerState {
  std::mutex mutex;
  Send send;
  std::optional<Plan> plan;  // plan of the job's first world
  std::string directory;
  Worlds worlds;
  FenceQueue<FenceToken> fences;
  std::optional<Exchange> exchange;
  std::map<Exchange::Token, Answered> calls;  // calls of libpmix that wait for the exchange
  Exchange::Token last_token = 0;
  std::uint32_t node = 0;
  std::uint32_t last_group = 0;  // counts the groups that have this node as the first
  std::map<std::uint64_t, SpawnCall> spawns;
  std::uint64_t last_spawn = 0;
  base::UniqueFd wake;
};

ServerState& state() {
  static ServerState instance;
  return instance;
}

template <class Message>
void send(const Message& message) {
  state().send(proto::frame_type<Message>(), message.SerializeAsString());
}

void send_fence(const FenceRequest& request) {
  wire::PmixFence fence;
  fence.set_sequence(request.sequence);
  fence.set_data(request.data);
  send(fence);
}

// Returns the process's number in the job; nullopt for a process of a different job.
std::optional<std::uint32_t> number_of(const pmix_proc_t& process) {
  const std::lock_guard lock(state().mutex);
  return state().worlds.number_of(process);
}

// Returns the process's index among the tasks of this node; an index past the last one if it is
// none of them.
std::uint32_t task_of(const pmix_proc_t& process) {
  const auto& ranks = state().plan->ranks;
  const auto number = number_of(process);
  if (!number) return static_cast<std::uint32_t>(ranks.size());
  return static_cast<std::uint32_t>(std::ranges::lower_bound(ranks, *number) - ranks.begin());
}

void send_task(const pmix_proc_t& process, bool is_initialised) {
  wire::PmixTaskState task;
  task.set_task(task_of(process));
  task.set_is_initialised(is_initialised);
  send(task);
}

// ---- calls of libpmix to its host; each is a request of one task

pmix_status_t on_connected(const pmix_proc_t* process, void*, pmix_info_t*, std::size_t,
                           pmix_op_cbfunc_t, void*) {
  send_task(*process, true);
  return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t on_finalized(const pmix_proc_t* process, void*, pmix_op_cbfunc_t, void*) {
  send_task(*process, false);
  return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t on_abort(const pmix_proc_t* process, void*, int status, const char* text,
                       pmix_proc_t*, std::size_t, pmix_op_cbfunc_t, void*) {
  wire::PmixAbort abort;
  abort.set_rank(number_of(*process).value_or(0));
  abort.set_code(status);
  abort.set_message(
      base::escape_terminal(text == nullptr ? "" : text, base::limits::kMaxErrorTextBytes));
  send(abort);
  return PMIX_OPERATION_SUCCEEDED;
}

// The shepherd replies through spawn_done(). In a job without room it only informs the user.
pmix_status_t on_spawn(const pmix_proc_t* process, const pmix_info_t infos[], std::size_t count,
                       const pmix_app_t apps[], std::size_t app_count, pmix_spawn_cbfunc_t call,
                       void* data) {
  auto programs = programs_of({infos, count}, {apps, app_count});
  if (!programs) return PMIX_ERR_BAD_PARAM;
  wire::PmixSpawn spawn;
  spawn.set_task(task_of(*process));
  if (!state().plan->can_spawn()) {
    send(spawn);
    return PMIX_ERR_NOT_SUPPORTED;
  }
  for (auto& program : *programs) *spawn.add_programs() = std::move(program);
  {
    const std::lock_guard lock(state().mutex);
    spawn.set_token(++state().last_spawn);
    state().spawns[spawn.token()] = {call, data};
  }
  send(spawn);
  return PMIX_SUCCESS;
}

// ---- requests that involve other nodes

// Answers are never delivered from the caller's own thread, which is libpmix's thread inside the
// call that made the request.
template <class Request>
void ask(Request request, Answered answered) {
  const std::lock_guard lock(state().mutex);
  const auto token = ++state().last_token;
  state().calls.emplace(token, std::move(answered));
  request(*state().exchange, token, base::monotonic_now());
  const std::uint64_t one = 1;
  std::ignore = write(state().wake.get(), &one, sizeof one);
}

pmix_status_t status_of(ExchangeOutcome outcome) {
  switch (outcome) {
    case ExchangeOutcome::Success:
      return PMIX_SUCCESS;
    case ExchangeOutcome::NotFound:
      return PMIX_ERR_NOT_FOUND;
    case ExchangeOutcome::Partial:
      return PMIX_ERR_PARTIAL_SUCCESS;
    case ExchangeOutcome::Duplicate:
      return PMIX_ERR_DUPLICATE_KEY;
    case ExchangeOutcome::TimedOut:
      return PMIX_ERR_TIMEOUT;
    case ExchangeOutcome::Refused:
      break;
  }
  return PMIX_ERR_OUT_OF_RESOURCE;
}

Exchange::Options options_of(const pmix_info_t info[], std::size_t count) {
  Exchange::Options options;
  for (std::size_t i = 0; i < count; ++i) {
    if (PMIX_CHECK_KEY(&info[i], PMIX_WAIT)) options.waits = true;
    const bool is_limit = PMIX_CHECK_KEY(&info[i], PMIX_TIMEOUT);
    if (!is_limit || info[i].value.type != PMIX_INT || info[i].value.data.integer <= 0) continue;
    options.deadline = base::monotonic_now() + std::chrono::seconds(info[i].value.data.integer);
  }
  return options;
}

void free_data(void* data) {
  delete static_cast<std::string*>(data);
}

void answer_data(const FenceToken& token, pmix_status_t status, std::string data) {
  auto* kept = new std::string(std::move(data));  // until libpmix calls free_data
  token.call(status, kept->data(), kept->size(), token.data, free_data, kept);
}

pmix_status_t on_direct_modex(const pmix_proc_t* process, const pmix_info_t info[],
                              std::size_t count, pmix_modex_cbfunc_t call, void* data) {
  const auto number = number_of(*process);
  if (!number) return PMIX_ERR_NOT_FOUND;
  const auto options = options_of(info, count);
  ask([&](Exchange& exchange, auto token, auto now) { exchange.get(token, *number, options, now); },
      [=](const Exchange::Answer& answer) {
        answer_data({call, data}, status_of(answer.outcome), answer.data);
      });
  return PMIX_SUCCESS;
}

// Receives the library's answer about one of its own ranks.
void on_answered(pmix_status_t status, char* data, std::size_t bytes, void* ticket) {
  const std::unique_ptr<std::uint64_t> owned(static_cast<std::uint64_t*>(ticket));
  const std::lock_guard lock(state().mutex);
  const auto outcome =
      status == PMIX_SUCCESS ? ExchangeOutcome::Success : ExchangeOutcome::NotFound;
  state().exchange->answered(*owned, outcome, std::string(data == nullptr ? "" : data, bytes));
  const std::uint64_t one = 1;
  std::ignore = write(state().wake.get(), &one, sizeof one);
}

void ask_library(const Exchange::Ask& ask) {
  pmix_proc_t process;
  {
    const std::lock_guard lock(state().mutex);
    process = state().worlds.process_of(ask.rank);
  }
  auto* ticket = new std::uint64_t(ask.ticket);  // on_answered takes it
  const auto status = PMIx_server_dmodex_request(&process, on_answered, ticket);
  if (status != PMIX_SUCCESS) on_answered(status, nullptr, 0, ticket);
}

// ---- names

void ask_about_names(auto request, pmix_op_cbfunc_t call, void* data) {
  ask(std::move(request),
      [=](const Exchange::Answer& answer) { call(status_of(answer.outcome), data); });
}

pmix_status_t on_publish(const pmix_proc_t* process, const pmix_info_t info[], std::size_t count,
                         pmix_op_cbfunc_t call, void* data) {
  const auto number = number_of(*process);
  auto items = items_of(number.value_or(0), {info, count});
  if (!items || !number) return PMIX_ERR_NOT_SUPPORTED;
  ask_about_names([&](Exchange& exchange, auto token,
                      auto now) { exchange.publish(token, std::move(*items), now); },
                  call, data);
  return PMIX_SUCCESS;
}

std::vector<std::string> list_of(char** keys) {
  std::vector<std::string> list;
  for (; keys != nullptr && *keys != nullptr; ++keys) list.emplace_back(*keys);
  return list;
}

pmix_status_t on_lookup(const pmix_proc_t*, char** keys, const pmix_info_t info[],
                        std::size_t count, pmix_lookup_cbfunc_t call, void* data) {
  const auto options = options_of(info, count);
  ask([&](Exchange& exchange, auto token,
          auto now) { exchange.lookup(token, list_of(keys), options, now); },
      [=](const Exchange::Answer& answer) {
        LookupResult found(answer.items, [](std::uint32_t owner) {
          const std::lock_guard lock(state().mutex);
          return state().worlds.process_of(owner);
        });
        call(status_of(answer.outcome), found.data(), found.size(), data);
      });
  return PMIX_SUCCESS;
}

pmix_status_t on_unpublish(const pmix_proc_t* process, char** keys, const pmix_info_t[],
                           std::size_t, pmix_op_cbfunc_t call, void* data) {
  const auto number = number_of(*process);
  if (!number) return PMIX_ERR_NOT_FOUND;
  ask_about_names([&](Exchange& exchange, auto token,
                      auto now) { exchange.unpublish(token, *number, list_of(keys), now); },
                  call, data);
  return PMIX_SUCCESS;
}

// ---- fences

// The head gathers a fence of the whole job from all nodes, so each node must have tasks from the
// start.
bool is_whole_job(std::span<const pmix_proc_t> processes) {
  if (state().plan->can_spawn()) return false;
  if (processes.size() == 1 && processes[0].rank == PMIX_RANK_WILDCARD) return true;
  return processes.size() == state().plan->size;
}

// Returns nullopt if any process is of a different job.
std::optional<std::vector<std::uint32_t>> numbers_of(std::span<const pmix_proc_t> processes) {
  const std::lock_guard lock(state().mutex);
  return state().worlds.numbers_of(processes);
}

pmix_status_t fence_some(std::span<const pmix_proc_t> processes, std::string data,
                         FenceToken asker) {
  auto numbers = numbers_of(processes);
  if (!numbers) return PMIX_ERR_NOT_FOUND;
  ask([&](Exchange& exchange, auto token,
          auto now) { exchange.fence(token, std::move(*numbers), std::move(data), now); },
      [asker](const Exchange::Answer& answer) {
        answer_data(asker, status_of(answer.outcome), answer.data);
      });
  return PMIX_SUCCESS;
}

// Connects or disconnects processes of one or several worlds.
pmix_status_t on_connect(const pmix_proc_t processes[], std::size_t count, const pmix_info_t*,
                         std::size_t, pmix_op_cbfunc_t call, void* data) {
  auto numbers = numbers_of({processes, count});
  if (!numbers) return PMIX_ERR_NOT_FOUND;
  ask([&](Exchange& exchange, auto token,
          auto now) { exchange.fence(token, std::move(*numbers), "", now); },
      [=](const Exchange::Answer& answer) { call(status_of(answer.outcome), data); });
  return PMIX_SUCCESS;
}

pmix_status_t on_fence(const pmix_proc_t processes[], std::size_t count, const pmix_info_t*,
                       std::size_t, char* data, std::size_t bytes, pmix_modex_cbfunc_t call,
                       void* call_data) {
  std::string copy(data == nullptr ? "" : data, data == nullptr ? 0 : bytes);
  std::free(data);  // NOLINT: malloc'ed by libpmix, which passes ownership
  if (!is_whole_job({processes, count})) {
    return fence_some({processes, count}, std::move(copy), {call, call_data});
  }
  const std::lock_guard lock(state().mutex);
  if (auto request = state().fences.enter(std::move(copy), {call, call_data})) send_fence(*request);
  return PMIX_SUCCESS;
}

// ---- groups: a fence of the group's ranks, with a number that all of them receive

struct GroupCall {
  pmix_info_cbfunc_t call;
  void* data;
};

void answer_group(const GroupCall& to, pmix_status_t status, std::unique_ptr<InfoList> results) {
  InfoList* const kept = results.release();  // until libpmix is done with it
  to.call(
      status, kept->data(), kept->size(), to.data,
      [](void* list) { delete static_cast<InfoList*>(list); }, kept);
}

void answer_construct(const GroupCall& to, const Exchange::Answer& answer) {
  auto results = std::make_unique<InfoList>();
  if (answer.outcome != ExchangeOutcome::Success) {
    return answer_group(to, status_of(answer.outcome), std::move(results));
  }
  const auto whole = join_parts(answer.data);
  if (!whole) return answer_group(to, PMIX_ERR_BAD_PARAM, std::move(results));
  results->add_size(PMIX_GROUP_CONTEXT_ID, whole->context);
  if (!whole->data.empty()) results->add_bytes(PMIX_GROUP_ENDPT_DATA, whole->data);
  answer_group(to, PMIX_SUCCESS, std::move(results));
}

// Returns the data that a rank's library provides for the libraries of the other ranks.
std::string endpoints_in(std::span<const pmix_info_t> directives) {
  for (const auto& info : directives) {
    const bool is_data = PMIX_CHECK_KEY(&info, PMIX_GROUP_ENDPT_DATA);
    if (!is_data || info.value.type != PMIX_BYTE_OBJECT) continue;
    const auto& bytes = info.value.data.bo;
    return bytes.bytes == nullptr ? std::string() : std::string(bytes.bytes, bytes.size);
  }
  return {};
}

pmix_status_t on_group(pmix_group_operation_t operation, char group[],
                       const pmix_proc_t processes[], std::size_t count,
                       const pmix_info_t directives[], std::size_t directive_count,
                       pmix_info_cbfunc_t call, void* data) {
  auto ranks = numbers_of({processes, count});
  if (!ranks || group == nullptr) return PMIX_ERR_NOT_SUPPORTED;
  const bool constructs = operation == PMIX_GROUP_CONSTRUCT;
  GroupPart part{0, group, constructs ? endpoints_in({directives, directive_count}) : ""};
  ask(
      [&](Exchange& exchange, auto token, auto now) {
        part.context = (std::uint64_t{state().node} + 1) << 32 | ++state().last_group;
        exchange.fence(token, std::move(*ranks), encode_part(part), now);
      },
      [constructs, to = GroupCall{call, data}](const Exchange::Answer& answer) {
        if (constructs) return answer_construct(to, answer);
        answer_group(to, status_of(answer.outcome), std::make_unique<InfoList>());
      });
  return PMIX_SUCCESS;
}

pmix_server_module_t make_module() {
  pmix_server_module_t module{};
  module.client_connected2 = on_connected;
  module.client_finalized = on_finalized;
  module.abort = on_abort;
  module.spawn = on_spawn;
  module.fence_nb = on_fence;
  module.direct_modex = on_direct_modex;
  module.connect = on_connect;
  module.disconnect = on_connect;
  module.publish = on_publish;
  module.lookup = on_lookup;
  module.unpublish = on_unpublish;
  module.group = on_group;
  return module;
}

bool is_good(pmix_status_t status) {
  return status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED;
}

base::Status check(pmix_status_t status, const char* what) {
  if (is_good(status)) return {};
  return base::fail(base::Errc::Unsupported, "PMIx {}: {}", what, PMIx_Error_string(status));
}

// Open MPI looks for network adapters in the topology, and PM is none. Reading the registers of a
// PCI device takes long, above all in virtual machines: it is most of the time that the server
// needs to start.
void leave_out_devices() {
  setenv("HWLOC_COMPONENTS", "-linux:pci", 1);  // and libhwloc loads no plugins here
}

base::Status initialise(const shepherd::Plan& plan, const std::string& directory) {
  static pmix_server_module_t module = make_module();
  if (plan.spec.net() == wire::LaunchSpec::PM) leave_out_devices();
  InfoList directives;
  directives.add(PMIX_SERVER_TMPDIR, directory);
  directives.add(PMIX_SYSTEM_TMPDIR, directory);
  directives.add(PMIX_SERVER_NSPACE, std::string(kServerName));
  directives.add_rank(PMIX_SERVER_RANK, plan.prepare.node_index());
  directives.add(PMIX_HOSTNAME, plan.prepare.node_name());
  directives.add_u32(PMIX_NODEID, plan.prepare.node_index());
  directives.add(PMIX_SERVER_SHARE_TOPOLOGY, true);  // read once per node instead of once per rank
  return check(PMIx_server_init(&module, directives.data(), directives.size()), "server");
}

base::Status register_job(const shepherd::Plan& plan, const std::string& directory) {
  const auto name = plan.key_space();
  InfoList infos;
  if (auto added = add_job_info(infos, plan, directory); !added) return added;
  const auto tasks = static_cast<int>(plan.members.size());
  auto status = check(PMIx_server_register_nspace(name.c_str(), tasks, infos.data(), infos.size(),
                                                  nullptr, nullptr),
                      "job");
  for (const std::uint32_t task : plan.members) {
    if (!status) break;
    pmix_proc_t process;
    PMIX_LOAD_PROCID(&process, name.c_str(), plan.world_rank_of(task));
    status =
        check(PMIx_server_register_client(&process, getuid(), getgid(), nullptr, nullptr, nullptr),
              "task");
  }
  return status;
}

}  // namespace

base::Status start_server(const shepherd::Plan& plan, const std::string& directory, Send send) {
  state().send = std::move(send);
  state().plan = plan;
  state().directory = directory;
  state().worlds.add(plan);
  state().node = plan.prepare.node_index();
  state().exchange.emplace(plan.prepare.node_index(), plan.nodes_of_tasks());
  state().wake = base::UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!state().wake) return base::fail(base::errno_code(errno), "eventfd");
  if (auto started = initialise(plan, directory); !started) return started;
  return register_job(plan, directory);
}

void add_world(const Plan& world) {
  {
    const std::lock_guard lock(state().mutex);
    state().worlds.add(world);
  }
  wire::PmixWorldReady ready;
  ready.set_world(world.world());
  const auto registered = register_job(world, state().directory);
  if (!registered) ready.set_reason(registered.error().message());
  send(ready);
}

void spawn_done(std::uint64_t token, std::uint32_t world) {
  std::optional<SpawnCall> asked;
  {
    const std::lock_guard lock(state().mutex);
    auto found = state().spawns.extract(token);
    if (found.empty()) return;
    asked = found.mapped();
  }
  std::string name = state().plan->key_space_of(world);
  const auto status = world == 0 ? PMIX_ERR_JOB_FAILED_TO_LAUNCH : PMIX_SUCCESS;
  asked->call(status, world == 0 ? nullptr : name.data(), asked->data);
}

void complete_fence(std::uint64_t sequence, std::string data) {
  std::optional<FenceQueue<FenceToken>::Completed> done;
  {
    const std::lock_guard lock(state().mutex);
    done = state().fences.complete(sequence);
    if (done && done->next) send_fence(*done->next);
  }
  if (!done) return;
  answer_data(done->token, PMIX_SUCCESS, std::move(data));
}

int wake_descriptor() {
  return state().wake.get();
}

void receive_relay(std::uint32_t from, const wire::PmixPeer& message) {
  {
    const std::lock_guard lock(state().mutex);
    state().exchange->receive(from, message);
  }
  take_turn();
}

bool take_turn() {
  std::uint64_t drained = 0;
  std::ignore = read(state().wake.get(), &drained, sizeof drained);
  Exchange::Actions actions;
  std::vector<Answered> calls;
  bool has_pending = false;
  {
    const std::lock_guard lock(state().mutex);
    state().exchange->turn(base::monotonic_now());
    actions = state().exchange->take_actions();
    for (const auto& answer : actions.answers) {
      calls.push_back(std::move(state().calls.extract(answer.token).mapped()));
    }
    has_pending = state().exchange->has_pending();
  }
  for (const auto& message : actions.messages) {
    wire::JobRelay relay;
    relay.set_node_index(message.node);
    *relay.mutable_message() = message.message;
    send(relay);
  }
  for (std::size_t i = 0; i < calls.size(); ++i) calls[i](actions.answers[i]);
  for (const auto& ask : actions.asks) ask_library(ask);
  return has_pending;
}

}  // namespace score::pmix
