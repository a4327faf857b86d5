#include "scored/pmix/server.hpp"

#include "base/errc.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "proto/shepherd.pb.h"
#include "scored/pmix/fence_queue.hpp"
#include "scored/pmix/job_info.hpp"

#include <pmix.h>
#include <pmix_server.h>

#include <mutex>
#include <unistd.h>

namespace score::pmix {

namespace {

struct FenceToken {
  pmix_modex_cbfunc_t call;
  void* data;
};

struct State {
  std::mutex mutex;
  Send send;
  std::uint32_t first_rank = 0;
  std::uint32_t size = 0;
  FenceQueue<FenceToken> fences;
};

State& state() {
  static State instance;
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

void send_task(const pmix_proc_t& process, bool is_initialised) {
  wire::PmixTaskState task;
  task.set_task(process.rank - state().first_rank);
  task.set_is_initialised(is_initialised);
  send(task);
}

// ---- what libpmix asks of its host; each call is one task's request

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
  abort.set_rank(process->rank);
  abort.set_code(status);
  abort.set_message(
      base::escape_terminal(text == nullptr ? "" : text, base::limits::kMaxErrorTextBytes));
  send(abort);
  return PMIX_OPERATION_SUCCEEDED;
}

bool is_whole_job(const pmix_proc_t* processes, std::size_t count) {
  if (count == 1 && processes[0].rank == PMIX_RANK_WILDCARD) return true;
  return count == state().size;
}

pmix_status_t on_fence(const pmix_proc_t processes[], std::size_t count, const pmix_info_t*,
                       std::size_t, char* data, std::size_t bytes, pmix_modex_cbfunc_t call,
                       void* call_data) {
  if (!is_whole_job(processes, count)) return PMIX_ERR_NOT_SUPPORTED;
  std::string copy(data == nullptr ? "" : data, data == nullptr ? 0 : bytes);
  std::free(data);  // NOLINT: ours from here on, from malloc
  const std::lock_guard lock(state().mutex);
  if (auto request = state().fences.enter(std::move(copy), {call, call_data})) send_fence(*request);
  return PMIX_SUCCESS;
}

void free_data(void* data) {
  delete static_cast<std::string*>(data);
}

pmix_server_module_t make_module() {
  pmix_server_module_t module{};
  module.client_connected2 = on_connected;
  module.client_finalized = on_finalized;
  module.abort = on_abort;
  module.fence_nb = on_fence;
  return module;
}

bool is_good(pmix_status_t status) {
  return status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED;
}

base::Status check(pmix_status_t status, const char* what) {
  if (is_good(status)) return {};
  return base::fail(base::Errc::Unsupported, "PMIx {}: {}", what, PMIx_Error_string(status));
}

base::Status initialise(const shepherd::Plan& plan, const std::string& directory) {
  static pmix_server_module_t module = make_module();
  InfoList directives;
  directives.add(PMIX_SERVER_TMPDIR, directory);
  directives.add(PMIX_SYSTEM_TMPDIR, directory);
  directives.add(PMIX_HOSTNAME, plan.prepare.node_name());
  directives.add_u32(PMIX_NODEID, plan.prepare.node_index());
  return check(PMIx_server_init(&module, directives.data(), directives.size()), "server");
}

base::Status register_job(const shepherd::Plan& plan, const std::string& directory) {
  const auto name = namespace_of(plan);
  InfoList infos;
  if (auto added = add_job_info(infos, plan, directory); !added) return added;
  const auto tasks = static_cast<int>(plan.local_tasks());
  auto status = check(PMIx_server_register_nspace(name.c_str(), tasks, infos.data(), infos.size(),
                                                  nullptr, nullptr),
                      "job");
  for (std::uint32_t task = 0; status && task < plan.local_tasks(); ++task) {
    pmix_proc_t process;
    PMIX_LOAD_PROCID(&process, name.c_str(), plan.rank_of(task));
    status =
        check(PMIx_server_register_client(&process, getuid(), getgid(), nullptr, nullptr, nullptr),
              "task");
  }
  return status;
}

// Open MPI 4 takes itself for a single process unless it knows the launcher; the launcher of this
// variable is one that starts through PMIx and binds, as this one. Both it and Open MPI 5 keep
// shared memory in files: in the job's own directory these meet no other job's and go with it.
std::vector<std::string> open_mpi_variables(const std::string& directory) {
  return {"JSM_JSRUN_PORT=0", "OMPI_MCA_btl_vader_backing_directory=" + directory,
          "OMPI_MCA_btl_sm_backing_directory=" + directory};
}

base::Result<std::vector<std::string>> task_environment(const shepherd::Plan& plan,
                                                        const std::string& directory) {
  pmix_proc_t process;
  PMIX_LOAD_PROCID(&process, namespace_of(plan).c_str(), plan.first_rank);
  char** variables = nullptr;
  if (auto got = check(PMIx_server_setup_fork(&process, &variables), "environment"); !got) {
    return got.error();
  }
  auto out = open_mpi_variables(directory);
  for (char** at = variables; at != nullptr && *at != nullptr; ++at) {
    if (!std::string_view(*at).starts_with("PMIX_RANK=")) out.emplace_back(*at);
    std::free(*at);  // NOLINT: PMIx gives malloc's memory
  }
  std::free(variables);  // NOLINT
  return out;
}

}  // namespace

base::Result<std::vector<std::string>> start_server(const shepherd::Plan& plan,
                                                    const std::string& directory, Send send) {
  state().send = std::move(send);
  state().first_rank = plan.first_rank;
  state().size = plan.size;
  if (auto started = initialise(plan, directory); !started) return started.error();
  if (auto registered = register_job(plan, directory); !registered) return registered.error();
  return task_environment(plan, directory);
}

void complete_fence(std::uint64_t sequence, std::string data) {
  std::optional<FenceQueue<FenceToken>::Completed> done;
  {
    const std::lock_guard lock(state().mutex);
    done = state().fences.complete(sequence);
    if (done && done->next) send_fence(*done->next);
  }
  if (!done) return;
  auto* kept = new std::string(std::move(data));  // until libpmix calls free_data
  done->token.call(PMIX_SUCCESS, kept->data(), kept->size(), done->token.data, free_data, kept);
}

}  // namespace score::pmix
