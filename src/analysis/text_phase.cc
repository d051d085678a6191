// The phase of a failure in a log: its frames tell, from the innermost outwards, what the program was doing; progress
// lines before it tell the rest.
#include <algorithm>
#include <array>
#include <charconv>

#include "analysis/text_facts.h"
#include "base/text.h"

namespace oomscope {
namespace {

template <size_t N>
bool contains_any(std::string_view text, const std::array<std::string_view, N>& parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return contains(text, part); });
}

// Of a function's name: train_and_save_model does more than that.
template <size_t N>
bool starts_with_any(std::string_view text, const std::array<std::string_view, N>& parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return text.starts_with(part); });
}

// "ema" in "self.ema.update(" and "model_ema", not in "schema".
bool contains_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_letter(text[at - 1])) && (end == text.size() || !is_letter(text[end]))) return true;
  }
  return false;
}

bool is_saving(const TextFrame& frame) {
  static constexpr std::array<std::string_view, 13> kCode = {
      "torch.save(", "save_checkpoint",     "save_pretrained(",      "save_model(",     ".save_state(",
      "save_file(",  "_save_checkpoint",    "gather_state",          "full_state_dict", "get_model_state_dict(",
      "dcp.save(",   "summon_full_params(", "consolidate_state_dict"};
  static constexpr std::array<std::string_view, 7> kFunctions = {
      "save_checkpoint", "save_pretrained",  "save_model",         "_save_checkpoint",
      "save_state",      "_full_post_state", "_zero3_consolidated"};
  return contains_any(frame.code, kCode) || starts_with_any(frame.function, kFunctions) ||
         (contains(frame.file, "serialization.py") && (frame.function == "save" || frame.function == "_save"));
}

// A copy of the weights that stays beside them: an average, the best so far.
bool is_average(const TextFrame& frame) {
  const std::string all = lower(frame.code + " " + frame.function + " " + frame.file);
  static constexpr std::array<std::string_view, 4> kParts = {"modelema", "averagedmodel", "swa_utils",
                                                             "moving_average"};
  return contains_word(all, "ema") || contains_any(all, kParts);
}

bool takes_state(const TextFrame& frame) {
  return contains(frame.code, "state_dict()") && !contains(frame.code, "load_state_dict");
}

bool is_copying(const TextFrame& frame) {
  return contains(frame.code, "deepcopy(") || (frame.function == "deepcopy" && contains(frame.file, "copy.py"));
}

bool is_resuming(const TextFrame& frame) {
  static constexpr std::array<std::string_view, 5> kCode = {"load_checkpoint", "resume_from", "load_state_dict(",
                                                            "torch.load(", "load_state("};
  return contains_any(frame.code, kCode) || contains(frame.function, "load_checkpoint") || frame.function == "resume" ||
         frame.function.starts_with("resume_from") ||
         (contains(frame.file, "serialization.py") && contains(frame.function, "load"));
}

// "optimizer.step(", "opt_g.step(", "scaler.step(", "engine.step(", not "scheduler.step(".
bool calls_step(std::string_view code) {
  const size_t call = code.find(".step(");
  if (call == std::string_view::npos) return false;
  size_t begin = call;
  while (begin > 0 && (is_letter(code[begin - 1]) || code[begin - 1] == '_' || code[begin - 1] == '.')) --begin;
  static constexpr std::array<std::string_view, 3> kSteppers = {"opt", "scaler", "engine"};
  return contains_any(code.substr(begin, call - begin), kSteppers);
}

bool is_optimizer(const TextFrame& frame) {
  return contains(frame.file, "torch/optim/") || calls_step(frame.code) || contains(frame.function, "optimizer_step") ||
         frame.function == "initialize_optimizer_states";
}

// The optimizer makes its state when it first steps.
bool makes_state(const TextFrame& frame) {
  static constexpr std::array<std::string_view, 4> kFunctions = {"_init_group", "_init_state", "init_state",
                                                                 "initialize_optimizer_states"};
  return is_optimizer(frame) && (starts_with_any(frame.function, kFunctions) || contains(frame.code, "zeros_like("));
}

// The model is given to what spreads it: buckets, broadcasts, shards.
bool is_wrapping(const TextFrame& frame) {
  static constexpr std::array<std::string_view, 6> kCode = {
      "DataParallel(", "DDP(", "FSDP(", "deepspeed.initialize(", "fully_shard(", "accelerator.prepare("};
  static constexpr std::array<std::string_view, 4> kFunctions = {"__init__", "_ddp_init_helper", "_sync_module_states",
                                                                 "_sync_params_and_buffers"};
  return contains_any(frame.code, kCode) ||
         (contains(frame.file, "nn/parallel/distributed.py") && starts_with_any(frame.function, kFunctions));
}

bool is_backward(const TextFrame& frame) {
  return contains(frame.file, "torch/autograd/") || contains(frame.code, ".backward(") || frame.function == "backward";
}

bool is_evaluation(const TextFrame& frame) {
  const std::string function = lower(frame.function);
  static constexpr std::array<std::string_view, 5> kParts = {"valid", "evaluat", "eval_", "_eval", "test_"};
  static constexpr std::array<std::string_view, 4> kCode = {"val_loader", "valid_loader", "validate(", "evaluate("};
  const bool trains = contains(function, "train");  // test_train_step
  return (!trains && contains_any(function, kParts)) || function == "eval" || function == "test" || function == "val" ||
         contains_any(frame.code, kCode);
}

bool is_data(const TextFrame& frame) {
  return contains(frame.file, "torch/utils/data/") || contains(frame.function, "collate") ||
         contains(frame.function, "__getitem__") || contains(frame.function, "pin_memory") ||
         contains(frame.file, "multiprocessing/queues.py");
}

bool is_name(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

// "model", "self.unet", "model_b", "net2", not "model_inputs".
bool names_model(std::string_view name) {
  const auto names = [](std::string_view text) {
    return text.ends_with("model") || text.ends_with("net") || text.ends_with("network");
  };
  if (names(name)) return true;
  if (!name.empty()) name.remove_suffix(1);
  if (name.ends_with('_')) name.remove_suffix(1);
  return names(name);
}

// "model_b.to(device)", "net = build(config).cuda()".
bool moves_model(std::string_view code) {
  const std::string text = lower(code);
  const size_t call = std::min(text.find(".to("), text.find(".cuda("));
  if (call == std::string::npos) return false;
  const size_t end = std::min(call, text.find(" = "));  // what is made and moved is called by its new name
  size_t begin = end;
  while (begin > 0 && is_name(text[begin - 1])) --begin;
  return names_model(std::string_view(text).substr(begin, end - begin));
}

bool is_loading(const TextFrame& frame) {
  static constexpr std::array<std::string_view, 2> kCode = {"from_pretrained(", "load_model("};
  return contains_any(frame.code, kCode) || moves_model(frame.code) || contains(frame.function, "from_pretrained") ||
         contains(frame.function, "load_model") || contains(frame.code, "_apply(") || frame.function == "_apply";
}

bool is_loss(const TextFrame& frame) {
  static constexpr std::array<std::string_view, 5> kCode = {"cross_entropy(", "criterion(", "compute_loss(", "loss_fn(",
                                                            "nll_loss("};
  return contains_any(frame.code, kCode) || contains(frame.file, "nn/modules/loss.py") ||
         contains(frame.function, "cross_entropy");
}

bool is_generation(const TextFrame& frame) {
  return frame.function == "generate" || contains(frame.code, ".generate(") || contains(frame.function, "prefill") ||
         contains(frame.function, "decode_step") || contains(frame.file, "generation/utils.py");
}

bool is_forward(const TextFrame& frame) {
  return frame.function == "forward" || frame.function == "_call_impl" || frame.function == "__call__" ||
         contains(frame.code, "model(") || contains(frame.code, "net(");
}

bool is_start(const TextFrame& frame) {
  static constexpr std::array<std::string_view, 7> kParts = {
      "cuda.init(", "_lazy_init", "_cuda_init", "set_device(", "import torch", "init_process_group(", "init_device("};
  return contains_any(frame.code, kParts) || frame.function == "_lazy_init" || contains(frame.function, "init_device");
}

struct PhaseTest {
  Phase phase;
  bool (*holds)(const TextFrame&);
};

// What decides first stands first: a validation's forward is evaluation, a checkpoint's copy is saving.
constexpr std::array<PhaseTest, 15> kTests = {{{Phase::saving, is_saving},
                                               {Phase::backward, is_backward},
                                               {Phase::optimizer_step, is_optimizer},
                                               {Phase::resume, is_resuming},
                                               {Phase::between_steps, is_average},
                                               {Phase::saving, takes_state},
                                               {Phase::between_steps, is_copying},
                                               {Phase::load, is_wrapping},
                                               {Phase::data_loading, is_data},
                                               {Phase::evaluation, is_evaluation},
                                               {Phase::generation, is_generation},
                                               {Phase::loss, is_loss},
                                               {Phase::load, is_loading},
                                               {Phase::forward, is_forward},
                                               {Phase::start, is_start}}};

// One behind the innermost frame that it holds for; 0: none.
size_t depth_of(const std::vector<TextFrame>& frames, bool (*holds)(const TextFrame&)) {
  const auto innermost = std::find_if(frames.rbegin(), frames.rend(), holds);
  return static_cast<size_t>(frames.rend() - innermost);
}

// A step with a closure, as Lightning and LBFGS have it, calls the model: what is inside decides.
bool is_step_itself(const std::vector<TextFrame>& frames) {
  return depth_of(frames, is_optimizer) > std::max(depth_of(frames, is_forward), depth_of(frames, is_loss));
}

Phase phase_by_frames(std::vector<TextFrame> frames) {
  for (TextFrame& frame : frames) std::replace(frame.file.begin(), frame.file.end(), '\\', '/');  // of Windows
  for (const PhaseTest& test : kTests) {
    const bool holds = test.phase == Phase::optimizer_step ? is_step_itself(frames)
                                                           : std::any_of(frames.begin(), frames.end(), test.holds);
    if (holds) return test.phase;
  }
  return Phase::unknown;
}

Phase phase_by_progress(const std::vector<std::string>& lines) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const std::string text = lower(*line);
    static constexpr std::array<std::string_view, 3> kSaving = {"saving", "save checkpoint", "writing checkpoint"};
    static constexpr std::array<std::string_view, 3> kEvaluation = {"validat", "evaluat", "eval "};
    static constexpr std::array<std::string_view, 3> kLoading = {"loading checkpoint shards", "loading model",
                                                                 "load weights"};
    if (contains_any(text, kSaving)) return Phase::saving;
    if (contains_any(text, kEvaluation)) return Phase::evaluation;
    if (contains(text, "resum")) return Phase::resume;
    if (contains_any(text, kLoading)) return Phase::load;
    if (contains(text, "epoch") || contains(text, "it/s") || contains(text, "s/it") || contains(text, "loss"))
      return Phase::unknown;  // a step
  }
  return Phase::unknown;
}

// Of bars that count no steps of training.
constexpr std::array<std::string_view, 5> kOtherBars = {"load", "download", "map", "valid", "eval"};

bool tells_of_training(std::string_view line) {
  const std::string text = lower(line);
  if (contains_any(text, kOtherBars)) return contains(text, "loss");
  return contains(text, "loss") || contains(text, "it/s]") || contains(text, "s/it]") || contains(text, "epoch");
}

// What stands behind a word that counts: 2 of " 2", " #2" and " b", nothing of " 7b" and " 2.1".
std::optional<int> count_behind(std::string_view text) {
  const size_t begin = text.find_first_not_of(" #:");
  if (begin == 0 || begin == std::string_view::npos) return std::nullopt;
  text.remove_prefix(begin);
  int count = lower(text.front()) - 'a' + 1;
  size_t end = 1;
  if (!is_letter(text.front())) {
    const std::from_chars_result read = std::from_chars(text.data(), text.data() + text.size(), count);
    if (read.ec != std::errc{}) return std::nullopt;
    end = static_cast<size_t>(read.ptr - text.data());
  }
  const std::string_view rest = text.substr(end);
  const bool goes_on = !rest.empty() && (is_name(rest[0]) || (rest[0] == '.' && rest.size() > 1 && is_digit(rest[1])));
  return goes_on ? std::nullopt : std::optional<int>(count);
}

// "Fold 2", "Running config 2", "Training model B", "trial 0 finished": a job makes several models, and the first is
// behind.
bool tells_of_an_earlier_model(std::string_view line) {
  static constexpr std::array<std::string_view, 6> kWords = {"fold", "trial", "config", "run", "experiment", "model"};
  static constexpr std::array<std::string_view, 3> kDone = {"finished", "done", "complete"};
  const std::string text = lower(line);
  const int first_telling = contains_any(text, kDone) ? 0 : 2;
  for (std::string_view word : kWords) {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      const bool is_whole = at == 0 || !(is_name(text[at - 1]) || text[at - 1] == '-');
      if (is_whole && count_behind(std::string_view(text).substr(at + word.size())).value_or(-1) >= first_telling)
        return true;
    }
  }
  return false;
}

// "step 12", "[447/1736]", "12/100": the number of the last line that has one.
std::optional<int> step_of(const std::vector<std::string>& lines) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const std::string text = lower(*line);
    for (std::string_view word : {"step ", "step: ", "step=", "iteration ", "iter: ", "iter "}) {
      const size_t at = text.find(word);
      if (at == std::string::npos) continue;
      int number = 0;
      const char* begin = text.data() + at + word.size();
      const std::from_chars_result read = std::from_chars(begin, text.data() + text.size(), number);
      if (read.ec == std::errc{} && number >= 0) return number;
    }
  }
  return std::nullopt;
}

// The number before the slash of a bar of training: "1/100 [00:03<05:00, 3.00s/it]".
std::optional<int> bar_count(const std::string& text) {
  const size_t bracket = text.find(" [");
  const size_t slash = bracket == std::string::npos ? bracket : text.rfind('/', bracket);
  if (slash == std::string::npos || slash == 0 || !contains(text, "it") || contains_any(text, kOtherBars))
    return std::nullopt;
  size_t begin = slash;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  int number = 0;
  const std::from_chars_result read = std::from_chars(text.data() + begin, text.data() + slash, number);
  return read.ec == std::errc{} ? std::optional<int>(number) : std::nullopt;
}

// One step of training was finished and no more: its bar says 1, or a single line of a step 0 or 1 was printed.
bool one_step_is_done(const std::vector<std::string>& lines) {
  int step_lines = 0;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const std::string text = lower(*line);
    if (const std::optional<int> count = bar_count(text)) return *count == 1;
    if (contains(text, "loss") && step_of({*line})) ++step_lines;
  }
  return step_lines == 1 && step_of(lines).value_or(2) <= 1;
}

// No bar of training has moved, and no step was printed.
bool none_is_done(const std::vector<std::string>& lines) {
  return std::none_of(lines.begin(), lines.end(), [](const std::string& line) {
    const std::string text = lower(line);
    return bar_count(text).value_or(0) > 0 || (contains(text, "loss") && step_of({line}));
  });
}

bool is_of_a_step(Phase phase) {
  return phase == Phase::unknown || phase == Phase::forward || phase == Phase::loss || phase == Phase::backward;
}

// Of the steps of training the first one.
bool is_first_of_its_kind(const TextPhase& found, const TextMessage& message) {
  if (found.phase == Phase::optimizer_step && std::any_of(message.frames.begin(), message.frames.end(), makes_state))
    return true;
  const bool is_step = found.phase == Phase::forward || found.phase == Phase::loss || found.phase == Phase::backward ||
                       found.phase == Phase::optimizer_step;
  return is_step &&
         std::any_of(message.before.rbegin(), message.before.rend(),
                     [](const std::string& line) { return bar_count(lower(line)) == 0; }) &&
         none_is_done(message.before);
}

}  // namespace

TextPhase phase_of(const TextMessage& message) {
  TextPhase found;
  found.phase = phase_by_frames(message.frames);
  const Phase told = phase_by_progress(message.before);
  // A loop over the validation set shows in frames as a mere forward where its function has another name.
  const bool is_inner = found.phase == Phase::forward || found.phase == Phase::loss || found.phase == Phase::unknown;
  if (is_inner && told != Phase::unknown) found.phase = told;
  found.after_training = std::any_of(message.before.begin(), message.before.end(), tells_of_training);
  const bool copies = std::any_of(message.frames.begin(), message.frames.end(), is_copying);
  if (found.phase == Phase::between_steps && copies && !found.after_training) found.phase = Phase::load;
  const bool is_later_model =
      found.after_training || std::any_of(message.before.begin(), message.before.end(), tells_of_an_earlier_model);
  if (is_later_model && found.phase == Phase::load) found.phase = Phase::next_model;
  found.step = step_of(message.before);
  found.is_first = is_first_of_its_kind(found, message);
  if (is_of_a_step(found.phase) && one_step_is_done(message.before)) found.phase = Phase::second_step;
  return found;
}

}  // namespace oomscope
