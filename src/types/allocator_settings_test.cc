#include "types/allocator_settings.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "base/bytes_text.h"

namespace oomscope {
namespace {

constexpr SettingsParser kUnified = SettingsParser::unified;
constexpr SettingsParser kOld = SettingsParser::torch_2_0;

AllocatorSettings settings_of(std::string_view conf, SettingsParser parser = kUnified) {
  const Result<ParsedSettings> parsed = parse_allocator_settings(conf, parser);
  EXPECT_TRUE(parsed.has_value()) << conf << ": " << (parsed ? "" : parsed.error().what);
  return parsed ? parsed->settings : AllocatorSettings{};
}

Error error_of(std::string_view conf, SettingsParser parser = kUnified) {
  const Result<ParsedSettings> parsed = parse_allocator_settings(conf, parser);
  return parsed ? Error{.code = "none", .what = "", .where = "", .hint = ""} : parsed.error();
}

bool warns(std::string_view conf, std::string_view code, SettingsParser parser = kUnified) {
  const Result<ParsedSettings> parsed = parse_allocator_settings(conf, parser);
  if (!parsed) return false;
  for (const Caveat& caveat : parsed->warnings) {
    if (caveat.code == code) return true;
  }
  return false;
}

TEST(ParseSettings, EmptyStringMeansDefaults) {
  EXPECT_EQ(settings_of(""), AllocatorSettings{});
  EXPECT_EQ(settings_of("", kOld), AllocatorSettings{});
}

TEST(ParseSettings, ReadsEveryKindOfKey) {
  const AllocatorSettings settings = settings_of(
      "max_split_size_mb:128, garbage_collection_threshold:0.6,expandable_segments:True,roundup_power2_divisions:4,"
      "per_process_memory_fraction:0.5,throw_on_cudamalloc_oom:True,backend:native,pinned_num_register_threads:8,"
      "release_lock_on_hipmalloc:True,graph_capture_record_stream_reuse:True");
  EXPECT_EQ(settings.max_split_size_bytes, 128 * kMiB);
  EXPECT_EQ(settings.garbage_collection_threshold, 0.6);
  EXPECT_TRUE(settings.expandable_segments);
  EXPECT_EQ(settings.roundup_power2_divisions[0], 4);
  EXPECT_EQ(settings.roundup_power2_divisions[15], 4);
  EXPECT_EQ(settings.per_process_memory_fraction, 0.5);
  EXPECT_TRUE(settings.throw_on_cudamalloc_oom);
  EXPECT_EQ(settings.pinned_num_register_threads, 8);
  EXPECT_TRUE(settings.release_lock_on_cudamalloc);
  EXPECT_TRUE(settings.graph_capture_record_stream_reuse);
}

TEST(ParseSettings, RoundupListFillsAsTorch211Recorded) {
  // Measured: torch 2.11 writes this table into allocator_settings for this string.
  const AllocatorSettings settings = settings_of("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");
  EXPECT_EQ(settings.roundup_power2_divisions,
            (std::array<int64_t, 16>{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8}));
}

TEST(ParseSettings, OldRoundupFillOverwritesTheLastBoundary) {
  const AllocatorSettings settings = settings_of("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", kOld);
  EXPECT_EQ(settings.roundup_power2_divisions,
            (std::array<int64_t, 16>{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 8, 8, 8, 8, 8, 8}));
  EXPECT_TRUE(warns("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", "settings-roundup-fill", kOld));
}

TEST(ParseSettings, UnlistedRoundupEntriesStayOff) {
  const AllocatorSettings settings = settings_of("roundup_power2_divisions:[2:4,16:8]");
  EXPECT_EQ(settings.roundup_power2_divisions,
            (std::array<int64_t, 16>{4, 4, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(ParseSettings, BoundariesAbove32GiBShareTheLastEntry) {
  EXPECT_EQ(settings_of("roundup_power2_divisions:[1:0,65536:2]").roundup_power2_divisions[15], 2);
}

TEST(ParseSettings, LargeSegmentSizeIsReadFirstAndMovesTheMinima) {
  const AllocatorSettings settings = settings_of("max_split_size_mb:64,large_segment_size_mb:64");
  EXPECT_EQ(settings.large_segment_size_bytes, 64 * kMiB);
  EXPECT_EQ(settings.max_non_split_rounding_bytes, 64 * kMiB);
  EXPECT_EQ(error_of("max_split_size_mb:63,large_segment_size_mb:64").what,
            "CachingAllocator option max_split_size_mb too small, must be >= 64");
  EXPECT_EQ(error_of("large_segment_size_mb:10").what, "CachingAllocator option large_segment_size_mb must be > 10 MB");
}

TEST(ParseSettings, MinimumOfMaxSplitSizeDependsOnTheParser) {
  EXPECT_EQ(settings_of("max_split_size_mb:20").max_split_size_bytes, 20 * kMiB);
  EXPECT_TRUE(warns("max_split_size_mb:20", "settings-max-split-minimum"));
  EXPECT_FALSE(warns("max_split_size_mb:21", "settings-max-split-minimum"));
  EXPECT_EQ(error_of("max_split_size_mb:20", kOld).what,
            "CachingAllocator option max_split_size_mb too small, must be > 20");
  EXPECT_EQ(error_of("max_split_size_mb:19").what,
            "CachingAllocator option max_split_size_mb too small, must be >= 20");
}

TEST(ParseSettings, UnknownKeySaysWhatPyTorchSaysAndSuggests) {
  const Error error = error_of("max_split_size:128");
  EXPECT_EQ(error.code, "settings-unknown-key");
  EXPECT_EQ(error.what, "Unrecognized key 'max_split_size' in Accelerator allocator config.");
  EXPECT_EQ(error.hint, "error.settings.near");
  EXPECT_EQ(error.where, "error.settings.where");
  EXPECT_EQ(error.values, (Values{{"near", "max_split_size_mb"}, {"byte", "0"}, {"conf", "max_split_size:128"}}));
  EXPECT_EQ(error_of("max_split_size:128", kOld).what, "Unrecognized CachingAllocator option: max_split_size");
  EXPECT_EQ(error_of("roundup_bypass_threshold_mb:1").hint, "error.settings.key-of-1-13");
  EXPECT_EQ(error_of("throw_on_cudamalloc_oom:True", kOld).hint, "error.settings.key-since");
  EXPECT_EQ(error_of("foo:1").hint, "error.settings.keys-are");
}

TEST(ParseSettings, TheVariablesNameIsNoPartOfItsValue) {
  const Error error = error_of("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  EXPECT_EQ(error.hint, "error.settings.variable");
  EXPECT_EQ(error.values.front(), (std::pair<std::string, std::string>{"value", "expandable_segments:True"}));
}

TEST(ParseSettings, HintsForOtherSeparators) {
  EXPECT_EQ(error_of("max_split_size_mb=128").hint, "error.settings.slip");
  EXPECT_EQ(error_of("max_split_size_mb;200").what,
            "Unrecognized key 'max_split_size_mb;200' in Accelerator allocator config.");
  EXPECT_EQ(error_of("max_split_size_mb:64;expandable_segments:True").what,
            "Unrecognized key 'True' in Accelerator allocator config.");
  EXPECT_EQ(error_of("max_split_size_mb:64;expandable_segments:True").hint, "error.settings.pair-open");
}

TEST(ParseSettings, UnifiedParserDoesNotEnforceSeparators) {
  EXPECT_EQ(settings_of("expandable_segments:True:max_split_size_mb:64").max_split_size_bytes, 64 * kMiB);
  EXPECT_TRUE(warns("expandable_segments:True:max_split_size_mb:64", "settings-separator-ignored"));
  EXPECT_EQ(error_of("expandable_segments:True:max_split_size_mb:64", kOld).what,
            "Error parsing CachingAllocator settings, expected ,");
  EXPECT_EQ(error_of("max_split_size_mb", kOld).what, "Error parsing CachingAllocator settings, expected :");
  EXPECT_EQ(error_of("max_split_size_mb").what, "Index out of bounds in ConfigTokenizer");
}

TEST(ParseSettings, BooleansAreSpeltExactly) {
  EXPECT_EQ(error_of("expandable_segments:true").what,
            "Expected 'True' or 'False' at index 2 in ConfigTokenizer but got 'true'");
  EXPECT_EQ(error_of("expandable_segments:1", kOld).what,
            "Expected a single True/False argument for expandable_segments");
  EXPECT_FALSE(settings_of("expandable_segments:False").expandable_segments);
}

TEST(ParseSettings, LeadingDigitsAreEnough) {
  EXPECT_EQ(settings_of("max_split_size_mb:128MB").max_split_size_bytes, 128 * kMiB);
  EXPECT_TRUE(warns("max_split_size_mb:128MB", "settings-number-cut"));
  EXPECT_EQ(error_of("max_split_size_mb:big").what, "stoull");
  EXPECT_EQ(error_of("max_split_size_mb:big", kOld).what, "stoi");
  EXPECT_EQ(error_of("max_split_size_mb:3000000000", kOld).what, "stoi");
  EXPECT_EQ(error_of("garbage_collection_threshold:big").what, "stod");
}

// stoull and stoi take the sign, and the value becomes a size_t.
TEST(ParseSettings, NegativeSizesWrapIntoNoLimit) {
  for (const SettingsParser parser : {kUnified, kOld}) {
    EXPECT_EQ(settings_of("max_split_size_mb:-5", parser).max_split_size_bytes, kUnlimitedBytes);
    EXPECT_TRUE(warns("max_split_size_mb:-5", "settings-number-negative", parser));
  }
}

TEST(ParseSettings, SizesBeyondAnyMachineStopThere) {
  const AllocatorSettings settings =
      settings_of("large_segment_size_mb:8796093022206,max_non_split_rounding_mb:8796093022207");
  EXPECT_EQ(settings.large_segment_size_bytes, int64_t{1} << 50);
  EXPECT_EQ(settings.max_non_split_rounding_bytes, int64_t{1} << 50);
}

TEST(ParseSettings, WhiteSpaceIsDroppedByUnifiedAndBlanksOnlyByOld) {
  EXPECT_EQ(settings_of("max_split_size_mb :\t128\n").max_split_size_bytes, 128 * kMiB);
  EXPECT_EQ(settings_of(" max_split_size_mb : 128 ", kOld).max_split_size_bytes, 128 * kMiB);
  EXPECT_EQ(error_of("\tmax_split_size_mb:128", kOld).code, "settings-unknown-key");
}

TEST(ParseSettings, ThresholdExcludesBothEnds) {
  EXPECT_EQ(error_of("garbage_collection_threshold:1.0").what,
            "garbage_collect_threshold is invalid, set it in (0.0, 1.0)");
  EXPECT_EQ(error_of("garbage_collection_threshold:0", kOld).what,
            "garbage_collect_threshold too small, set it 0.0~1.0");
  EXPECT_EQ(error_of("garbage_collection_threshold:2", kOld).what, "garbage_collect_threshold too big, set it 0.0~1.0");
  EXPECT_EQ(error_of("garbage_collection_threshold:nan").code, "settings-bad-value");
}

TEST(ParseSettings, RoundupWantsPowersOfTwo) {
  EXPECT_EQ(error_of("roundup_power2_divisions:3").what, "For roundups, the divisions has to be power of 2 ");
  EXPECT_EQ(error_of("roundup_power2_divisions:0", kOld).what, "For roundups, the divisons has to be power of 2 ");
  EXPECT_EQ(error_of("roundup_power2_divisions:[3:2]").what, "For roundups, the intervals have to be power of 2 ");
  EXPECT_EQ(error_of("roundup_power2_divisions:[4:3]").what,
            "For roundups, the divisions has to be power of 2 or 0 to disable roundup ");
}

TEST(ParseSettings, UnclosedListIsAnError) {
  EXPECT_EQ(error_of("roundup_power2_divisions:[256:1,512:2").what, "Index out of bounds in ConfigTokenizer");
  EXPECT_EQ(error_of("roundup_power2_divisions:[").what,
            "Expected closing bracket ']' in ConfigTokenizer but reached end of config");
  EXPECT_EQ(error_of("roundup_power2_divisions:[256:1", kOld).code, "settings-syntax");
}

TEST(ParseSettings, SilentTrapsAreWarnings) {
  EXPECT_TRUE(warns("garbage_collection_threshold:0.8", "settings-gc-without-limit"));
  EXPECT_FALSE(warns("garbage_collection_threshold:0.8,per_process_memory_fraction:0.9", "settings-gc-without-limit"));
  EXPECT_TRUE(warns("garbage_collection_threshold:0.8,expandable_segments:True", "settings-gc-expandable"));
  EXPECT_TRUE(warns("backend:cudaMallocAsync,max_split_size_mb:64", "settings-async-backend"));
  EXPECT_TRUE(warns("expandable_segments:True,max_split_size_mb:64", "settings-max-split-expandable"));
  EXPECT_TRUE(warns("max_non_split_rounding_mb:64", "settings-rounding-without-split"));
  EXPECT_TRUE(warns("roundup_power2_divisions:[256:1,>:8]", "settings-roundup-interval"));
  EXPECT_TRUE(warns("roundup_power2_divisions:1", "settings-roundup-one"));
  EXPECT_TRUE(warns("max_split_size_mb:64,max_split_size_mb:128", "settings-duplicate-key"));
  EXPECT_FALSE(warns("max_split_size_mb:128", "settings-duplicate-key"));
  EXPECT_TRUE(parse_allocator_settings("max_split_size_mb:128", kUnified)->warnings.empty());
}

TEST(ParseSettings, BackendMustBeKnown) {
  EXPECT_EQ(error_of("backend:Native").what, "Unknown allocator backend, options are native and cudaMallocAsync");
  EXPECT_EQ(settings_of("backend:cudaMallocAsync").backend, "cudaMallocAsync");
}

TEST(ParseSettings, LongStringsAreRefused) {
  EXPECT_EQ(error_of(std::string(70000, ',')).code, "settings-too-long");
  EXPECT_EQ(error_of(std::string(60000, ',')).code, "settings-unknown-key");
}

TEST(ParseSettings, AnyBytesEndInAResult) {
  std::mt19937 random(1);
  const std::string_view pieces[] = {"max_split_size_mb",
                                     "roundup_power2_divisions",
                                     "large_segment_size_mb",
                                     ":",
                                     ",",
                                     "[",
                                     "]",
                                     ">",
                                     "4",
                                     "256",
                                     "-1",
                                     "True",
                                     " ",
                                     "garbage_collection_threshold",
                                     "0.5",
                                     "x",
                                     "expandable_segments_reserve_by_class",
                                     "per_process_memory_fraction",
                                     "backend"};
  for (int round = 0; round < 10000; ++round) {
    std::string conf;
    for (unsigned n = random() % 12; n > 0; --n) conf += pieces[random() % std::size(pieces)];
    for (const SettingsParser parser : {kUnified, kOld}) {
      const Result<ParsedSettings> parsed = parse_allocator_settings(conf, parser);
      EXPECT_TRUE(parsed.has_value() || !parsed.error().what.empty()) << conf;
    }
  }
}

TEST(ConfString, DefaultsAreEmpty) { EXPECT_EQ(to_conf_string(AllocatorSettings{}), ""); }

TEST(ConfString, IsTheShortestListForATable) {
  for (const std::string_view conf : {"roundup_power2_divisions:4", "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
                                      "roundup_power2_divisions:[1:0,2:4]", "roundup_power2_divisions:[2:4,16:8]",
                                      "max_split_size_mb:128", "expandable_segments:True,max_split_size_mb:64"}) {
    EXPECT_EQ(to_conf_string(settings_of(conf)), conf);
  }
}

AllocatorSettings random_settings(std::mt19937& random, SettingsParser parser) {
  AllocatorSettings settings;
  const bool unified = parser == kUnified;
  const auto coin = [&] { return random() % 2 == 0; };
  if (unified && coin()) settings.large_segment_size_bytes = (11 + random() % 100) * kMiB;
  settings.max_non_split_rounding_bytes = settings.large_segment_size_bytes;
  const int64_t minimum = settings.large_segment_size_bytes + kMiB;
  if (coin()) settings.max_split_size_bytes = minimum + random() % 4096 * kMiB;
  if (coin()) settings.max_non_split_rounding_bytes = minimum + random() % 4096 * kMiB;
  if (coin()) settings.garbage_collection_threshold = (1 + random() % 999) / 1000.0;
  settings.expandable_segments = coin();
  settings.release_lock_on_cudamalloc = coin();
  settings.pinned_use_background_threads = coin();
  if (unified) settings.per_process_memory_fraction = random() % 1001 / 1000.0;
  if (unified) settings.throw_on_cudamalloc_oom = coin();
  if (coin()) settings.backend = "cudaMallocAsync";
  int64_t value = 0;
  for (int64_t& entry : settings.roundup_power2_divisions) {
    if (random() % 3 == 0) value = coin() ? 0 : int64_t{1} << random() % 5;
    entry = value;
  }
  return settings;
}

TEST(ConfString, ParsesBackToTheSameSettings) {
  std::mt19937 random(7);
  for (int round = 0; round < 1000; ++round) {
    for (const SettingsParser parser : {kUnified, kOld}) {
      const AllocatorSettings settings = random_settings(random, parser);
      const std::string conf = to_conf_string(settings, parser);
      EXPECT_EQ(settings_of(conf, parser), settings) << conf;
    }
  }
}

TEST(FromRecorded, PrefersRecordedValuesAndTakesTheRestFromTheString) {
  RecordedSettings recorded;
  recorded.conf = "max_split_size_mb:128,large_segment_size_mb:32,per_process_memory_fraction:0.5";
  recorded.max_split_size_bytes = 128 * kMiB;
  recorded.expandable_segments = true;
  const ParsedSettings result = from_recorded(recorded, kUnified);
  EXPECT_EQ(result.settings.max_split_size_bytes, 128 * kMiB);
  EXPECT_EQ(result.settings.large_segment_size_bytes, 32 * kMiB);
  EXPECT_EQ(result.settings.per_process_memory_fraction, 0.5);
  EXPECT_TRUE(result.settings.expandable_segments);
  ASSERT_EQ(result.warnings.size(), 1u);
  EXPECT_EQ(result.warnings[0].code, "settings-recorded-differ");
}

TEST(FromRecorded, MinusOneMeansUnlimited) {
  RecordedSettings recorded;
  recorded.max_split_size_bytes = -1;
  EXPECT_EQ(from_recorded(recorded, kUnified).settings, AllocatorSettings{});
}

TEST(FromRecorded, ImpossibleCollectionThresholdIsLeftAside) {
  for (const double threshold : {-0.5, 1.0, 7.0, std::numeric_limits<double>::quiet_NaN()}) {
    RecordedSettings recorded;
    recorded.garbage_collection_threshold = threshold;
    EXPECT_EQ(from_recorded(recorded, kUnified).settings.garbage_collection_threshold, 0) << threshold;
  }
}

TEST(FromRecorded, ImpossibleDivisionsAreLeftAside) {
  for (const int64_t divisions : {int64_t{-1}, int64_t{3}, std::numeric_limits<int64_t>::max()}) {
    RecordedSettings recorded;
    recorded.roundup_power2_divisions.assign(16, 4);
    recorded.roundup_power2_divisions[7] = divisions;
    EXPECT_EQ(from_recorded(recorded, kUnified).settings, AllocatorSettings{}) << divisions;
  }
}

TEST(FromRecorded, UnreadableStringIsACaveat) {
  RecordedSettings recorded;
  recorded.conf = "nonsense:1";
  recorded.garbage_collection_threshold = 0.5;
  const ParsedSettings result = from_recorded(recorded, kUnified);
  EXPECT_EQ(result.settings.garbage_collection_threshold, 0.5);
  ASSERT_EQ(result.warnings.size(), 1u);
  EXPECT_EQ(result.warnings[0].code, "settings-recorded-unreadable");
}

}  // namespace
}  // namespace oomscope
