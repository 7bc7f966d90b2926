// SPDX-License-Identifier: BSD-3-Clause
// Reads exported vectors: read_vectors FILE.tsv. Prints their number, bytes, and FNV-1a of all bytes.
#include <stdio.h>
#include <string.h>
enum { ID, SCHEME, DTYPE, N, K, X, CODES, SCALES, Y, FLAGS, COLUMNS };
static char line[1 << 20];

// Turns digits into bytes in place, and returns how many. Several planes follow each other.
static size_t unhex(char* text) {
  size_t count = 0;
  unsigned byte;
  for (const char* at = text; sscanf(at, "%2x", &byte) == 1; at += at[2] == ',' ? 3 : 2)
    text[count++] = (char)byte;
  return count;
}

int main(int argc, char** argv) {
  FILE* file = argc == 2 ? fopen(argv[1], "r") : NULL;
  unsigned long long vectors = 0, bytes = 0, fnv = 0xCBF29CE484222325ull;
  if (!file || !fgets(line, sizeof line, file)) return 1;
  for (; fgets(line, sizeof line, file); ++vectors) {
    char* cell[COLUMNS] = {strtok(line, "\t")};
    for (int i = 1; i < COLUMNS; ++i) cell[i] = strtok(NULL, "\t");
    for (int i = X; i <= Y; ++i)
      for (size_t at = 0, size = unhex(cell[i]); at < size; ++at, ++bytes)
        fnv = (fnv ^ (unsigned char)cell[i][at]) * 0x100000001B3ull;
  }
  return printf("%llu vectors, %llu bytes, fnv %016llx\n", vectors, bytes, fnv) < 0;
}
