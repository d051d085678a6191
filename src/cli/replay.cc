// oomscope replay SNAPSHOT: what would have happened under other settings, or in less memory.
#include "cli/arguments.h"
#include "cli/commands.h"

namespace oomscope {
namespace {

Result<Done> finish(const RawOptions& raw, Options& options) {
  ReplayArguments& replay = options.replay;
  replay.snapshot.path = raw.path;
  replay.snapshot.rules = raw.rules;
  replay.sweep = raw.sweep;
  replay.smallest_cap = raw.smallest_cap;
  if (raw.has_conf) replay.conf = raw.conf;
  if (raw.has_conf && raw.sweep) {
    return Error{.code = "bad-usage",
                 .what = "--sweep tries settings of its own; --conf does not go with it",
                 .where = "replay",
                 .hint = "oomscope replay --help"};
  }
  if (raw.sweep && raw.smallest_cap) {
    return Error{.code = "bad-usage",
                 .what = "--sweep and --smallest-cap are two questions; ask one",
                 .where = "replay",
                 .hint = "oomscope replay --help"};
  }
  OOM_TRY([[maybe_unused]] const Done cap, read_cap(raw.cap, replay.cap_bytes));
  OOM_TRY([[maybe_unused]] const Done gpu, read_gpu(raw.gpu, replay.gpu));
  return read_device(raw.device, replay.snapshot.device);
}

}  // namespace

Command replay_command() {
  return Command{
      .name = "replay",
      .summary = "what would have happened under other settings, or in less memory",
      .examples = {"oomscope replay oom.pickle --conf expandable_segments:True",
                   "oomscope replay oom.pickle --cap 20GiB", "oomscope replay oom.pickle --sweep",
                   "oomscope replay oom.pickle --smallest-cap"},
      .options = {{"SNAPSHOT", "", "a snapshot; - is standard input", &RawOptions::path},
                  {"--conf", "S", "settings as PYTORCH_ALLOC_CONF takes them; '' is PyTorch's defaults",
                   &RawOptions::conf},
                  {"--cap", "SIZE", "the most this process's allocator may reserve; else no limit", &RawOptions::cap},
                  {"--gpu", "SIZE|NAME", "the card: a size (24GiB) or a name (\"RTX 4090\")", &RawOptions::gpu},
                  {"--sweep", "", "try the settings that matter, best first", &RawOptions::sweep},
                  {"--smallest-cap", "", "the smallest memory it completes in", &RawOptions::smallest_cap},
                  {"--device", "N", "the device, where a snapshot holds several", &RawOptions::device},
                  {"--rules", "NAME", "PyTorch release to model (torch-2.6); else found by trying",
                   &RawOptions::rules}},
      .finish = finish,
      .run = nullptr};
}

}  // namespace oomscope
