// Reads a benchmark instance of dynamic storage allocation: a header, then lines "id,lower,upper,size" with [lower,
// upper). For tests and benchmarks only; the files are well-formed and lie in OOMSCOPE_DATA/dsa.
#pragma once

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "replay/bounds.h"

namespace oomscope {

// Empty if the file cannot be read.
inline std::vector<Lifetime> read_dsa_csv(const std::string& path) {
  std::vector<Lifetime> lifetimes;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    Lifetime lifetime;
    if (std::sscanf(line.c_str(), "%*d,%" SCNu32 ",%" SCNu32 ",%" SCNd64, &lifetime.begin, &lifetime.end,
                    &lifetime.size_bytes) == 3) {
      lifetimes.push_back(lifetime);
    }
  }
  return lifetimes;
}

}  // namespace oomscope
