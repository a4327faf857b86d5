// Speaks PMI-1: puts BYTES of values and enters the barrier, ROUNDS times with a pause of PAUSE_MS,
// checks that a value of the last rank arrived each time, and prints a line in rank 0. A task may
// put 256 KiB in all. Usage: pmi_put BYTES ROUNDS PAUSE_MS
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VALUE = 890 };

static int server;
static char line[20000];

static const char* ask(const char* text) {
  size_t length = strlen(text), count = 0;
  char byte;
  if (write(server, text, length) != (ssize_t)length) exit(3);
  while (count < sizeof line - 1 && read(server, &byte, 1) == 1 && byte != '\n')
    line[count++] = byte;
  line[count] = '\0';
  return line;
}

static const char* space(void) {
  static char name[300];
  const char* at = strstr(ask("cmd=get_my_kvsname\n"), "kvsname=");
  if (at == NULL || sscanf(at, "kvsname=%299s", name) != 1) exit(4);
  return name;
}

int main(int count, char** words) {
  if (count < 4 || getenv("PMI_FD") == NULL) return 2;
  static char value[VALUE + 1], command[2000];
  const int rank = atoi(getenv("PMI_RANK")), size = atoi(getenv("PMI_SIZE"));
  const int values = atoi(words[1]) / VALUE;
  server = atoi(getenv("PMI_FD"));
  memset(value, 'x', VALUE);
  ask("cmd=init pmi_version=1 pmi_subversion=1\n");
  const char* name = space();
  for (int round = 0; round < atoi(words[2]); ++round) {
    usleep((useconds_t)atoi(words[3]) * 1000);
    for (int i = 0; i < values; ++i) {
      snprintf(command, sizeof command, "cmd=put kvsname=%s key=k%d.%d.%d value=%s\n", name, round,
               rank, i, value);
      if (strstr(ask(command), "rc=0") == NULL) return 5;
    }
    if (strstr(ask("cmd=barrier_in\n"), "rc=0") == NULL) return 6;
    snprintf(command, sizeof command, "cmd=get kvsname=%s key=k%d.%d.%d\n", name, round, size - 1,
             values - 1);
    if (values > 0 && strstr(ask(command), value) == NULL) return 7;
  }
  if (rank == 0) printf("all rounds done\n");
  ask("cmd=finalize\n");
  return 0;
}
