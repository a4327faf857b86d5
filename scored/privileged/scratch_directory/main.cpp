// scored-scratch-directory --job FD USER makes SCORED_SCRATCH_DIR/USER, which belongs to the user
// and is private. FD is not used. Only root may write in SCORED_SCRATCH_DIR, so an entry of that
// name was made by this program. No link is followed below it.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

int refuse(const char* what, const char* path) {
  fprintf(stderr, "<3>scored-scratch-directory: %s %s: %s\n", what, path, strerror(errno));
  return 1;
}

bool is_safe(const struct stat& status) {
  errno = EPERM;
  return status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* place = getenv("SCORED_SCRATCH_DIR");
  if (place == nullptr || *place == '\0') return 0;
  unsigned long user = 0;
  char rest = 0;
  const bool is_number = argc == 4 && *argv[3] >= '0' && *argv[3] <= '9' &&
                         sscanf(argv[3], "%10lu%c", &user, &rest) == 1;
  errno = EINVAL;
  if (!is_number || user >= static_cast<uid_t>(-1)) return refuse("user", argc == 4 ? argv[3] : "");

  struct stat status {};

  const int parent = open(place, kDirectory);
  if (parent < 0 || fstat(parent, &status) != 0) return refuse("open", place);
  if (!is_safe(status)) return refuse("others may write in", place);
  char name[16];
  snprintf(name, sizeof name, "%lu", user);
  if (mkdirat(parent, name, 0700) != 0 && errno != EEXIST)
    return refuse("make a directory in", place);
  const int own = openat(parent, name, kDirectory);
  if (own < 0 || fstat(own, &status) != 0) return refuse("open the user's directory in", place);
  errno = EPERM;
  if (status.st_uid != user && status.st_uid != geteuid()) return refuse("another's", place);
  const bool is_done =
      fchown(own, static_cast<uid_t>(user), static_cast<gid_t>(-1)) == 0 && fchmod(own, 0700) == 0;
  return is_done ? 0 : refuse("give the user a directory in", place);
}
