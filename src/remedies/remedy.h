// The one catalogue of changes: what may be done about memory, when it applies, what it saves and what to paste.
// Snapshot causes, text evidence, fit and check all draw from it; no remedy is described anywhere else.
//
// To add one, NAME being its id with underscores:
//   1. src/remedies/NAME.cc defines `Remedy NAME()`; copy the nearest file.
//   2. remedies.cc lists it, and catalogue.h declares it.
//   3. src/words/{en,zh}/remedies.json get "remedy.ID.text" (what to do), ".cost" and ".not-when" (when it would not
//      help although it is popular).
//   4. causes.cc names it under each cause that it helps against, the best first; the pages docs/causes/CAUSE.md and
//      docs/zh/causes/CAUSE.md explain it.
// remedies_test.cc and tools/check_docs.py say what is missing; tools/check_snippets.py compiles what is to be pasted.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "types/finding.h"
#include "types/kind.h"
#include "types/limits_in_force.h"
#include "types/phase.h"

namespace oomscope {

// How the effect of a remedy is found.
enum class Effect : uint8_t {
  figures,    // arithmetic on what the evidence says
  replay,     // the recording replayed under other settings
  transform,  // the recording's requests changed, then replayed
  unknown,    // known to help; how much cannot be said beforehand
};
[[nodiscard]] std::string_view name_of(Effect effect);

// Bytes of the case at the instant that counts, each as far as it is known.
struct Figures {
  std::optional<int64_t> parameters = {};
  std::optional<int64_t> gradients = {};
  std::optional<int64_t> optimizer_state = {};
  std::optional<int64_t> activations = {};
  std::optional<int64_t> logits = {};            // and what the loss makes of them
  std::optional<int64_t> attention_matrix = {};  // s × s weights
  std::optional<int64_t> step_temporaries = {};  // of the optimizer's step
  std::optional<int64_t> host_batch = {};        // one batch as the data loader holds it
  std::optional<int64_t> host_limit = {};        // the machine's or container's
};

// What is known of the case that a remedy is asked about. Empty: not known. Written with designated initialisers.
struct Circumstances {
  Kind kind = Kind::gpu_oom;
  Phase phase = Phase::unknown;
  std::string torch_version = {};                // "2.3"; decides the names in snippets
  std::string variant = {};                      // of a remedy that has several: id of the measure ("accumulate-8")
  std::optional<int64_t> number = {};            // of the variant: micro-batches, every so manieth layer, processes
  std::optional<int> compute_capability = {};    // 80 for sm_80
  std::optional<bool> expandable_segments = {};  // on already?
  std::string framework = {};  // "lightning", "transformers", "accelerate", "deepspeed", "vllm", "llama.cpp", or empty
  std::string settings = {};   // the allocator settings to propose; empty: the usual ones
  std::optional<int> num_workers = {};
  std::optional<int> prefetch_factor = {};  // batches a worker holds ready; torch's default is 2
  std::optional<int> batch_size = {};       // samples of one batch
  std::optional<int> ranks_on_host = {};
  std::optional<bool> pin_memory = {};
  std::optional<int> visible_devices = {};
  std::optional<int> failing_card = {};   // index among the visible ones
  std::optional<int> emptiest_card = {};  // of a listing, as nvidia-smi counts; not the one that failed
  bool is_16_bit = false;                 // computes in 16 bits already
  bool is_inference = false;              // passes without a backward, whose graphs nobody keeps
  bool has_momentum_alone =
      false;               // its optimizer keeps one number a parameter, as SGD with momentum does; else Adam's
  bool has_images = true;  // goes through convolutions; else through layers that take tokens
  bool is_notebook = false;
  bool is_container = false;
  bool is_slurm = false;
  std::string scheduler = {};    // "pbs", "sge", "lsf", "condor" where its own words name it, or empty
  bool is_evicted = false;       // a pod, for its node's sake
  bool only_some_nodes = false;  // the job may use the memory of some NUMA nodes alone
  bool is_windows = false;
  bool is_cmd = false;          // Windows' older prompt
  bool is_image_build = false;  // of a container
  bool is_rocm = false;
  std::set<std::string, std::less<>> in_force = {};  // remedies that the case has already
  LimitsInForce limits = {};
  Figures figures = {};
};

// Where lines are pasted.
enum class Place : uint8_t { bash, powershell, cmd, python, notebook, dockerfile, sbatch };
[[nodiscard]] std::string_view name_of(Place place);

struct Snippet {
  Place place;
  std::string lines;  // as pasted, lines parted by newlines
};

struct Recipe;  // recipe.h

struct Remedy {
  std::string_view id;
  std::string_view page;  // the cause whose page in docs/causes/ explains it
  Effect effect = Effect::unknown;
  // May it help in such a case, on such hardware, with such a torch?
  bool (*applies)(const Circumstances&) = nullptr;
  // Null or empty: nothing to paste, or there is a recipe.
  std::vector<Snippet> (*snippets)(const Circumstances&) = nullptr;
  // Where there are no snippets: what may be applied together with others.
  Recipe (*recipe)(const Circumstances&) = nullptr;
  // Bytes that it takes off, from the figures alone. Null or empty: they do not say.
  std::optional<int64_t> (*saved_bytes)(const Figures&) = nullptr;
  // What to do in this case; null: "remedy.ID.text" as it stands.
  Phrase (*text)(const Circumstances&) = nullptr;
};

// Sorted by id.
[[nodiscard]] std::span<const Remedy> remedies();
[[nodiscard]] const Remedy* find_remedy(std::string_view id);

// Lines to paste, for every place; empty: there are none.
[[nodiscard]] std::vector<Snippet> snippets_of(const Remedy& remedy, const Circumstances& circumstances);

// The remedy as a finding proposes it: text, lines to paste for the places that the case can use, and what it saves
// where the figures tell. `values` fill further placeholders of the text.
[[nodiscard]] Change change_of(const Remedy& remedy, const Circumstances& circumstances,
                               std::vector<PhraseValue> values = {});

// May it help, and is it not in force already?
[[nodiscard]] bool is_open(const Remedy& remedy, const Circumstances& circumstances);

// Those of `ids` that are open, in the order given. An id that the catalogue does not have is left out.
[[nodiscard]] std::vector<Change> changes_of(std::initializer_list<std::string_view> ids,
                                             const Circumstances& circumstances);

}  // namespace oomscope
