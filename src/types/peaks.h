// Peaks: what a run reached, by step and phase, and the circumstances it ran under. All sizes in bytes.
//
// Source: peaks.json of the Python package (docs/formats/peaks.md); the reader is src/evidence/peaks_file.h.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace oomscope {

struct PhasePeak {
  std::string name;  // "forward"; a step's or a run's own peak is "all"
  int64_t allocated_bytes = 0;
  int64_t reserved_bytes = 0;
  bool operator==(const PhasePeak&) const = default;
};

struct Peaks {
  std::string name;     // of the run; may be empty
  std::string command;  // as typed, joined by blanks
  // What may explain a difference: versions, settings, the card; "torch" -> "2.11.0". In the order of the file.
  std::vector<std::pair<std::string, std::string>> environment;
  PhasePeak all;                  // of the whole run
  std::vector<PhasePeak> phases;  // the most of each over all steps, in order of first appearance
  int64_t steps = 0;
};

}  // namespace oomscope
