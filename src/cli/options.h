// What the command line said, as values: sizes parsed, cards looked up, choices checked.
//
// Filled by parse_arguments; the commands read it and nothing else of argv.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/diff.h"
#include "analysis/show.h"
#include "types/gpu_names.h"
#include "words/words.h"

namespace oomscope {

struct GlobalOptions {
  bool json = false;
  bool strict = false;  // exit 3 where the evidence is incomplete
};

// Options that every command over a snapshot takes.
struct SnapshotArguments {
  std::string path;           // "-" is standard input
  std::optional<int> device;  // --device N
  std::string rules;          // --rules NAME; empty: found by trying
  Language language = Language::english;
};

struct ExplainListener;

struct WhyArguments {
  std::vector<std::string> evidence;
  std::optional<int> device;
  std::string rules;
  std::optional<GpuMemory> gpu;      // the whole card
  std::optional<int64_t> cap_bytes;  // the most this process's allocator may reserve
  bool no_sweep = false;             // leave the replays under other settings out
  Language language = Language::english;
  bool explain = false;                       // not evidence, but what is known
  std::string explain_id;                     // of a cause, remedy or claim; empty: the table of symptoms
  const ExplainListener* listener = nullptr;  // who else wants to know what was found (report)
};

struct ReportArguments {
  WhyArguments why;         // what is asked about the evidence
  std::string output_path;  // its ending says what is written
  bool redact = false;      // hide paths, user and host names
};

struct ShowArguments {
  SnapshotArguments snapshot;
  Moment at = Moment::peak;
  int64_t event = 0;  // with Moment::event: index into the device's events
  GroupBy by = GroupBy::stack;
  int64_t top = 15;  // rows shown before "[N others]"
};

struct VerifyArguments {
  SnapshotArguments snapshot;
  std::optional<int64_t> cap_bytes;  // else inferred
  std::optional<std::string> conf;   // absent: the recorded settings
  std::string stats_path;            // memory_stats as JSON, or empty
};

struct ReplayArguments {
  SnapshotArguments snapshot;
  std::optional<std::string> conf;   // absent: the recorded settings; "": PyTorch's defaults
  std::optional<int64_t> cap_bytes;  // absent: no limit
  std::optional<GpuMemory> gpu;
  bool sweep = false;
  bool smallest_cap = false;
};

struct DiffArguments {
  SnapshotArguments a;
  SnapshotArguments b;
  DiffMoment at;
  Language language = Language::english;
  int64_t top = 15;  // rows shown before "[N others]"
};

struct FitArguments {
  std::vector<std::string> recordings;
  std::optional<std::vector<int64_t>> values;  // one a recording; else read from them
  std::optional<int64_t> at;                   // a value to predict besides
  std::string picture_path;                    // of one step; empty: none
  std::optional<int64_t> ranks;                // processes that the job may be divided over
  std::string framework;                       // of the lines to paste; empty: plain PyTorch
  bool no_measures = false;                    // leave the replays with measures out
  std::optional<std::string> conf;             // as of replay
  std::optional<int64_t> cap_bytes;
  std::optional<GpuMemory> gpu;
  std::optional<int> device;
  std::string rules;
  Language language = Language::english;
};

enum class BaselineAction { save, list, compare };

struct BaselineArguments {
  BaselineAction action = BaselineAction::list;
  std::string path;      // of peaks.json; empty for list
  std::string name;      // empty: command and settings identify it
  std::string project;   // empty: the git repository of the working folder
  std::string store;     // empty: OOMSCOPE_STORE, or the user's data folder
  std::string junit;     // empty: none is written
  bool or_save = false;  // compare: the first run of a name becomes its baseline
  double tolerance_percent = 2;
  Language language = Language::english;
};

// One of them is meant: the one of the command that was given.
struct Options {
  GlobalOptions global;
  WhyArguments why;
  ShowArguments show;
  VerifyArguments verify;
  ReplayArguments replay;
  DiffArguments diff;
  FitArguments fit;
  ReportArguments report;
  BaselineArguments baseline;
};

}  // namespace oomscope
