// Which snapshots of a folder are the ranks of one job? By their names alone.
//
// Everybody names them otherwise: rank0.pickle, snapshot_rank_3.pickle.gz, rank3_step100.pickle, trace-0.pickle,
// rank0/snapshot.pickle, node0_rank1.pickle, global_rank12.pkl. A rank that left several snapshots counts once: the one
// taken at its failure ("oom", "exit"), else the last by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/caveat.h"
#include "base/result.h"

namespace oomscope {

struct RankFile {
  std::string path;
  std::string job;  // the folders above, where several jobs lie together; else empty
  std::optional<int64_t> node;
  std::optional<int64_t> rank;  // empty: the name has no number
  bool says_rank = false;       // a word of the name does; else the number is one at its end, if there is one
  bool is_oom = false;          // by its name it was taken at a failure
};

struct RankFiles {
  std::vector<RankFile> files;  // by node, rank, then name in natural order
  Caveats caveats;              // what was left aside
};

// Does the name end like a snapshot's: .pickle or .pkl, perhaps packed (.gz, .zst, .xz)?
[[nodiscard]] bool is_snapshot_name(const std::string& path);

// What a path says; the parts nearest to the file's name count first.
[[nodiscard]] RankFile read_rank_name(const std::string& path);

// The rank and node that a log's path names: rank3.log, node1/rank0/train.log, attempt_0/3/stderr.log of torchrun.
struct LogRank {
  std::optional<int> rank;
  std::optional<int> node;
};
[[nodiscard]] LogRank read_log_rank(const std::string& path);

// As much of each path as it takes to tell the files apart: their names, with folders where names are equal, and the
// folders alone where all files have one name.
[[nodiscard]] std::vector<std::string> distinct_names(const std::vector<std::string>& paths);

// a2 before a10.
[[nodiscard]] bool natural_less(const std::string& a, const std::string& b);

// Orders the files and keeps one a rank. Files without a number are left aside where others have one, but for those
// that were taken at a failure.
[[nodiscard]] RankFiles choose_rank_files(const std::vector<std::string>& paths);

// Snapshots below the folder, down to a few levels; links to folders are not followed. Errors: file-unreadable,
// no-snapshots, too-many-files.
[[nodiscard]] Result<RankFiles> find_rank_files(const std::string& folder);

// Several files that differ in nothing but their rank: one job's.
[[nodiscard]] bool look_like_ranks(const std::vector<std::string>& paths);

}  // namespace oomscope
