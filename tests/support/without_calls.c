/* without_calls CALL... -- PROGRAM [ARGUMENT...]: runs a program for which these system calls do
 * not exist: pidfd, io_uring, ipv6 (sockets of that family). */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kMost = 32 };

static struct sock_filter program[kMost];
static unsigned short length;

static void add(struct sock_filter line) {
  program[length++] = line;
}

static void load(size_t offset) {
  add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

static void answer(unsigned value) {
  add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, value));
}

static void forbid(int call) {
  load(offsetof(struct seccomp_data, nr));
  add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1));
  answer(SECCOMP_RET_ERRNO | ENOSYS);
}

static void forbid_ipv6(void) {
  load(offsetof(struct seccomp_data, nr));
  add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3));
  load(offsetof(struct seccomp_data, args));
  add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1));
  answer(SECCOMP_RET_ERRNO | EAFNOSUPPORT);
}

static int take_away(const char* what) {
  if (!strcmp(what, "ipv6")) {
    forbid_ipv6();
  } else if (!strcmp(what, "pidfd")) {
    forbid(SYS_pidfd_open);
    forbid(SYS_pidfd_send_signal);
  } else if (!strcmp(what, "io_uring")) {
    forbid(SYS_io_uring_setup);
  } else {
    return 0;
  }
  return 1;
}

int main(int argc, char** argv) {
  int word = 1;
  for (; word < argc && strcmp(argv[word], "--") != 0; ++word) {
    if (word > 3 || !take_away(argv[word])) break;
  }
  if (word + 1 >= argc || strcmp(argv[word], "--") != 0) {
    fputs("usage: without_calls [pidfd] [io_uring] [ipv6] -- PROGRAM [ARGUMENT...]\n", stderr);
    return 125;
  }
  answer(SECCOMP_RET_ALLOW);
  const struct sock_fprog filter = {length, program};
  if (geteuid() != 0) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    perror("without_calls");
    return 125;
  }
  execvp(argv[word + 1], argv + word + 1);
  perror(argv[word + 1]);
  return 127;
}
