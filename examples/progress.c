/* Every rank counts steps of equal work in a shared file and records when it did not run. The
 * program does not use MPI: rank and size come from SCORE_RANK and SCORE_SIZE. It uses its core
 * fully, on purpose. The layout of the file is in progress.h. The program ends after --seconds, or
 * at SIGTERM. */
#include "progress.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;

static void stop(int signal_number) {
  (void)signal_number;
  stopped = 1;
}

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

struct settings {
  const char* path;
  double seconds; /* 0: until SIGTERM */
  uint64_t gap_ns;
  uint32_t rank, size;
};

static uint32_t number_from(const char* variable, uint32_t otherwise) {
  const char* text = getenv(variable);
  return text != NULL ? (uint32_t)strtoul(text, NULL, 10) : otherwise;
}

static struct settings read_settings(int argc, char** argv) {
  struct settings settings = {.seconds = 10, .gap_ns = 200000};
  settings.rank = number_from("SCORE_RANK", 0);
  settings.size = number_from("SCORE_SIZE", 1);
  int wrong = settings.rank >= settings.size;
  for (int i = 1; i < argc && !wrong; i += 2) {
    const char* value = i + 1 < argc ? argv[i + 1] : NULL;
    if (value == NULL) {
      wrong = 1;
    } else if (strcmp(argv[i], "--counters") == 0) {
      settings.path = value;
    } else if (strcmp(argv[i], "--seconds") == 0) {
      settings.seconds = strtod(value, NULL);
    } else if (strcmp(argv[i], "--gap-us") == 0) {
      settings.gap_ns = (uint64_t)(strtod(value, NULL) * 1000);
    } else {
      wrong = 1;
    }
  }
  if (wrong || settings.path == NULL) {
    fprintf(stderr, "usage: progress --counters PATH [--seconds S] [--gap-us THRESHOLD]\n");
    exit(2);
  }
  return settings;
}

/* All ranks create the same file, so their order does not matter. */
static void* map_file(const struct settings* settings) {
  const uint64_t bytes = progress_file_bytes(settings->size);
  const int file = open(settings->path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  void* memory = MAP_FAILED;
  if (file >= 0 && ftruncate(file, (off_t)bytes) == 0) {
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (memory == MAP_FAILED) {
    fprintf(stderr, "progress: %s: %s\n", settings->path, strerror(errno));
    exit(1);
  }
  close(file);
  struct progress_header* header = memory;
  header->ranks = settings->size;
  header->ring = kProgressRing;
  header->slot_bytes = kProgressSlotBytes;
  header->gap_threshold_ns = settings->gap_ns;
  progress_store(&header->magic, kProgressMagic);
  return memory;
}

static void note_gap(struct progress_slot* slot, uint64_t last, uint64_t now) {
  struct progress_interval* interval = &slot->ring[slot->intervals % kProgressRing];
  interval->start_ns = slot->interval_start_ns;
  interval->end_ns = last;
  progress_store(&slot->intervals, slot->intervals + 1);
  progress_store(&slot->interval_start_ns, now);
  progress_store(&slot->gap_ns, slot->gap_ns + (now - last));
  if (now - last > slot->longest_gap_ns) progress_store(&slot->longest_gap_ns, now - last);
  progress_store(&slot->gaps, slot->gaps + 1);
}

int main(int argc, char** argv) {
  const struct settings settings = read_settings(argc, argv);
  signal(SIGTERM, stop);
  struct progress_slot* slot = progress_slot_of(map_file(&settings), settings.rank);
  memset(slot, 0, sizeof *slot); /* touches its pages as well */
  slot->pid = (uint64_t)getpid();

  uint64_t counter = 0, last = now_ns();
  const uint64_t length = (uint64_t)(settings.seconds * 1e9);
  const uint64_t end = length > 0 ? last + length : UINT64_MAX;
  progress_store(&slot->first_ns, last);
  progress_store(&slot->interval_start_ns, last);
  while (!stopped && last < end) {
    const uint64_t now = now_ns();
    if (now - last > settings.gap_ns) note_gap(slot, last, now);
    last = now;
    progress_store(&slot->last_ns, now);
    progress_store(&slot->counter, ++counter);
  }
  progress_store(&slot->is_done, 1);
  return 0;
}
