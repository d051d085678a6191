// Each template, the allocator's message by vintage, settings and tables. Messages as logs print them: see
// messages_in_logs_test.cc.
#include "evidence/text/text_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "evidence/text/matcher.h"
#include "evidence/text/printed_bytes.h"
#include "evidence/text/template.h"
#include "support/text_messages.h"

namespace oomscope {
namespace {

TEST(AMention, IsNoMessage) {
  EXPECT_TRUE(read_text("No CUDA out of memory errors were seen.", "test").messages.empty());
  EXPECT_TRUE(read_text("emptying caches to avoid CUDA out of memory", "test").messages.empty());
  EXPECT_FALSE(read_text("worker 3: CUDA out of memory", "test").messages.empty());
  EXPECT_FALSE(read_text("no luck\nCUDA out of memory", "test").messages.empty());
}

TEST(AMention, StandsInSourceInHelpAndInTests) {
  for (std::string_view text :
       {"        print(\"WARNING: CUDA out of memory\")", "    logger.warning(f'rank 0: CUDA out of memory')",
        "  --oom-retry N   how often a step is tried again after \"CUDA out of memory\"",
        "test_a.py::test_oom[CUDA out of memory] PASSED",
        "test_a.py::test_oom[\"CUDA out of memory. Tried to allocate 20.00 MiB\"] PASSED [100%]"}) {
    EXPECT_TRUE(read_text(text, "test").messages.empty()) << text;
  }
  EXPECT_FALSE(read_text("test_a.py::test_step FAILED: CUDA out of memory", "test").messages.empty());
}

TEST(Templates, AnExitCodeBehindSeveralBlanks) {
  EXPECT_EQ(only("      Reason:       Error\n      Exit Code:    137\n").id, "container.137");
}

// The runtime's own advice follows every error of it, broken where the terminal broke it.
TEST(Templates, AdviceBehindAnErrorIsNoReason) {
  const std::string advice =
      "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
      "incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1.\n";
  for (size_t columns = 30; columns <= 120; ++columns) {
    std::string lines;
    size_t in_line = 0;
    for (char c : "RuntimeError: CUDA error: out of memory\n" + advice) {
      in_line = c == '\n' ? 0 : in_line + 1;
      lines += c;
      if (in_line == columns) {
        lines += '\n';
        in_line = 0;
      }
    }
    EXPECT_EQ(only(lines).id, "cuda.error") << columns;
  }
}

TEST(Templates, CompileAndEachHasAnExampleThatItMatches) {
  ASSERT_TRUE(matcher().ok());
  std::set<std::string_view> with_example;
  for (const Example& example : kExamples) {
    EXPECT_EQ(only(example.text).id, example.id) << example.text;
    with_example.insert(example.id);
  }
  for (const std::span<const Template> table :
       {gpu_templates(), other_backend_templates(), host_templates(), ending_templates(), not_memory_templates()}) {
    for (const Template& row : table) EXPECT_TRUE(with_example.contains(row.id)) << row.id << " has no example";
  }
}

TEST(Templates, FiguresOfTheNewerRows) {
  EXPECT_EQ(figure(only("Unable to allocate 926. GiB for an array with shape (1, 2)"), Figure::tried), 926 * kGiB);
  EXPECT_EQ(figure(only("failed to allocate CUDA1 buffer of size 4096\nGGML"), Figure::tried), 4096);
  const TextMessage cut = only(
      "Tried to allocate 5.00 MiB (GPU 2; 7.00 GiB total capacity; 6.00 GiB already allocated; 1.00 MiB free; 6.50 GiB "
      "reserved in total by PyTorch)");
  EXPECT_EQ(figure(cut, Figure::allocated), 6 * kGiB);
  EXPECT_EQ(figure(cut, Figure::free), kMiB);
  EXPECT_EQ(figure(cut, Figure::reserved), 6.5 * kGiB);
}

TEST(Templates, AKillAtTheEndOfAProgressBar) {
  EXPECT_EQ(only("Loading shards:  50%|#####     | 1/2 [00:02<00:02,  1.50it/s]Killed\n").id, "shell.killed");
  EXPECT_EQ(only("Loading shards:   0%|          | 0/2 [00:00<?, ?it/s][1]    77 killed     python t.py\n").id,
            "shell.killed");
}

TEST(Templates, AShellsKillInOtherLanguages) {
  EXPECT_EQ(only("run.sh: 行 30: 77 已杀死                  python t.py").id, "shell.killed");
  EXPECT_EQ(only("run.sh: Zeile 3: 77 Getötet                 python t.py").id, "shell.killed");
  EXPECT_EQ(only("已杀死").id, "shell.killed");
}

TEST(Templates, ThePageFileInOtherLanguages) {
  EXPECT_EQ(only("Die Auslagerungsdatei ist zu klein").id, "windows.commit");
  EXPECT_EQ(only("页面文件太小，无法完成操作。").id, "windows.commit");
  EXPECT_EQ(only("Файл подкачки слишком мал").id, "windows.commit");
}

// ---- the allocator's message by vintage -----------------------------------------------------------------------------

TEST(AllocatorMessage, OldestLayoutHasCachedBytes) {
  const TextMessage message = only(
      "RuntimeError: CUDA out of memory. Tried to allocate 3.00 GiB (GPU 1; 9.00 GiB total capacity; 5.00 GiB already "
      "allocated; 2.00 GiB free; 512.50 KiB cached)");
  EXPECT_EQ(message.vintage, "1.0-1.3");
  EXPECT_EQ(message.gpu, 1);
  EXPECT_EQ(figure(message, Figure::tried), 3 * kGiB);
  EXPECT_EQ(figure(message, Figure::total), 9 * kGiB);
  EXPECT_EQ(figure(message, Figure::allocated), 5 * kGiB);
  EXPECT_EQ(figure(message, Figure::free), 2 * kGiB);
  EXPECT_EQ(figure(message, Figure::cached), 512.5 * kKiB);
}

TEST(AllocatorMessage, ReservedWithAndWithoutHint) {
  const std::string old =
      "CUDA out of memory. Tried to allocate 3.00 GiB (GPU 0; 9.00 GiB total capacity; 5.00 GiB already allocated; "
      "0 bytes free; 4.00 GiB allowed; 6.00 GiB reserved in total by PyTorch)";
  EXPECT_EQ(only(old).vintage, "1.4-1.9");
  EXPECT_EQ(figure(only(old), Figure::free), 0);
  EXPECT_EQ(figure(only(old), Figure::limit), 4 * kGiB);
  const TextMessage with_hint = only(old + " If reserved memory is >> allocated memory try setting max_split_size_mb");
  EXPECT_EQ(with_hint.vintage, "1.10-2.0");
  EXPECT_EQ(with_hint.hint, "max_split_size_mb");
}

TEST(AllocatorMessage, SentencesOfTwoSixAndLater) {
  const TextMessage message = only(kNew);
  expect_new(message);
  EXPECT_EQ(message.vintage, "2.6 or later");
}

TEST(AllocatorMessage, OldSpellingAndNewestVariable) {
  EXPECT_EQ(only("CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacty of 2.00 GiB of which 0 "
                 "bytes is free. Of the allocated memory 1.00 GiB is allocated by PyTorch, and 0 bytes is reserved by "
                 "PyTorch but unallocated.")
                .vintage,
            "2.1");
  EXPECT_EQ(only("CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 2.00 GiB of which 0 "
                 "bytes is free. Of the allocated memory 1.00 GiB is allocated by PyTorch, and 0 bytes is reserved by "
                 "PyTorch but unallocated. If so try setting PYTORCH_ALLOC_CONF=expandable_segments:True")
                .vintage,
            "2.9 or later");
}

TEST(AllocatorMessage, WrappedCounterIsKeptAsPrinted) {
  const TextMessage message = only(
      "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 2.00 GiB of which 0 bytes is "
      "free. Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use.");
  EXPECT_EQ(figure(message, Figure::process_total), 18446744073709551616.0);
}

TEST(PrintedBytes, EveryUnitIsAPowerOf1024) {
  EXPECT_EQ(printed_bytes("2.00GiB"), 2 * kGiB);
  EXPECT_EQ(printed_bytes("2 GB"), 2 * kGiB);
  EXPECT_EQ(printed_bytes("3kB"), 3 * kKiB);
  EXPECT_EQ(printed_bytes("1,024 bytes"), 1024);
  EXPECT_EQ(printed_bytes("2,50 GiB"), 2.5 * kGiB) << "a decimal comma";
  EXPECT_EQ(printed_bytes("1,234,567"), 1234567);
  EXPECT_EQ(printed_bytes("-1.00MiB"), -kMiB);
  EXPECT_EQ(printed_bytes("GiB"), std::nullopt);
  EXPECT_EQ(printed_bytes("1.2.3GiB"), std::nullopt);
  EXPECT_EQ(printed_bytes("5 apples"), std::nullopt);
}

TEST(PrintedBytes, ALineMaySetAUnitApart) {
  for (std::string_view text : {"memory_allocated: 6.5 GB", "allocated: 6656 MB", "mem allocated 6.5GiB, reserved 9 GB",
                                "torch.cuda.memory_allocated() = 6979321856", "Allocated (GB): 6.5"}) {
    EXPECT_EQ(figure(only(text), Figure::allocated), 6.5 * kGiB) << text;
  }
  EXPECT_FALSE(only("max_memory_allocated: 6.5 GB").what.empty());
}

// ---- settings and cards

bool is_expandable(std::string_view text) { return read_text(text, "test").surroundings.expandable_segments; }

TEST(Surroundings, ExpandableSegmentsThatAreOn) {
  for (std::string_view text :
       {"$ PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py",
        "PYTORCH_ALLOC_CONF=expandable_segments:True\r\n",
        "export PYTORCH_CUDA_ALLOC_CONF=\"max_split_size_mb:128,expandable_segments:True\"",
        "os.environ[\"PYTORCH_CUDA_ALLOC_CONF\"] = 'expandable_segments:True,max_split_size_mb:64'",
        "os.environ.setdefault('PYTORCH_CUDA_ALLOC_CONF', 'expandable_segments:True')",
        "{\"PYTORCH_CUDA_ALLOC_CONF\": \"expandable_segments:True\"}",
        "torch.cuda.memory._set_allocator_settings(\"expandable_segments:True\")"}) {
    EXPECT_TRUE(is_expandable(text)) << text;
  }
  EXPECT_FALSE(is_expandable(kNew));
  EXPECT_FALSE(is_expandable("try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"));
  EXPECT_FALSE(is_expandable("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False"));
  EXPECT_TRUE(is_expandable("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python t.py\n" + kNew));
}

TEST(Surroundings, TheCardAndTheLoader) {
  const Surroundings around = read_text(
                                  "GPU 0: Tesla V100-SXM2-16GB\nloader = DataLoader(d, batch_size=64, num_workers=8, "
                                  "prefetch_factor=4, pin_memory=True)\n",
                                  "test")
                                  .surroundings;
  EXPECT_EQ(around.gpu_name.substr(0, 10), "Tesla V100");
  EXPECT_EQ(around.num_workers, 8);
  EXPECT_EQ(around.prefetch_factor, 4);
  EXPECT_EQ(around.batch_size, 64);
  EXPECT_EQ(around.pin_memory, true);
}

TEST(Messages, WordsAreShownAsPrinted) {
  EXPECT_EQ(only("CUDA error: an illegal memory access was encountered").what,
            "an illegal memory access was encountered");
}

// ---- tables

TEST(Tables, MemorySummary) {
  const TextEvidence evidence = read_text(
      "|         PyTorch CUDA memory summary, device ID 3         |\n"
      "|            CUDA OOMs: 2            |        cudaMalloc retries: 5         |\n"
      "| Allocated memory      |   3072 KiB |   5120 KiB |     30 MiB |     27 MiB |\n"
      "|       from large pool |   2048 KiB |   4096 KiB |     20 MiB |     18 MiB |\n"
      "| Allocations           |       7    |       9    |     880 K  |      93    |\n",
      "test");
  ASSERT_EQ(evidence.summaries.size(), 1U);
  const MemorySummary& summary = evidence.summaries[0];
  EXPECT_EQ(summary.device, 3);
  EXPECT_EQ(summary.num_ooms, 2);
  EXPECT_EQ(summary.num_alloc_retries, 5);
  ASSERT_EQ(summary.rows.size(), 3U);
  EXPECT_EQ(summary.rows[0].metric, "allocated_bytes.all");
  EXPECT_EQ(summary.rows[0].values[1], 5120 * kKiB);
  EXPECT_EQ(summary.rows[1].metric, "allocated_bytes.large_pool");
  EXPECT_EQ(summary.rows[2].values[2], 880000);
}

TEST(Tables, ListingsOfCardsAndHost) {
  const Surroundings around = read_text(
                                  "| NVIDIA-SMI 550.1    Driver Version: 550.1    CUDA Version: 12.4 |\n"
                                  "|   0  NVIDIA X100           Off |   00000000:01:00.0 Off |    0 |\n"
                                  "| N/A   30C    P0    50W / 300W |   2000MiB /  8000MiB |      0%      Default |\n"
                                  "|    0   N/A  N/A      4321      C   python                         1990MiB |\n"
                                  "               total        used        free      shared  buff/cache   available\n"
                                  "Mem:            31Gi        20Gi       1.0Gi       1.0Gi        10Gi       9.0Gi\n"
                                  "shm              64M   60M  4.0M  94% /dev/shm\n"
                                  "PyTorch version: 2.4.1+cu121\nDataLoader(num_workers=6)\n",
                                  "test")
                                  .surroundings;
  ASSERT_EQ(around.gpus.size(), 1U);
  EXPECT_EQ(around.gpus[0].used_bytes, 2000 * kMiB);
  ASSERT_EQ(around.gpu_processes.size(), 1U);
  EXPECT_EQ(around.gpu_processes[0].pid, 4321);
  EXPECT_EQ(around.host_total_bytes, 31 * kGiB);
  EXPECT_EQ(around.host_available_bytes, 9 * kGiB);
  EXPECT_EQ(around.shm_total_bytes, 64 * kMiB);
  EXPECT_EQ(around.torch_version, "2.4.1+cu121");
  EXPECT_EQ(around.num_workers, 6);
}

}  // namespace
}  // namespace oomscope
