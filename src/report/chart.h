// Charts as drawings: a stacked timeline, and a balance as one bar. For files, and for the page where no script runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/recording_view.h"
#include "report/drawing.h"
#include "words/words.h"

namespace oomscope {

struct ChartSize {
  double width = 1200;
  double height = 420;
  size_t columns = 560;  // shares of the events; each shows its most
};

// A stacked timeline of anything: layers from the bottom up, all as long as `least`.
struct StackedTimeline {
  std::string title;
  struct Layer {
    std::string name;
    std::string colour;
    std::vector<int64_t> bytes;
  };
  std::vector<Layer> layers;
  std::vector<int64_t> reserved;  // a line above; may be empty
  struct Mark {
    double at = 0;  // 0 to 1 over the width
    std::string text;
    bool is_failure = false;
    int64_t bytes = 0;  // where it stands
  };
  std::vector<Mark> marks;
  struct Band {
    double begin = 0;
    double end = 0;
  };
  std::vector<Band> bands;  // shaded
  struct Limit {
    int64_t bytes = 0;
    std::string text;
  };
  std::vector<Limit> limits;  // dashed lines across
  std::string left_label;
  std::string right_label;
  std::string reserved_name;
  int64_t room_bytes = 0;  // the axis reaches at least so far: timelines that are compared share one
};

[[nodiscard]] StackedTimeline timeline_of(const RecordingView& view, Layers by, const std::string& title,
                                          size_t columns, Language language);
[[nodiscard]] Drawing draw_timeline(const StackedTimeline& timeline, const ChartSize& size);

struct BalancePart {
  std::string name;
  std::string colour;
  int64_t bytes = 0;
};
// `below`: draws at that height and makes the drawing taller.
void add_balance(const std::vector<BalancePart>& parts, const std::string& title, Drawing& drawing);

struct SignedPart {
  std::string name;
  int64_t bytes = 0;  // more (to the right) or less (to the left)
};
// One bar a part, from a middle line, with its exact text. Empty parts give an empty drawing.
[[nodiscard]] Drawing draw_differences(const std::vector<SignedPart>& parts, const std::string& title);

// What was drawn elsewhere, moved to (x, y); below what there is, which makes the drawing taller.
void append(const Drawing& part, double x, double y, Drawing& to);
void append_below(const Drawing& part, Drawing& to);

// The distance of marks on an axis up to `most`, at most `count` of them: 1, 2 or 5 of a power of ten MiB or GiB.
[[nodiscard]] int64_t axis_step(int64_t most_bytes, int count);
// "2 GiB", "0.5 GiB", "200 MiB".
[[nodiscard]] std::string axis_text(int64_t bytes, int64_t most_bytes);

}  // namespace oomscope
