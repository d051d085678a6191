// The HTML page: one file, from the viewer of web/ and what there is to say.
//
// What people read first (verdict, balance, changes, trust, top sites) is plain HTML; the recordings travel beside it
// as compressed columns (view_payload.h), from which the viewer draws.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/recording_view.h"
#include "report/chart.h"
#include "report/document.h"
#include "report/drawing.h"
#include "report/ranks_document.h"
#include "types/finding.h"
#include "words/words.h"

namespace oomscope {

// The first screen about one recording. Sentences are those of the terminal.
struct Answer {
  std::string kind;     // "gpu_oom_capacity"
  std::string instant;  // "backward of the second step", or empty
  std::string verdict;
  std::string outlook;  // what would have made it fit, or empty
  struct BalancePart {
    std::string id;  // of the words: "balance.live-tensors"
    std::string name;
    std::optional<int64_t> bytes;
    std::string source;
    bool is_outside = false;  // of this process's allocator
  };
  std::vector<BalancePart> balance;
  int64_t balance_total = 0;
  struct Change {
    std::string text;
    std::string effect;
    std::vector<std::string> commands;
  };
  std::vector<Change> changes;  // best first
  std::string proof;
  std::string trust;
  std::vector<std::string> caveats;
  std::vector<Section> details;
  Drawing step;  // memory over one step, with and without the measure that helps most; height 0: not known
};
[[nodiscard]] Answer answer_of(const Diagnosis& diagnosis, const Changes& changes, std::vector<Finding> findings,
                               const std::string& path, Language language);

struct PageRecording {
  std::string name;
  RecordingView view;
};

struct Page {
  std::string title;  // file names
  Language language = Language::english;
  std::vector<Section> before;  // of the ranks, or all of it where there is no answer
  std::optional<RanksReport> ranks;
  std::optional<Answer> answer;
  std::vector<SignedPart> differences;    // of two recordings, by line of code
  std::vector<Section> after;             // of a log beside the recording
  std::vector<PageRecording> recordings;  // the answer's; two for a difference
};

[[nodiscard]] std::string render_page(const Page& page);

// For the page and for Markdown: the sites that hold most at the instant, and what each step needed and left.
[[nodiscard]] std::string sites_title(const RecordingView& view, Language language);
[[nodiscard]] Table sites_table(const RecordingView& view, size_t most, Language language);
[[nodiscard]] Table steps_table(const RecordingView& view, size_t most, Language language);

}  // namespace oomscope
