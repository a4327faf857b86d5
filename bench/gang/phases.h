/* Shared by scbench-phases and its MPI version: options, work, blocking, times.
 *
 * All ranks begin at AT on the monotonic clock and go through PIECES pieces. Until AT they work and
 * block without being measured, so that the nodes know how the job behaves.
 *
 *   alone      work, block
 *   irregular  the same; both lengths are random, from 0 to twice the given ones
 *   messages   work, block, exchange a message with the next rank
 *   serial     rank 0 blocks and works while the others wait for it; then all work
 *
 * Work is WORK_NS of processor time: it takes longer where a processor is shared or taken away.
 * Blocking is a sleep of BLOCK_NS, or reading a file past the page cache until the rank was blocked
 * for BLOCK_NS; the processor time of reading is part of the next work. */
#ifndef SCORE_BENCH_GANG_PHASES_H
#define SCORE_BENCH_GANG_PHASES_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Reads at the pace of a file system of 128 MB/s per rank. At full speed a disk's interrupts and
 * the host of a virtual machine would take a large part of the processor that handles them. */
#define READ_BYTES 65536
#define READ_EVERY_NS 500000
#define NS_PER_S INT64_C(1000000000)

enum phases_kind { PHASES_ALONE, PHASES_IRREGULAR, PHASES_MESSAGES, PHASES_SERIAL };

struct phases {
  enum phases_kind kind;
  int64_t at_ns;
  int64_t work_ns;
  int64_t block_ns;
  int64_t pieces;
  uint64_t random; /* state of the generator; differs between ranks and jobs */
  int64_t read_ns; /* processor time of reading, since the last work */
  int file;        /* -1: sleep instead */
  void* buffer;
  off_t position;
};

static int64_t clock_ns(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (int64_t)time.tv_sec * NS_PER_S + (int64_t)time.tv_nsec;
}

static int64_t now_ns(void) {
  return clock_ns(CLOCK_MONOTONIC);
}

static int64_t used_ns(void) {
  return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Returns the mean length, or with PHASES_IRREGULAR a random one. */
static int64_t phases_length(struct phases* phases, int64_t mean_ns) {
  if (phases->kind != PHASES_IRREGULAR) return mean_ns;
  phases->random = phases->random * UINT64_C(6364136223846793005) + 1442695;
  return (int64_t)((phases->random >> 32) % (uint64_t)(2 * mean_ns));
}

static void phases_work(struct phases* phases) {
  const int64_t end = used_ns() + phases_length(phases, phases->work_ns) - phases->read_ns;
  volatile int i;
  phases->read_ns = 0;
  while (used_ns() < end) {
    for (i = 0; i < 1000; ++i) continue;
  }
}

static void phases_sleep_until(int64_t at_ns) {
  const struct timespec at = {.tv_sec = at_ns / NS_PER_S, .tv_nsec = at_ns % NS_PER_S};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void phases_read_until_blocked(struct phases* phases, int64_t length) {
  const int64_t begin = now_ns(), used = used_ns();
  int64_t next = begin;
  while (now_ns() - begin - phases->read_ns < length) {
    if (pread(phases->file, phases->buffer, READ_BYTES, phases->position) == READ_BYTES) {
      phases->position += READ_BYTES;
    } else {
      phases->position = 0;
    }
    phases_sleep_until(next += READ_EVERY_NS);
    phases->read_ns = used_ns() - used;
  }
}

static void phases_block(struct phases* phases) {
  const int64_t length = phases_length(phases, phases->block_ns);
  if (phases->file >= 0) {
    phases_read_until_blocked(phases, length);
  } else {
    phases_sleep_until(now_ns() + length);
  }
}

static void phases_wrong(void) {
  fprintf(stderr, "usage: KIND AT_NS WORK_NS BLOCK_NS PIECES SEED [FILE]\n");
  exit(2);
}

static void phases_open(struct phases* phases, const char* path) {
  phases->file = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (phases->file < 0) phases->file = open(path, O_RDONLY | O_CLOEXEC); /* as on tmpfs */
  if (phases->file >= 0 && posix_memalign(&phases->buffer, 4096, READ_BYTES) == 0) return;
  perror(path);
  exit(1);
}

static struct phases phases_options(int argc, char** argv) {
  struct phases phases = {.file = -1};
  if (argc < 7 || argc > 8) phases_wrong();
  if (strcmp(argv[1], "messages") == 0) {
    phases.kind = PHASES_MESSAGES;
  } else if (strcmp(argv[1], "serial") == 0) {
    phases.kind = PHASES_SERIAL;
  } else if (strcmp(argv[1], "irregular") == 0) {
    phases.kind = PHASES_IRREGULAR;
  } else if (strcmp(argv[1], "alone") != 0) {
    phases_wrong();
  }
  phases.at_ns = strtoll(argv[2], NULL, 10);
  phases.work_ns = strtoll(argv[3], NULL, 10);
  phases.block_ns = strtoll(argv[4], NULL, 10);
  phases.pieces = strtoll(argv[5], NULL, 10);
  phases.random = strtoull(argv[6], NULL, 10);
  if (argc == 8) phases_open(&phases, argv[7]);
  return phases;
}

static void phases_await_start(struct phases* phases, int rank) {
  phases->random = phases->random * 1000 + (uint64_t)rank;
  while (now_ns() < phases->at_ns) {
    phases_work(phases);
    phases_block(phases);
  }
}

/* Prints the time at which this rank was done: the output of the program. */
static void phases_tell_end(void) {
  printf("%" PRId64 "\n", now_ns());
  fflush(stdout);
}

#endif
