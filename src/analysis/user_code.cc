#include "analysis/user_code.h"

#include <array>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"

namespace oomscope {
namespace {

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// Where pip, conda and distributions put packages, and the standard library.
constexpr std::array<std::string_view, 8> kLibraryFolders = {
    "site-packages/", "dist-packages/", "site-packages\\", "dist-packages\\",
    "/lib/python3",   "/torch/",        "\\torch\\",       "/lib64/python3",
};

bool has_place(const Frame& frame, std::string_view file) {
  return frame.line != 0 && frame.line != std::numeric_limits<uint64_t>::max() && !file.empty() && file != "??";
}

}  // namespace

bool is_library_frame(const Snapshot& snapshot, const Frame& frame) {
  const std::string_view file = snapshot.strings.text(frame.filename);
  if (!has_place(frame, file) || file.front() == '<') return true;
  const bool is_python = ends_with(file, ".py") || contains(file, "ipykernel") || contains(file, "ipython-input");
  if (!is_python) return true;
  for (std::string_view folder : kLibraryFolders) {
    if (contains(file, folder)) return true;
  }
  return false;
}

std::optional<Frame> user_frame(const Snapshot& snapshot, StackId stack) {
  const StackTable& stacks = snapshot.stacks;
  const uint32_t index = static_cast<uint32_t>(stack);
  if (index + 1 >= stacks.starts.size()) return std::nullopt;
  std::optional<Frame> fallback;
  for (uint32_t i = stacks.starts[index]; i < stacks.starts[index + 1]; ++i) {
    const Frame& frame = stacks.frames[stacks.frame_ids[i]];
    if (!is_library_frame(snapshot, frame)) return frame;
    if (!fallback && has_place(frame, snapshot.strings.text(frame.filename))) fallback = frame;
  }
  return fallback;
}

std::string frame_text(const Snapshot& snapshot, const Frame& frame) {
  std::string_view file = snapshot.strings.text(frame.filename);
  const size_t slash = file.find_last_of("/\\");
  if (slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return fmt::format("{}:{} {}", file, frame.line, snapshot.strings.text(frame.name));
}

std::string site_text(const Snapshot& snapshot, StackId stack) {
  const std::optional<Frame> frame = user_frame(snapshot, stack);
  return frame ? frame_text(snapshot, *frame) : "";
}

std::string call_text(const Snapshot& snapshot, StackId stack) {
  const StackTable& stacks = snapshot.stacks;
  const uint32_t index = static_cast<uint32_t>(stack);
  if (index + 1 >= stacks.starts.size()) return "";
  uint32_t outside = stacks.starts[index];
  for (uint32_t i = stacks.starts[index]; i < stacks.starts[index + 1]; ++i) {
    const std::string_view name = snapshot.strings.text(stacks.frames[stacks.frame_ids[i]].name);
    if (name == "_wrapped_call_impl" || name == "_call_impl" || name == "forward") outside = i + 1;
  }
  if (outside == stacks.starts[index]) return "";
  for (uint32_t i = outside; i < stacks.starts[index + 1]; ++i) {
    const Frame& frame = stacks.frames[stacks.frame_ids[i]];
    if (!is_library_frame(snapshot, frame)) return frame_text(snapshot, frame);
  }
  return "";
}

}  // namespace oomscope
