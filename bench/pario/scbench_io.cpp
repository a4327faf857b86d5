// Runs the measurements of `scbench io`: the same work by system calls, by libpario and on a mount,
// in turns.
//
//   scbench-io data VOLUME DIRECTORY SERVER_DIRECTORY MOUNT MEGABYTES ROUNDS   MOUNT "-": none
//   scbench-io names VOLUME THREADS COUNT
//   scbench-io stream VOLUME MEGABYTES AHEAD SERVER_DIRECTORY...   one file, with AHEAD records in
//                                              flight
//   scbench-io sizes VOLUME DIRECTORY ROUNDS   files of each size, each in one call, by the library
//                                              and by system calls
//   scbench-io endless VOLUME MEGABYTES        writes and reads until it is terminated
//   scbench-io transports VOLUME MEGABYTES ROUNDS   cached data by each transport
//   scbench-io ranks VOLUME RANKS RECORDS ROUNDS    strided records of 4 KB, each rank a process:
//                                              one by one, and coordinated
//
// The program prints one JSON object per round.
#include "pario/client/pario.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::size_t kRecord = std::size_t{1} << 20;

void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "scbench-io: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(125);
}

int check(std::int64_t result, const char* what) {
  if (result < 0) errno = static_cast<int>(-result);
  require(result >= 0, what);
  return static_cast<int>(result);
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Drops the kernel's cache of all files below `path`.
void drop_caches(const std::string& path) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (!entry.is_regular_file()) continue;
    const int fd = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    ::fdatasync(fd);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
  }
}

// Describes one way to write and read a file in records of 1 MB, one after the other.
struct Way {
  std::string name;
  std::function<void(std::vector<char>&, std::size_t)> write;  // and makes the data stable
  std::function<void(std::vector<char>&, std::size_t)> read;
};

Way system_calls(std::string name, const std::string& path) {
  const auto write = [path](std::vector<char>& memory, std::size_t records) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    require(fd >= 0, path);
    for (std::size_t i = 0; i < records; ++i) {
      require(::pwrite(fd, memory.data(), kRecord, static_cast<off_t>(i * kRecord)) == kRecord,
              path);
    }
    require(::fsync(fd) == 0 && ::close(fd) == 0, path);
  };
  const auto read = [path](std::vector<char>& memory, std::size_t records) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    require(fd >= 0, path);
    for (std::size_t i = 0; i < records; ++i) {
      require(::pread(fd, memory.data(), kRecord, static_cast<off_t>(i * kRecord)) == kRecord,
              path);
    }
    ::close(fd);
  };
  return {std::move(name), write, read};
}

constexpr std::size_t kUsualAhead = 4;

// Keeps several records in flight, as a program does that knows its next reads; `memory` must hold
// all of them.
void run_library(pario_volume* volume, std::vector<char>& memory, std::size_t records,
                 bool is_write, bool is_stable = true) {
  const std::size_t ahead = memory.size() / kRecord;
  pario_file* file = nullptr;
  check(pario_open(volume, "bench", O_RDWR | O_CREAT, 0600, &file), "open");
  std::vector<pario_transfer*> running(ahead, nullptr);
  for (std::size_t i = 0; i < records + ahead; ++i) {
    pario_transfer*& slot = running[i % ahead];
    if (slot != nullptr) require(pario_wait(slot) == kRecord, "cannot transfer a record");
    slot = nullptr;
    if (i >= records) continue;
    const pario_extent extent{i * kRecord, kRecord};
    char* place = memory.data() + (i % ahead) * kRecord;
    check(is_write ? pario_start_write(file, &extent, 1, place, &slot)
                   : pario_start_read(file, &extent, 1, place, &slot),
          "start");
  }
  if (is_write && is_stable) check(pario_fsync(file), "fsync");
  pario_close(file);
}

Way library(pario_volume* volume) {
  return {
      "library",
      [volume](std::vector<char>& memory, std::size_t n) { run_library(volume, memory, n, true); },
      [volume](std::vector<char>& memory, std::size_t n) {
        run_library(volume, memory, n, false);
      }};
}

void print_round(const char* what, const std::vector<Way>& ways, const std::vector<double>& took,
                 std::size_t records) {
  std::printf("{\"what\": \"%s\"", what);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    std::printf(", \"%s\": %.1f", ways[i].name.c_str(), static_cast<double>(records) / took[i]);
  }
  std::printf("}\n");
}

int data(pario_volume* volume, char** words) {
  const std::string directory = words[0];
  const std::string servers = words[1];
  std::vector<Way> ways{system_calls("system", directory + "/bench"), library(volume)};
  if (words[2] != std::string("-")) {
    ways.push_back(system_calls("mount", std::string(words[2]) + "/mounted"));
  }
  const std::size_t records = std::strtoul(words[3], nullptr, 10);
  const int rounds = std::atoi(words[4]);
  std::vector<char> memory(kUsualAhead * kRecord, 'x');
  std::vector<double> took(ways.size());
  const auto time_all = [&](const char* what, bool is_write, bool is_cold) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      if (is_cold) drop_caches(servers);
      if (is_cold) drop_caches(directory);
      took[i] = seconds_of(
          [&] { is_write ? ways[i].write(memory, records) : ways[i].read(memory, records); });
    }
    print_round(what, ways, took, records);
  };
  for (const Way& way : ways) way.write(memory, records);  // allocates
  for (int round = 0; round < rounds; ++round) {
    time_all("write", true, false);
    time_all("read", false, true);
    time_all("cached_read", false, false);
  }
  return 0;
}

int names(pario_volume* volume, char** words) {
  const int threads = std::atoi(words[0]);
  const int count = std::atoi(words[1]);
  const auto each = [&](const std::function<void(const std::string&)>& work) {
    const double took = seconds_of([&] {
      std::vector<std::thread> running;
      for (int thread = 0; thread < threads; ++thread) {
        running.emplace_back([&, thread] {
          for (int i = 0; i < count; ++i) {
            work("f" + std::to_string(thread) + "." + std::to_string(i));
          }
        });
      }
      for (std::thread& thread : running) thread.join();
    });
    return threads * count / took;
  };
  const double creates = each([&](const std::string& path) {
    pario_file* file = nullptr;
    check(pario_open(volume, path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600, &file), "create");
    pario_close(file);
  });
  const double stats = each([&](const std::string& path) {
    struct stat status {};
    check(pario_stat(volume, path.c_str(), &status), "stat");
  });
  const double unlinks =
      each([&](const std::string& path) { check(pario_unlink(volume, path.c_str()), "unlink"); });
  std::printf("{\"creates\": %.0f, \"stats\": %.0f, \"unlinks\": %.0f}\n", creates, stats, unlinks);
  return 0;
}

int stream(pario_volume* volume, char** words) {
  const std::size_t records = std::strtoul(words[0], nullptr, 10);
  std::vector<char> memory(std::strtoul(words[1], nullptr, 10) * kRecord, 'x');
  const double written = seconds_of([&] { run_library(volume, memory, records, true); });
  for (char** directory = words + 2; *directory != nullptr; ++directory) drop_caches(*directory);
  const double read = seconds_of([&] { run_library(volume, memory, records, false); });
  std::printf("{\"write\": %.2f, \"read\": %.2f}\n", static_cast<double>(records) / written,
              static_cast<double>(records) / read);
  return 0;
}

// Holds the microseconds of one write and one read of a whole file of `size` bytes.
struct Access {
  double write = 0;
  double read = 0;
};

Access access_library(pario_volume* volume, std::vector<char>& memory) {
  pario_file* file = nullptr;
  check(pario_open(volume, "sizes", O_RDWR | O_CREAT, 0600, &file), "open");
  const auto size = static_cast<std::int64_t>(memory.size());
  Access took;
  took.write =
      1e6 * seconds_of([&] {
        require(pario_pwrite(file, memory.data(), memory.size(), 0) == size, "cannot write");
      });
  took.read = 1e6 * seconds_of([&] {
                require(pario_pread(file, memory.data(), memory.size(), 0) == size, "cannot read");
              });
  pario_close(file);
  return took;
}

Access access_system(const std::string& path, std::vector<char>& memory) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  require(fd >= 0, path);
  const auto size = static_cast<ssize_t>(memory.size());
  Access took;
  took.write = 1e6 * seconds_of([&] {
                 require(::pwrite(fd, memory.data(), memory.size(), 0) == size, path);
               });
  took.read = 1e6 * seconds_of([&] {
                require(::pread(fd, memory.data(), memory.size(), 0) == size, path);
              });
  ::close(fd);
  return took;
}

int sizes(pario_volume* volume, char** words) {
  constexpr std::size_t kSmallest = 8192;
  constexpr std::size_t kLargest = std::size_t{8} << 20;
  const std::string path = std::string(words[0]) + "/sizes";
  const int rounds = std::atoi(words[1]);
  for (std::size_t size = kSmallest; size <= kLargest; size *= 2) {
    std::vector<char> memory(size, 'x');
    for (int round = 0; round <= rounds; ++round) {
      const Access library = access_library(volume, memory);
      const Access system = access_system(path, memory);
      if (round == 0) continue;  // allocates
      std::printf(
          "{\"size\": %zu, \"write_us\": %.1f, \"read_us\": %.1f, "
          "\"system_write_us\": %.1f, \"system_read_us\": %.1f}\n",
          size, library.write, library.read, system.write, system.read);
    }
  }
  return 0;
}

int transports(const char* description, char** words) {
  const std::size_t records = std::strtoul(words[0], nullptr, 10);
  const int rounds = std::atoi(words[1]);
  const std::vector<std::string> names{"tcp", "pm", "udp"};
  std::vector<pario_volume*> volumes(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    ::setenv("PARIO_TRANSPORT", names[i].c_str(), 1);
    check(pario_open_volume(description, &volumes[i], nullptr, 0), "open");
  }
  std::vector<char> memory(kUsualAhead * kRecord, 'x');
  for (pario_volume* volume : volumes) run_library(volume, memory, records, true);
  for (int round = 0; round < rounds; ++round) {
    for (const bool is_write : {false, true}) {
      std::printf("{\"what\": \"%s\"", is_write ? "write" : "read");
      for (std::size_t i = 0; i < names.size(); ++i) {
        const double took =
            seconds_of([&] { run_library(volumes[i], memory, records, is_write, false); });
        std::printf(", \"%s\": %.1f", names[i].c_str(), static_cast<double>(records) / took);
      }
      std::printf("}\n");
    }
  }
  for (pario_volume* volume : volumes) pario_close_volume(volume);
  return 0;
}

// Lets the ranks start each measurement together.
struct SharedBarrier {
  pthread_barrier_t barrier;
};

SharedBarrier* make_barrier(unsigned ranks) {
  void* memory = ::mmap(nullptr, sizeof(SharedBarrier), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "cannot map memory");
  auto* shared_barrier = static_cast<SharedBarrier*>(memory);
  pthread_barrierattr_t shared;
  pthread_barrierattr_init(&shared);
  pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared_barrier->barrier, &shared, ranks);
  return shared_barrier;
}

constexpr std::size_t kSmallRecord = 4096;

struct RankOf {
  unsigned rank = 0;
  unsigned ranks = 0;
  std::size_t records = 0;
  int rounds = 0;
};

// Returns the seconds from the common start of all ranks to the end of the last one.
double together(SharedBarrier& shared_barrier, const std::function<void()>& work) {
  pthread_barrier_wait(&shared_barrier.barrier);
  return seconds_of([&] {
    work();
    pthread_barrier_wait(&shared_barrier.barrier);
  });
}

void run_rank(const char* description, const RankOf& of, SharedBarrier& shared_barrier) {
  pario_volume* volume = nullptr;
  pario_file* file = nullptr;
  pario_group* group = nullptr;
  check(pario_open_volume(description, &volume, nullptr, 0), "open");
  check(pario_open(volume, "ranks", O_RDWR | O_CREAT, 0600, &file), "open");
  const std::string name = "ranks" + std::to_string(::getppid());
  check(pario_join_group(volume, name.c_str(), of.rank, of.ranks, &group), "join");
  std::vector<pario_extent> extents;
  for (std::size_t i = 0; i < of.records; ++i) {
    extents.push_back({(i * of.ranks + of.rank) * kSmallRecord, kSmallRecord});
  }
  std::vector<char> memory(of.records * kSmallRecord, 'x');
  const auto size = static_cast<std::int64_t>(memory.size());
  const auto each = [&](bool is_write) {
    for (std::size_t i = 0; i < of.records; ++i) {
      char* place = memory.data() + i * kSmallRecord;
      const auto done = is_write ? pario_pwrite(file, place, kSmallRecord, extents[i].offset)
                                 : pario_pread(file, place, kSmallRecord, extents[i].offset);
      require(done == static_cast<ssize_t>(kSmallRecord), "cannot transfer a record");
    }
  };
  const auto all = [&](bool is_write) {
    const auto done =
        is_write ? pario_write_all(group, file, extents.data(), extents.size(), memory.data())
                 : pario_read_all(group, file, extents.data(), extents.size(), memory.data());
    require(done == size, "cannot transfer coordinated records");
  };
  all(true);  // allocates
  for (int round = 0; round < of.rounds; ++round) {
    for (const bool is_write : {true, false}) {
      const double independent = together(shared_barrier, [&] { each(is_write); });
      const double coordinated = together(shared_barrier, [&] { all(is_write); });
      if (of.rank != 0) continue;
      const double megabytes = static_cast<double>(memory.size() * of.ranks) / kRecord;
      std::printf("{\"what\": \"%s\", \"independent\": %.2f, \"coordinated\": %.2f}\n",
                  is_write ? "write" : "read", megabytes / independent, megabytes / coordinated);
    }
  }
  pario_leave_group(group);
  pario_close(file);
  pario_close_volume(volume);
}

int ranks(const char* description, char** words) {
  const auto count = static_cast<unsigned>(std::atoi(words[0]));
  RankOf of{0, count, std::strtoul(words[1], nullptr, 10), std::atoi(words[2])};
  SharedBarrier* shared_barrier = make_barrier(count);
  std::vector<pid_t> children;
  for (; of.rank < count; ++of.rank) {
    const pid_t child = ::fork();
    require(child >= 0, "cannot fork");
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    run_rank(description, of, *shared_barrier);
    std::exit(0);
  }
  int failed = 0;
  for (unsigned i = 0; i < count; ++i) {
    int status = 0;
    ::wait(&status);
    if (status == 0 || failed != 0) continue;
    failed = 125;
    // The other ranks would wait for ever.
    for (const pid_t child : children) ::kill(child, SIGKILL);
  }
  return failed;
}

// Runs a job that writes and reads a file of its own until it is terminated.
int endless(pario_volume* volume, char** words) {
  const std::size_t records = std::strtoul(words[0], nullptr, 10);
  std::vector<char> memory(kRecord, 'x');
  pario_file* file = nullptr;
  const std::string name = "endless" + std::to_string(::getpid());
  check(pario_open(volume, name.c_str(), O_RDWR | O_CREAT, 0600, &file), "open");
  for (std::size_t i = 0;; i = (i + 1) % records) {
    check(pario_pwrite(file, memory.data(), kRecord, i * kRecord), "write");
    check(pario_pread(file, memory.data(), kRecord, i * kRecord), "read");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  if (what == "transports" && argc == 5) return transports(argv[2], argv + 3);
  if (what == "ranks" && argc == 6) return ranks(argv[2], argv + 3);
  pario_volume* volume = nullptr;
  std::vector<char> message(512);
  if (argc <= 2 || pario_open_volume(argv[2], &volume, message.data(), message.size()) != 0) {
    std::fprintf(stderr, "scbench-io: %s\n",
                 argc <= 2 ? "usage: see bench/pario/scbench_io.cpp" : message.data());
    return 125;
  }
  int code = 125;
  if (what == "data" && argc == 8) code = data(volume, argv + 3);
  if (what == "names" && argc == 5) code = names(volume, argv + 3);
  if (what == "stream" && argc >= 6) code = stream(volume, argv + 3);
  if (what == "endless" && argc == 4) code = endless(volume, argv + 3);
  if (what == "sizes" && argc == 5) code = sizes(volume, argv + 3);
  pario_close_volume(volume);
  return code;
}
