/* without_calls [--error ENOSYS|EPERM] CALL... -- PROGRAM [ARGUMENT...]: runs a program for which
 * system calls are refused, with ENOSYS unless an error is named. `docker` refuses those that the
 * default profile of Docker and containerd refuses without CAP_SYS_ADMIN, with its errors. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kMost = 256, kDontNeedLocked = 24 };

enum When { Always, Equal, AnyBit };

struct Rule {
  const char* name;
  int call;
  int docker;  // its error there, or 0 if the call is allowed
  enum When when;
  int argument;
  unsigned value;
};

static const unsigned kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

static struct Rule rules[] = {
    {"clone3", SYS_clone3, ENOSYS, Always, 0, 0},
    {"close_range", SYS_close_range, 0, Always, 0, 0},
    {"pidfd", SYS_pidfd_open, 0, Always, 0, 0},
    {"pidfd", SYS_pidfd_send_signal, 0, Always, 0, 0},
    {"io_uring", SYS_io_uring_setup, EPERM, Always, 0, 0},
    {"io_uring", SYS_io_uring_enter, EPERM, Always, 0, 0},
    {"io_uring", SYS_io_uring_register, EPERM, Always, 0, 0},
    {"process_vm", SYS_process_vm_readv, 0, Always, 0, 0},
    {"process_vm", SYS_process_vm_writev, 0, Always, 0, 0},
    {"preadv2", SYS_preadv2, 0, Always, 0, 0},
    {"madvise", SYS_madvise, 0, Equal, 2, kDontNeedLocked},
    {"rseq", SYS_rseq, 0, Always, 0, 0},
    {"sched_setattr", SYS_sched_setattr, 0, Always, 0, 0},
    {"mlockall", SYS_mlockall, 0, Always, 0, 0},
    {"bpf", SYS_bpf, EPERM, Always, 0, 0},
    {"namespaces", SYS_unshare, EPERM, Always, 0, 0},
    {"namespaces", SYS_setns, EPERM, Always, 0, 0},
    {"namespaces", SYS_clone, EPERM, AnyBit, 0, 0},
    {"mount", SYS_mount, EPERM, Always, 0, 0},
    {"mount", SYS_umount2, EPERM, Always, 0, 0},
    {"ipv6", SYS_socket, 0, Equal, 0, AF_INET6},
};

enum { kRules = sizeof rules / sizeof *rules };

static struct sock_filter program[kMost];
static unsigned short length;
static int error = ENOSYS;

static void add(struct sock_filter line) {
  program[length++] = line;
}

static void load(size_t offset) {
  add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

static void refuse(const struct Rule* rule, int with) {
  const int jump = rule->when == AnyBit ? BPF_JSET : BPF_JEQ;
  load(offsetof(struct seccomp_data, nr));
  const unsigned char length_of_rest = rule->when == Always ? 1 : 3;
  add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)rule->call, 0,
                                   length_of_rest));
  if (rule->when != Always) {
    load(offsetof(struct seccomp_data, args) + (size_t)rule->argument * 8);
    add((struct sock_filter)BPF_JUMP(BPF_JMP | jump | BPF_K, rule->value, 0, 1));
  }
  add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)with));
}

static int take_away(const char* what) {
  int found = 0;
  for (const struct Rule* rule = rules; rule < rules + kRules; ++rule) {
    int with = strcmp(what, rule->name) == 0 ? error : 0;
    if (strcmp(what, "docker") == 0) with = rule->docker;
    if (with != 0 && rule->call == SYS_socket) with = EAFNOSUPPORT;
    if (with == 0 || length + 8 > kMost) continue;
    refuse(rule, with);
    found = 1;
  }
  return found;
}

static int parse(int argc, char** argv) {
  int word = 1;
  for (; word < argc && strcmp(argv[word], "--") != 0; ++word) {
    if (strcmp(argv[word], "--error") == 0 && word + 1 < argc) {
      error = strcmp(argv[++word], "EPERM") == 0 ? EPERM : ENOSYS;
    } else if (!take_away(argv[word])) {
      return argc;
    }
  }
  return word + 1;
}

static int usage(void) {
  fputs(
      "usage: without_calls [--error ENOSYS|EPERM] CALL... -- PROGRAM [ARGUMENT...]\ncalls: docker",
      stderr);
  for (int i = 0; i < kRules; ++i) {
    if (i == 0 || strcmp(rules[i].name, rules[i - 1].name) != 0)
      fprintf(stderr, " %s", rules[i].name);
  }
  fputs("\n", stderr);
  return 125;
}

int main(int argc, char** argv) {
  for (int i = 0; i < kRules; ++i) {
    if (rules[i].when == AnyBit) rules[i].value = kNamespaces;
  }
  const int word = parse(argc, argv);
  if (word >= argc) return usage();
  add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const struct sock_fprog filter = {length, program};
  if (geteuid() != 0) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    perror("without_calls");
    return 125;
  }
  execvp(argv[word], argv + word);
  perror(argv[word]);
  return 127;
}
