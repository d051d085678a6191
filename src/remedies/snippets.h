// Building blocks of remedies: which release, which framework, which place.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "remedies/remedy.h"

namespace oomscope {

// Is torch at least MAJOR.MINOR? An unknown version counts as a current one.
[[nodiscard]] bool torch_is_at_least(const Circumstances& circumstances, int major, int minor);

// Lines of Python: for a file, and for a notebook's cell.
[[nodiscard]] std::vector<Snippet> python(std::string lines);
[[nodiscard]] std::vector<Snippet> bash(std::string lines);
[[nodiscard]] std::vector<Snippet> operator+(std::vector<Snippet> a, const std::vector<Snippet>& b);

// "loader = DataLoader(dataset, batch_size=32, num_workers=2)": the case's own batch, or the name of one.
[[nodiscard]] std::vector<Snippet> loader(const Circumstances& circumstances, std::string_view arguments);

// Twice the limit in GiB, rounded up, as digits; `usual` where no limit is known.
[[nodiscard]] std::string raised_gib(const std::optional<int64_t>& limit_bytes, std::string_view usual);

// Twice the limit, or `usual` where that is more or no limit is known.
[[nodiscard]] std::string raised_count(const std::optional<int64_t>& limit, int64_t usual);

// The case's number of workers, or the name of one.
[[nodiscard]] std::string workers_of(const Circumstances& circumstances);

// An environment variable in every place where one can be set.
[[nodiscard]] std::vector<Snippet> environment(std::string_view name, std::string_view value);

// The variable that this torch reads its allocator settings from. Releases since 2.9 know the new name too, and the
// older one wins where both are set; up to 2.8 there is only the older one, and on ROCm its twin.
[[nodiscard]] std::string_view allocator_variable(const Circumstances& circumstances);

// A process on each card of the machine: torchrun, or what there was before 1.10.
[[nodiscard]] std::string torch_launcher(const Circumstances& circumstances);

// Predicates for Remedy::applies.
[[nodiscard]] bool is_gpu_case(const Circumstances& circumstances);  // the card's memory, or a peak there
// "torch.optim.AdamW, lr=1e-4": the class of the job's optimizer with its arguments, and how both stand in a call.
[[nodiscard]] std::string optimizer_class(const Circumstances& circumstances, std::string_view separator);
[[nodiscard]] bool is_training_case(const Circumstances& circumstances);  // such a case while training
[[nodiscard]] bool is_host_case(const Circumstances& circumstances);      // the machine's or container's memory
[[nodiscard]] bool is_loader_case(const Circumstances& circumstances);    // host memory, shared memory, descriptors
[[nodiscard]] bool may_have_several_cards(const Circumstances& circumstances);
[[nodiscard]] bool is_among(Phase phase, std::initializer_list<Phase> phases);  // or not known
[[nodiscard]] bool is_any_case(const Circumstances& circumstances);

}  // namespace oomscope
