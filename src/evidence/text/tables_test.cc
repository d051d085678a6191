#include "evidence/text/tables.h"

#include <gtest/gtest.h>

#include "evidence/text/text_reader.h"

namespace oomscope {
namespace {

constexpr double kMiB = 1048576;

TextEvidence read(std::string_view text, std::string_view line_before = {}) {
  TextEvidence evidence;
  read_table(plain_lines(text), 1, line_before, evidence);
  return evidence;
}

TEST(Tables, NvidiaSmiGivesCardsAndProcesses) {
  const Surroundings around = read(
                                  "| NVIDIA-SMI 535.54    Driver Version: 535.54    CUDA Version: 12.2 |\n"
                                  "|   1  Quadro RTX 6000     Off  | 00000000:01:00.0 Off |      0 |\n"
                                  "| 30%   40C    P8    20W / 260W |  20000MiB / 24576MiB |   0%   Default |\n"
                                  "|    1   N/A  N/A      4321      C   python train.py      19000MiB |\n")
                                  .surroundings;
  ASSERT_EQ(around.gpus.size(), 1U);
  EXPECT_EQ(around.gpus[0].index, 1);
  EXPECT_EQ(around.gpus[0].name, "Quadro RTX 6000");
  EXPECT_EQ(around.gpus[0].used_bytes, 20000 * kMiB);
  ASSERT_EQ(around.gpu_processes.size(), 1U);
  EXPECT_EQ(around.gpu_processes[0].pid, 4321);
  EXPECT_EQ(around.gpu_processes[0].used_bytes, 19000 * kMiB);
}

TEST(Tables, RowsOfNvidiaSmiAreReadWithoutTheirHead) {
  const Surroundings around = read_text(
                                  "CUDA error: out of memory\n"
                                  "|   1  Quadro RTX 6000     Off  | 00000000:01:00.0 Off |      0 |\n"
                                  "| 30%   40C    P8    20W / 260W |  20000MiB / 24576MiB |   0%   Default |\n"
                                  "|    1   N/A  N/A      4321      C   python train.py      19000MiB |\n",
                                  "a.log")
                                  .surroundings;
  ASSERT_EQ(around.gpus.size(), 1U);
  EXPECT_EQ(around.gpus[0].name, "Quadro RTX 6000");
  ASSERT_EQ(around.gpu_processes.size(), 1U);
  EXPECT_EQ(around.gpu_processes[0].pid, 4321);
}

// Host memory in a line of progress looks like a row without its bars, however often it comes.
TEST(Tables, FiguresWithoutBarsAreNoRows) {
  std::string text;
  for (int step = 0; step < 3000; ++step) text += "step " + std::to_string(step) + " RAM 30211MiB / 64000MiB\n";
  const TextEvidence evidence = read_text(text + "CUDA error: out of memory\n", "a.log");
  EXPECT_TRUE(evidence.surroundings.gpus.empty());
  EXPECT_TRUE(evidence.surroundings.gpu_processes.empty());
}

TEST(Tables, SacctTellsLimitAndUse) {
  const Surroundings around =
      read("JobID|State|ReqMem|MaxRSS\n7|OUT_OF_MEMORY|8Gn|\n7.0|OUT_OF_MEMORY|8Gn|4096M\n").surroundings;
  EXPECT_EQ(around.job_limit_bytes, 8192 * kMiB);
  EXPECT_EQ(around.job_used_bytes, 4096 * kMiB);
}

TEST(Tables, FreeTellsItsUnitBySize) {
  const std::string_view head = "              total        used        free      shared  buff/cache   available\n";
  EXPECT_EQ(read(std::string(head) + "Mem:  65536000  1000 1000 10 100 32768000\n").surroundings.host_total_bytes,
            65536000.0 * 1024);
  EXPECT_EQ(read(std::string(head) + "Mem:  64000 1000 1000 10 100 32000\n").surroundings.host_available_bytes,
            32000 * kMiB);
  EXPECT_EQ(read(std::string(head) + "Mem:  62Gi 1Gi 1Gi 10Mi 1Gi 31Gi\n").surroundings.host_total_bytes,
            62 * 1024 * kMiB);
}

TEST(Tables, FreeIsInTheUnitOfItsCommand) {
  const std::string_view table =
      "              total        used        free      shared  buff/cache   available\nMem: 503 12 480 0 10 488\n";
  const auto total = [&](std::string_view command) { return read(table, command).surroundings.host_total_bytes; };
  EXPECT_EQ(total("$ free -g\n"), 503 * 1024 * kMiB);
  EXPECT_EQ(total("free -wm\r\n"), 503 * kMiB);
  EXPECT_EQ(total("user@host:~$ free --giga\n"), 503e9);
  EXPECT_EQ(total("# free -b\n"), 503);
  EXPECT_EQ(total("$ free\n"), 503 * 1024);
  EXPECT_EQ(total("epoch 3\n"), std::nullopt) << "503 of what?";
}

TEST(Tables, DfOfSharedMemory) {
  const Surroundings around = read("shm              64M   63M  1.0M  99% /dev/shm\n").surroundings;
  EXPECT_EQ(around.shm_total_bytes, 64 * kMiB);
  EXPECT_EQ(around.shm_used_bytes, 63 * kMiB);
  EXPECT_EQ(read("tmpfs 65536 0 65536 0% /dev/shm\n").surroundings.shm_total_bytes, 64 * kMiB);
}

TEST(Tables, AMemorySummaryHasStatsNames) {
  const TextEvidence evidence = read(
      "|                  PyTorch CUDA memory summary, device ID 3                 |\n"
      "|            CUDA OOMs: 2            |        cudaMalloc retries: 5         |\n"
      "| Allocated memory      |   66560 KiB |  132096 KiB |  264192 KiB |  197632 KiB |\n"
      "|       from large pool |   65536 KiB |  131072 KiB |  262144 KiB |  196608 KiB |\n"
      "| Allocations           |     763     |    1526     |     880 K   |     880 K   |\n");
  ASSERT_EQ(evidence.summaries.size(), 1U);
  const MemorySummary& summary = evidence.summaries.front();
  EXPECT_EQ(summary.device, 3);
  EXPECT_EQ(summary.num_ooms, 2);
  EXPECT_EQ(summary.num_alloc_retries, 5);
  ASSERT_EQ(summary.rows.size(), 3U);
  EXPECT_EQ(summary.rows[0].metric, "allocated_bytes.all");
  EXPECT_EQ(summary.rows[0].values[1], 132096.0 * 1024);
  EXPECT_EQ(summary.rows[1].metric, "allocated_bytes.large_pool");
  EXPECT_EQ(summary.rows[2].values[2], 880000.0);
}

TEST(Gpustat, EveryRowIsACard) {
  Surroundings around;
  read_gpustat("[0] Tesla V100 | 44'C,   0 % | 15836 / 16130 MB |\n[1] Tesla V100 | 40'C,  0 % | 10 / 16130 MB |\n",
               around);
  ASSERT_EQ(around.gpus.size(), 2U);
  EXPECT_EQ(around.gpus[1].used_bytes, 10 * kMiB);
}

TEST(KernelTable, CountsPagesOfEachProcess) {
  const TextEvidence read = read_text(
      "[ 42.1] Tasks state (memory values in pages):\n"
      "[ 42.1] [  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents "
      "oom_score_adj name\n"
      "[ 42.1] [    612]     0   612     9000      256      200       56         0    90112        0             0 "
      "systemd-journal\n"
      "[ 42.1] [   4242]  1000  4242 16000000  2097152  2097152        0         0 98304000        0         -1000 "
      "python train\n"
      "[ 42.2] Out of memory: Killed process 4242 (python) total-vm:64000000kB, anon-rss:8388608kB, file-rss:0kB, "
      "shmem-rss:0kB\n",
      "dmesg");
  const std::vector<HostProcess>& processes = read.surroundings.host_processes;
  ASSERT_EQ(processes.size(), 2U);
  EXPECT_EQ(processes[0].name, "systemd-journal");
  EXPECT_EQ(processes[0].rss_bytes, 1 << 20);
  EXPECT_EQ(processes[1].pid, 4242);
  EXPECT_EQ(processes[1].name, "python train");
  EXPECT_EQ(processes[1].rss_bytes, 8.0 * (1 << 30));
}

}  // namespace
}  // namespace oomscope
