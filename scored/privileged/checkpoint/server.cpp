#include "scored/privileged/checkpoint/server.hpp"

#include "scored/privileged/checkpoint/protocol.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::checkpoint {

namespace {

constexpr int kWordBytes = 48;
constexpr std::size_t kFixedWords = 16;
constexpr std::size_t kCgroupBytes = 4'096;

struct Stream {
  CriuRequest named;
  int fd;
};

Stream g_streams[kStreamsPerOrder];
std::size_t g_count = 0;
char g_words[kStreamsPerOrder][kWordBytes];
char* g_argv[kFixedWords + 2 * kStreamsPerOrder];

bool receive(int socket, CriuRequest& request, int& fd) {
  iovec data{&request, sizeof request};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  fd = -1;
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* const part = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (part != nullptr && part->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(part), sizeof fd);
  return got == sizeof request && request.magic == kMagic && (message.msg_flags & MSG_CTRUNC) == 0;
}

// Reads the cgroup2 path of a process without its last part, which is the role in the attempt.
bool read_attempt(const char* process, char (&text)[kCgroupBytes]) {
  char name[64];
  snprintf(name, sizeof name, "/proc/%s/cgroup", process);
  const int file = open(name, O_RDONLY | O_CLOEXEC);
  const ssize_t got = file >= 0 ? read(file, text, sizeof text - 1) : -1;
  close(file);
  text[got > 0 ? got : 0] = '\0';
  char* const unified = strstr(text, "0::/");
  if (unified != nullptr) unified[strcspn(unified, "\n")] = '\0';
  char* const last = unified != nullptr ? strrchr(unified, '/') : nullptr;
  if (last == nullptr) return false;
  *last = '\0';
  memmove(text, unified, strlen(unified) + 1);
  return true;
}

// The namespace has no other users' processes, unless a set-user-id program runs.
bool is_own_process(pid_t process) {
  static char mine[kCgroupBytes], its[kCgroupBytes];
  char number[16], directory[32];
  snprintf(number, sizeof number, "%d", process);
  snprintf(directory, sizeof directory, "/proc/%s", number);

  struct stat status {};

  return process > 1 && stat(directory, &status) == 0 && status.st_uid == getuid() &&
         read_attempt("self", mine) && read_attempt(number, its) && strcmp(mine, its) == 0;
}

char* word(const char* text) {
  return const_cast<char*>(text);
}

// Without --no-default-config, a file in the user's home could have criu execute a program with the
// two capabilities.
void fill_arguments(const CriuRequest& order, char* criu, char* process) {
  const bool saves = order.kind == CriuRequest::Kind::Save;
  char* const fixed[] = {criu,
                         word(saves ? "dump" : "restore"),
                         word(saves ? "--leave-running" : "--restore-detached"),
                         word(saves ? "-osave.log" : "-orestore.log"),
                         word("-D."),
                         word("--no-default-config"),
                         word("-v2"),
                         word("--manage-cgroups=ignore"),
                         word("--file-locks"),
                         word("--ghost-limit=1G"),
                         word("--unprivileged")};
  std::size_t used = sizeof fixed / sizeof *fixed;
  memcpy(g_argv, fixed, sizeof fixed);
  if (saves) g_argv[used++] = word("-t");
  if (saves) g_argv[used++] = process;
  for (std::size_t i = 0; i < g_count; ++i) {
    const Stream& stream = g_streams[i];
    using What = CriuRequest::What;
    const What what = stream.named.what;
    if (saves && what != What::Socket) continue;
    const auto inode = static_cast<unsigned long long>(stream.named.inode);
    const char* const form = what == What::PmSocket ? "fd[%d]:scored-socket-%llu"
                             : what == What::Socket ? "fd[%d]:socket:[%llu]"
                                                    : "fd[%d]:pipe:[%llu]";
    if (saves) snprintf(g_words[i], kWordBytes, "unix[%llu]", inode);
    if (!saves) snprintf(g_words[i], kWordBytes, form, stream.fd, inode);
    g_argv[used++] = word(saves ? "--external" : "--inherit-fd");
    g_argv[used++] = g_words[i];
  }
  g_argv[used] = nullptr;
}

// Runs criu in the directory. Returns its exit status, or -1.
int run_criu(const CriuRequest& order, int directory, char* criu) {
  char process[16];
  snprintf(process, sizeof process, "%d", order.process);
  fill_arguments(order, criu, process);
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    for (std::size_t i = 0; i < g_count; ++i) fcntl(g_streams[i].fd, F_SETFD, 0);
    const int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= STDERR_FILENO; ++fd) dup2(null, fd);
    close(null);
    if (fchdir(directory) == 0) execv(criu, g_argv);
    _exit(127);
  }
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

CriuReply carry_out(const CriuRequest& order, int directory, char* criu) {
  CriuReply reply;
  const bool saves = order.kind == CriuRequest::Kind::Save;
  const bool is_good = directory >= 0 && (!saves || is_own_process(order.process));
  reply.error = is_good ? 0 : EPERM;
  if (is_good) reply.status = run_criu(order, directory, criu);
  // The restored tasks must get the ids that they would have got, and none that criu will need.
  const bool is_restored = is_good && !saves && reply.status == 0;
  const int last = is_restored ? open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC) : -1;
  if (last >= 0) dprintf(last, "%d", order.process < kFirstPid ? kFirstPid : order.process);
  close(last);
  while (g_count > 0) close(g_streams[--g_count].fd);
  return reply;
}

}  // namespace

// Images could give a restored process securebits that weaken set-user-id programs, so no process
// of criu, nor a restored one, gains rights from those.
int serve(int socket, char* criu) {
  signal(SIGCHLD, SIG_DFL);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 1;
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  CriuRequest request;
  for (int fd = -1; receive(socket, request, fd);) {
    if (request.kind == CriuRequest::Kind::Stream) {
      if (g_count == kStreamsPerOrder) return 1;
      g_streams[g_count++] = {request, fd};
      continue;
    }
    const bool is_known =
        request.kind == CriuRequest::Kind::Save || request.kind == CriuRequest::Kind::Restore;
    if (!is_known) return 1;
    const CriuReply reply = carry_out(request, fd, criu);
    close(fd);
    send(socket, &reply, sizeof reply, MSG_NOSIGNAL);
  }
  return 0;
}

}  // namespace score::checkpoint
