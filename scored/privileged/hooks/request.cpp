#include "scored/privileged/hooks/request.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <pwd.h>

namespace score::hooks {
namespace {

// Returns the text of a field, which must end within it and have only such characters.
Result<std::string> text_of(const char* field, std::size_t size, std::string_view others) {
  const std::size_t length = strnlen(field, size);
  const std::string text(field, length);
  const auto is_known = [others](char one) {
    return (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') || (one >= '0' && one <= '9') ||
           others.find(one) != std::string_view::npos;
  };
  if (length < size && std::ranges::all_of(text, is_known)) return text;
  return fail(Errc::Malformed, "invalid text in a request");
}

void add_job(const Request& request, std::vector<std::string>& environment) {
  const HookRequest& data = request.data;
  environment.push_back(fmt::format("SCORE_JOB_ID={}", data.job));
  environment.push_back(fmt::format("SCORE_JOB_UID={}", data.user));
  environment.push_back(fmt::format("SCORE_JOB_NODES={}", data.nodes));
  environment.push_back(fmt::format("SCORE_JOB_TASKS={}", data.tasks));
  if (!request.node_list.empty()) environment.push_back("SCORE_JOB_NODELIST=" + request.node_list);
  if (const passwd* const user = getpwuid(data.user)) {
    environment.push_back(fmt::format("SCORE_JOB_GID={}", user->pw_gid));
    environment.push_back(fmt::format("SCORE_JOB_USER={}", user->pw_name));
  }
}

}  // namespace

Result<Request> parse_request(std::string_view bytes, bool submits) {
  Request request;
  HookRequest& data = request.data;
  if (bytes.size() != sizeof data)
    return fail(Errc::Malformed, "request of {} bytes", bytes.size());
  std::memcpy(&data, bytes.data(), sizeof data);
  const auto last = static_cast<std::uint32_t>(Hook::Submit);
  const bool is_known = data.magic == kMagic && data.version == kVersion && data.hook <= last;
  if (!is_known || (data.hook == last) != submits) return fail(Errc::Malformed, "invalid request");
  request.hook = static_cast<Hook>(data.hook);
  const bool has_job = request.hook == Hook::Prolog || request.hook == Hook::Epilog;
  if (has_job && (data.job == 0 || data.attempt == 0))
    return fail(Errc::Malformed, "request without a job");
  auto node = text_of(data.node, sizeof data.node, "-._");
  if (!node) return node.error();
  auto list = text_of(data.node_list, sizeof data.node_list, "-._,[]");
  if (!list) return list.error();
  request.node = *std::move(node);
  request.node_list = *std::move(list);
  return request;
}

std::vector<std::string> environment_of(const Request& request) {
  std::vector<std::string> environment = {
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "LANG=C.UTF-8",
      fmt::format("SCORE_HOOK={}", name_of(request.hook))};
  if (!request.node.empty()) environment.push_back("SCORE_NODE=" + request.node);
  if (request.data.job != 0) add_job(request, environment);
  return environment;
}

}  // namespace score::hooks
