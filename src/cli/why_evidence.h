// What `why` was given, sorted: snapshots and folders by their paths, logs read, error lines that were typed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "types/snapshot.h"
#include "types/text_evidence.h"
#include "words/words.h"

namespace oomscope {

struct UnreadFile {
  std::string path;
  Error error;
};

struct GivenEvidence {
  std::vector<std::string> snapshots;  // paths of files and of folders with snapshots
  std::optional<Snapshot> piped;       // of standard input
  std::vector<TextEvidence> logs;
  std::vector<UnreadFile> unread;  // passed over: a rank that printed nothing does not keep the others from being read
};

// Says of each, up to a few, why it was passed over.
void add_unread(const std::vector<UnreadFile>& unread, Caveats& caveats);

[[nodiscard]] bool is_folder(const std::string& path);

// Fails where a file is not there, and where nothing that was given can be read.
// A word that is no file and holds a message that we know is the message itself; a mistyped path is not.
// `language` is for the line that asks to paste.
[[nodiscard]] Result<GivenEvidence> sort_evidence(const std::vector<std::string>& words, Language language);

}  // namespace oomscope
