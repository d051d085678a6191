// oomscope why EVIDENCE...: why did it run out, and what would have made it fit.
#include "cli/arguments.h"
#include "cli/commands.h"

namespace oomscope {
namespace {

Result<Done> finish(const RawOptions& raw, Options& options) {
  if (raw.evidence.empty()) {
    return Error{.code = "bad-usage", .what = "no evidence given", .where = "why", .hint = "oomscope why oom.pickle"};
  }
  options.why.evidence = raw.evidence;
  options.why.rules = raw.rules;
  OOM_TRY([[maybe_unused]] const Done device, read_device(raw.device, options.why.device));
  OOM_TRY([[maybe_unused]] const Done cap, read_cap(raw.cap, options.why.cap_bytes));
  return read_gpu(raw.gpu, options.why.gpu);
}

}  // namespace

Command why_command() {
  return Command{
      .name = "why",
      .summary = "why did it run out of memory, and what would have made it fit",
      .examples = {"oomscope why oom.pickle", "oomscope why oom.pickle --gpu \"RTX 4090\"",
                   "zstdcat oom.pickle.zst | oomscope why -"},
      .options = {{"EVIDENCE", "", "snapshots; - is standard input", &RawOptions::evidence},
                  {"--gpu", "SIZE|NAME", "the card: a size (24GiB) or a name (\"RTX 4090\")", &RawOptions::gpu},
                  {"--cap", "SIZE", "the most this process's allocator may reserve", &RawOptions::cap},
                  {"--device", "N", "the device, where a snapshot holds several", &RawOptions::device},
                  {"--rules", "NAME", "PyTorch release to model (torch-2.6); else found by trying",
                   &RawOptions::rules}},
      .finish = finish,
      .run = nullptr};
}

}  // namespace oomscope
