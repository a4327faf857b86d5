// Provides a user database that never answers for one user; launcher_test preloads it into the
// launcher.
#include <dlfcn.h>
#include <pwd.h>
#include <unistd.h>

extern "C" passwd* getpwuid(uid_t user) {
  constexpr uid_t kNeverAnswered = 65533;
  while (user == kNeverAnswered) pause();
  const auto real = reinterpret_cast<passwd* (*)(uid_t)>(dlsym(RTLD_NEXT, "getpwuid"));
  return real(user);
}
