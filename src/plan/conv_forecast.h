// What scratch the convolutions of a recording ask for at another batch: by the table of measured ones, as far as it
// agrees with the recordings.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "plan/convolutions.h"

namespace oomscope {

// One use with what the recordings show of it, the base first; batches as many as they had.
struct RecordedConv {
  ConvUse use;
  std::vector<ConvEvidence> evidence;
};

// Bytes of a use's operands at the batch asked for.
struct OperandBytes {
  int64_t input = 0;
  int64_t output = 0;
};

class ConvForecast {
 public:
  // Empty where the table tells of these convolutions what the recording does not show: another card, another cuDNN.
  static std::optional<ConvForecast> make(std::vector<RecordedConv> convolutions, int64_t element_bytes, int64_t batch);

  [[nodiscard]] const std::vector<RecordedConv>& convolutions() const { return convolutions_; }
  // Of the kinds of convolutions, the share whose recorded scratch is what the table tells.
  [[nodiscard]] double agreement() const { return agreement_; }
  // Is it known which kernel each of them takes?
  [[nodiscard]] bool is_sure(int64_t batch) const;
  [[nodiscard]] bool is_sure(size_t index, int64_t batch) const;

  // Scratch of convolution `index`. `lot` from 0 to 1 draws among the kernels that are likely; below 0 the likeliest.
  [[nodiscard]] int64_t scratch(size_t index, int64_t batch, OperandBytes operands, double lot) const;
  // The least and the most of what is not unlikely.
  struct Range {
    int64_t low = 0;
    int64_t high = 0;
  };
  [[nodiscard]] Range range(size_t index, int64_t batch, OperandBytes operands) const;
  // Convolutions of one group are the same, and so are their draws.
  [[nodiscard]] size_t group(size_t index) const { return groups_[index]; }

 private:
  using Choices = std::shared_ptr<const std::vector<ConvChoice>>;
  [[nodiscard]] ConvQuestion question(size_t index, int64_t batch) const;
  [[nodiscard]] Choices choices(size_t index, int64_t batch) const;
  [[nodiscard]] int64_t bytes(size_t index, const ConvKernel& kernel, int64_t batch, OperandBytes operands) const;
  [[nodiscard]] double agreement_in(ConvFormat format);
  void find_groups();

  // Asked for from several threads.
  struct Known {
    std::mutex mutex;
    std::map<std::pair<size_t, int64_t>, Choices> choices;  // by group and batch
  };

  std::vector<RecordedConv> convolutions_;
  std::vector<size_t> groups_;  // by convolution: index of the first that is the same
  ConvFormat format_ = ConvFormat::full;
  double agreement_ = 0;
  int64_t batch_ = 1;  // of the base
  std::shared_ptr<Known> known_ = std::make_shared<Known>();
};

}  // namespace oomscope
