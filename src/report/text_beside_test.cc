// What stands beside a message, several messages of one log, and other programs' messages: findings and their changes.
#include <gtest/gtest.h>

#include "analysis/text_facts.h"
#include "report/proof_lines.h"
#include "support/text_case.h"

namespace oomscope {
namespace {

std::vector<std::string> evidence_keys(const Case& given) {
  std::vector<std::string> keys;
  for (const Cause& cause : causes()) {
    for (const Finding& finding : cause.find({.run = nullptr, .text = &given.facts})) {
      for (const FindingEvidence& evidence : finding.evidence) keys.push_back(evidence.text.key);
    }
  }
  return keys;
}

bool has_key(const std::vector<std::string>& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

TEST(Listings, WhoHoldsTheCard) {
  const auto given = facts_of({oom("20.00 MiB", "16.00 GiB", "1.00 GiB", "5.00 MiB", "1.10 GiB") +
                               "| NVIDIA-SMI 500.10    Driver Version: 500.10 |\n"
                               "|   0  Some Card           On   | 00000000:01:00.0 Off |   0 |\n"
                               "| N/A   40C    P0    50W / 300W |  16000MiB / 16384MiB |      0%      Default |\n"
                               "|    0   N/A  N/A      4321      C   python                          14000MiB |\n"});
  const std::vector<std::string> keys = evidence_keys(*given);
  EXPECT_TRUE(has_key(keys, "log.listed-card"));
  EXPECT_TRUE(has_key(keys, "log.listed-process"));
}

TEST(Listings, HowLargeSharedMemoryIs) {
  const auto given = facts_of(
      {"ERROR: Unexpected bus error encountered in worker.\nshm              64M   64M     0 100% /dev/shm\n"});
  EXPECT_TRUE(has_key(evidence_keys(*given), "log.listed-shm"));
}

TEST(Growth, ThreeFailuresWithMoreEachTime) {
  std::string log;
  for (const char* allocated : {"8.00 GiB", "10.00 GiB", "13.00 GiB"})
    log += oom("2.00 GiB", "16.00 GiB", allocated, "30.00 MiB", "14.50 GiB");
  EXPECT_EQ(facts_of({log})->facts.growth.size(), 3U);
}

TEST(Growth, TheLastFailureIsTheOne) {
  std::string log;
  for (const char* allocated : {"12.11 GiB", "13.02 GiB", "13.90 GiB", "14.61 GiB"})
    log += oom("256.00 MiB", "15.77 GiB", allocated, "100.00 MiB", "14.90 GiB");
  const auto found = facts_of({log});
  EXPECT_EQ(found->facts.failure, &found->logs.front().messages.back());
  const std::vector<Finding> findings = find_findings({.run = nullptr, .text = &found->facts});
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().id, "memory-grows");
}
// A traceback with the line of one call of `function` and the message of a full card.
std::string failed_in(const std::string& function, int line, const char* tried) {
  return "Traceback (most recent call last):\n  File \"train.py\", line " + std::to_string(line) + ", in " + function +
         "\n    step(size)\n  File \"train.py\", line 20, in step\n    loss = model(x)\n" +
         oom(tried, "24.00 GiB", "22.70 GiB", "200.00 MiB", "23.00 GiB");
}
TEST(Retry, WithinTheHandlerIsHeldByItsException) {
  const std::string handling = "\nDuring handling of the above exception, another exception occurred:\n\n";
  const std::vector<Finding> findings =
      findings_of({{"a.log", failed_in("train", 40, "512.00 MiB") + handling + failed_in("train", 43, "256.00 MiB")}});
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().id, "exception-holds-tensors");
  EXPECT_EQ(findings.front().changes.front().remedy, "clear-traceback");
  // Two ranks, or a loop that tries again behind its handler.
  EXPECT_NE(
      findings_of({{"a.log", failed_in("train", 40, "512.00 MiB") + failed_in("train", 40, "256.00 MiB")}}).front().id,
      "exception-holds-tensors");
}
TEST(SecondModel, IsNamedWhereTheCardIsAllocatedAlready) {
  const std::string making = "Fold 1 finished\nFold 2\nTraceback (most recent call last):\n" +
                             frame("fold.py", "main", "model = BertModel.from_pretrained(name).to(\"cuda\")");
  const std::vector<Finding> findings =
      findings_of({{"a.log", making + oom("90.00 MiB", "14.75 GiB", "14.01 GiB", "60.00 MiB", "14.20 GiB")}});
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().id, "second-model");
  EXPECT_EQ(findings.front().changes.front().remedy, "delete-references");
  // Others hold the card.
  EXPECT_NE(
      findings_of({{"a.log", making + oom("90.00 MiB", "14.75 GiB", "1.01 GiB", "60.00 MiB", "1.20 GiB")}}).front().id,
      "second-model");
}
// nvidia-smi's row of card 0.
std::string listed(const char* used, const char* total) {
  return std::string(
             "| NVIDIA-SMI 550.54 Driver Version: 550.54 |\n"
             "|   0  NVIDIA A100-SXM4-80GB          On  | 00000000:07:00.0 Off |                    0 |\n"
             "| N/A   30C    P0    60W / 400W |  ") +
         used + "MiB / " + total + "MiB |      0%      Default |\n";
}
TEST(Listings, ReadAfterTheFailureShowAnEmptyCard) {
  const std::string message = oom("2.00 GiB", "79.15 GiB", "76.00 GiB", "1.12 GiB", "76.30 GiB");
  EXPECT_TRUE(listing_is_later(facts_of({message + listed("1", "81920")})->facts));
  EXPECT_FALSE(listing_is_later(facts_of({message + listed("79000", "81920")})->facts));
}
TEST(Listings, OfLargerCardsShowASlice) {
  const std::string message = oom("512.00 MiB", "9.50 GiB", "8.70 GiB", "100.00 MiB", "8.85 GiB");
  EXPECT_TRUE(is_slice(facts_of({message + listed("9700", "81920")})->facts));
  EXPECT_FALSE(is_slice(facts_of({message + listed("9700", "10240")})->facts));
}
TEST(SharedMemory, IsLessSureWhereDfShowsRoom) {
  const std::string error =
      "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient "
      "shared memory (shm).\n";
  const std::string df =
      "Filesystem      Size  Used Avail Use% Mounted on\nshm              63G   24M   63G   1% /dev/shm\n";
  EXPECT_EQ(facts_of({error})->facts.confidence, Confidence::high);
  EXPECT_EQ(facts_of({error + df})->facts.confidence, Confidence::medium);
}
TEST(Victim, HeldSharedMemoryToo) {
  const std::string killed =
      "Memory cgroup out of memory: Killed process 42 (python) total-vm:34567890kB, "
      "anon-rss:1048576kB, file-rss:0kB, shmem-rss:";
  const auto held = [](const Finding& finding) {
    const auto value = std::find_if(finding.claim.values.begin(), finding.claim.values.end(),
                                    [](const PhraseValue& each) { return each.name == "held"; });
    return value->phrases.front().key;
  };
  EXPECT_EQ(held(findings_of({{"a.log", killed + "4194304kB, UID:0\n"}}).front()), "text.victim-held-shared");
  EXPECT_EQ(held(findings_of({{"a.log", killed + "0kB, UID:0\n"}}).front()), "text.victim-held");
}
TEST(OtherFrameworks, AreNamedWithTheirFigures) {
  const auto claim = [](const char* text) {
    return findings_of({{std::string("a.log"), std::string(text)}}).front().claim.key;
  };
  EXPECT_EQ(claim("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 18.32G of 15.48G hbm.\n"),
            "log.framework-sum.claim");
  const char* tensor =
      "OOM when allocating tensor with shape[9,9] and type float on /device:GPU:0 by allocator GPU_0_bfc\n";
  EXPECT_EQ(claim(tensor), "log.framework-bare.claim");
  const std::string allocator = "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.50GiB (rounded to 1)\n";
  const Finding finding = findings_of({{"a.log", allocator + tensor}}).front();
  EXPECT_EQ(finding.claim.key, "log.framework-request.claim");
  EXPECT_TRUE(std::all_of(finding.changes.begin(), finding.changes.end(),
                          [](const Change& change) { return change.commands.empty(); }));
}
TEST(OtherFrameworks, ATensorOnTheCpuIsOfTheHost) {
  const auto found =
      facts_of({"OOM when allocating tensor with shape[50000,50000] and type float on "
                "/job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu [Op:MatMul]\n"});
  EXPECT_EQ(found->facts.kind, Kind::host_alloc_failed);
}
TEST(RanksInOneLog, TheStampsOfOtherRanksAreNotItsOwn) {
  const std::string failure =
      "[rank1]: 2030-01-01 10:00:00 Traceback (most recent call last):\n"
      "[rank0]: 2030-01-01 10:30:00 Watchdog caught collective operation timeout\n[rank1]: " +
      oom("2.00 GiB", "16.00 GiB", "14.00 GiB", "30.00 MiB", "14.50 GiB");
  const auto given = facts_of({failure});
  ASSERT_EQ(given->facts.ranks.size(), 2U);
  EXPECT_EQ(given->facts.ranks.front().rank, 1);
}

TEST(RanksInOneLog, WhoWaitedDidNotFailFirst) {
  const auto given = facts_of({"[rank0]: Watchdog caught collective operation timeout\n[rank1]: " +
                               oom("2.00 GiB", "16.00 GiB", "14.00 GiB", "30.00 MiB", "14.50 GiB")});
  ASSERT_EQ(given->facts.ranks.size(), 2U);
  EXPECT_EQ(given->facts.ranks.front().rank, 1);
}

TEST(Growth, SaysInWhichPhaseEachFailureWas) {
  const auto failed_in = [](const char* code, const char* allocated) {
    return "Traceback (most recent call last):\n  File \"a.py\", line 3, in main\n    " + std::string(code) + "\n" +
           oom("2.00 GiB", "16.00 GiB", allocated, "30.00 MiB", "14.50 GiB");
  };
  const std::string same = failed_in("loss.backward()", "8.00 GiB") + failed_in("loss.backward()", "10.00 GiB") +
                           failed_in("loss.backward()", "13.00 GiB");
  const std::string other = failed_in("model.cuda()", "8.00 GiB") + failed_in("loss.backward()", "10.00 GiB") +
                            failed_in("loss.backward()", "13.00 GiB");
  const auto growth = [](const std::string& log) {
    std::vector<Finding> findings = findings_of({{"a.log", log}});
    const auto found = std::find_if(findings.begin(), findings.end(),
                                    [](const Finding& finding) { return finding.id == "memory-grows"; });
    return found == findings.end() ? Finding{} : *found;
  };
  EXPECT_EQ(growth(same).instant.phase, Phase::backward);
  EXPECT_EQ(growth(other).instant.phase, Phase::unknown);
  EXPECT_EQ(growth(other).evidence.back().text.key, "log.growth-point-in");
}

TEST(Figures, AnImpossibleRequestIsNoLackOfMemory) {
  for (const char* tried : {"17179869184.00 GiB", "-2.00 GiB"}) {
    EXPECT_EQ(kind_of(oom(tried, "16.00 GiB", "8.00 GiB", "4.00 GiB", "8.50 GiB")), Kind::not_memory) << tried;
    EXPECT_EQ(kind_of("CUDA out of memory. Tried to allocate " + std::string(tried)), Kind::not_memory) << tried;
  }
}

TEST(Figures, WhatIsMissingIsNotClaimed) {
  const auto claim = [](const std::string& log) { return findings_of({{"a.log", log}}).front().claim.key; };
  EXPECT_EQ(claim("CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 16.00 GiB total capacity; 9.00 GiB alre"),
            "log.no-figures-allocator.claim");
  EXPECT_EQ(claim(oom("2.00 GiB", "16.00 GiB", "9.00 GiB", "17179869184.00 GiB", "9.50 GiB")),
            "log.figures-impossible.claim");
}

std::string sentences(std::string tried, std::string free, std::string process, std::string allocated) {
  return "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate " + tried +
         ". GPU 0 has a total capacity of 23.65 GiB of which " + free +
         " is free. Including non-PyTorch memory, this process has " + process +
         " memory in use. Of the allocated memory " + allocated + " is reserved by PyTorch but unallocated.\n";
}

// Name and bytes of each row; they add up to the total of the card where one is known.
std::vector<std::pair<std::string, int64_t>> balance_of(const std::string& text) {
  const auto found = facts_of({text});
  std::vector<std::pair<std::string, int64_t>> rows;
  int64_t sum = 0;
  for (const BalanceRow& row : found->facts.balance) {
    rows.emplace_back(row.name.key, row.bytes.value_or(0));
    sum += row.bytes.value_or(0);
  }
  EXPECT_EQ(sum, found->facts.card.total.value_or(sum)) << text;
  return rows;
}

using Rows = std::vector<std::pair<std::string, int64_t>>;
constexpr int64_t kGibibyte = int64_t{1} << 30;

TEST(Balance, KeepsThePossibleRowsBesideAnImpossibleFigure) {
  const std::string wrapped = "17179869184.00 GiB";
  const std::string plain = "21.50 GiB is allocated by PyTorch, and 0.50 GiB";
  const Rows no_free = balance_of(sentences("2.00 GiB", wrapped, "22.70 GiB", plain));
  ASSERT_EQ(no_free.size(), 4U);
  EXPECT_EQ(no_free[0], std::pair(std::string("text.row-allocated"), 43 * kGibibyte / 2));
  EXPECT_EQ(no_free[3].first, "text.row-not-accounted");
  const Rows no_unused =
      balance_of(sentences("2.00 GiB", "400.00 MiB", "23.00 GiB", "21.50 GiB is allocated by PyTorch, and " + wrapped));
  ASSERT_EQ(no_unused.size(), 3U);
  EXPECT_EQ(no_unused[1].first, "text.row-free");
  const Rows no_allocated = balance_of(
      sentences("2.00 GiB", "400.00 MiB", "23.00 GiB", wrapped + " is allocated by PyTorch, and 100.00 MiB"));
  ASSERT_EQ(no_allocated.size(), 3U);
  EXPECT_EQ(no_allocated[0], std::pair(std::string("text.row-own"), 23 * kGibibyte));
  EXPECT_EQ(balance_of(oom("2.00 GiB", "0 bytes", "3.00 GiB", "0 bytes", "4.00 GiB")),
            (Rows{{"text.row-allocated", 3 * kGibibyte}, {"text.row-unused", kGibibyte}}));
}

TEST(Balance, NamesWhatIsFreeInPrivatePools) {
  const std::string text =
      sentences("2.00 GiB", "400.00 MiB", "23.25 GiB",
                "21.50 GiB is allocated by PyTorch, with 1.50 GiB allocated in private pools (e.g., CUDA Graphs), and "
                "0.50 GiB");
  const Rows rows = balance_of(text);
  ASSERT_GE(rows.size(), 2U);
  EXPECT_EQ(rows[0], std::pair(std::string("text.row-allocated"), 20 * kGibibyte));
  EXPECT_EQ(rows[1], std::pair(std::string("text.row-pools"), 3 * kGibibyte / 2));
  const auto found = facts_of({text});
  EXPECT_EQ(found->facts.confidence, Confidence::medium);
  const Finding finding = each_finding_of(*found).front();
  EXPECT_EQ(finding.claim.key, "log.capacity-in-pools.claim");
  EXPECT_TRUE(proposes(finding, "pool-limit"));
}

TEST(Figures, TwoCausesAreNoCertainty) {
  for (const char* free : {"700.00 MiB", "1.10 GiB"}) {
    const auto found =
        facts_of({sentences("1.20 GiB", free, "22.50 GiB", "21.50 GiB is allocated by PyTorch, and 600.00 MiB")});
    const Finding finding = each_finding_of(*found).front();
    EXPECT_TRUE(proposes(finding, "allocator-setting"));
    EXPECT_EQ(finding.confidence, Confidence::medium);
    EXPECT_NE(std::count(found->facts.also.begin(), found->facts.also.end(), Kind::gpu_oom_fragmentation), 0);
  }
}

std::string stamped(const std::string& stamp, const std::string& message) { return stamp + " " + message + "\n"; }

TEST(RankOrder, ComparesStampsInUtcWhereAllNameTheirZone) {
  const std::string message = "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB";
  const auto by_offset =
      facts_of({stamped("2024-05-11T14:00:05+02:00", message), stamped("2024-05-11T13:00:01Z", message)});
  EXPECT_TRUE(by_offset->facts.order_is_known);
  EXPECT_EQ(by_offset->facts.ranks.front().log, 0U);
  const auto mixed = facts_of({stamped("2024-05-11T14:00:05+02:00", message), stamped("2024-05-11 13:00:01", message)});
  EXPECT_FALSE(mixed->facts.order_is_known);
  const auto coarse = facts_of({stamped("2024-05-11 14:00:05.5", message), stamped("2024-05-11 14:00:05", message)});
  EXPECT_FALSE(coarse->facts.order_is_known);
}

TEST(Endings, SayNoMoreThanTheLog) {
  const auto claim = [](const std::string& text) { return findings_of({{"a.log", text}}).front().claim.key; };
  EXPECT_EQ(claim("A process in the process pool was terminated abruptly while the future was running.\n"),
            "log.vanished.claim");
  EXPECT_EQ(claim("tcmalloc: large alloc 8589934592 bytes == 0x7f1200000000 @  0x7f\n"), "log.host-large.claim");
  EXPECT_EQ(claim("sending SIGTERM to process 9 uid 0 \"python\": oom_score 800, VmRSS 700 MiB\n"),
            "log.host-killed-monitor.claim");
  EXPECT_EQ(claim("python invoked oom-killer: gfp_mask=0xcc0, order=0\n"), "log.host-killed.claim");
  EXPECT_EQ(claim("train.sh: line 3: 4242 Killed   python train.py\n"), "log.killed-unexplained.claim");
  EXPECT_EQ(facts_of({"step 1 loss 2.0\nKeyboardInterrupt\n"})->facts.confidence, Confidence::high);
}

TEST(Endings, AMarkOfAnInterruptLeavesMemoryOpen) {
  const auto found = facts_of({"Loading checkpoint shards:  33% 1/3 [00:20<00:41, 20.61s/it]^C\n"});
  EXPECT_EQ(found->facts.kind, Kind::not_memory);
  EXPECT_EQ(found->facts.confidence, Confidence::low);
  EXPECT_EQ(found->facts.also, std::vector<Kind>{Kind::host_oom_killed});
  EXPECT_EQ(each_finding_of(*found).front().claim.key, "log.not-memory-interrupt-mark.claim");
}

TEST(RuntimeHeap, IsRaisedWhereItsRuntimeSetsIt) {
  const auto commands = [](const std::string& text) {
    const Finding finding = findings_of({{"a.log", text}}).front();
    return finding.changes.empty() ? std::string{} : finding.changes.front().commands.front();
  };
  EXPECT_NE(commands("java.lang.OutOfMemoryError: Java heap space\n").find("-Xmx"), std::string::npos);
  EXPECT_NE(commands("FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n")
                .find("--max-old-space-size"),
            std::string::npos);
}

TEST(Mapping, OfOneLargeFileIsNoLackOfDescriptors) {
  const auto found = facts_of(
      {"RuntimeError: unable to mmap 8589934592 bytes from file </models/weights.bin>: Cannot allocate memory (12)\n"});
  EXPECT_EQ(found->facts.kind, Kind::host_alloc_failed);
  EXPECT_TRUE(found->facts.also.empty());
  EXPECT_FALSE(proposes(each_finding_of(*found).front(), "sharing-strategy"));
}

TEST(OtherGpu, IsTheEmptiestOfTheListing) {
  const std::string smi =
      "| NVIDIA-SMI 550.54 Driver Version: 550.54 |\n"
      "|   0  NVIDIA A100-SXM4-80GB          On  | 00000000:07:00.0 Off |                    0 |\n"
      "| N/A   30C    P0    60W / 400W |  80000MiB / 81920MiB |      0%      Default |\n"
      "|   1  NVIDIA A100-SXM4-80GB          On  | 00000000:0F:00.0 Off |                    0 |\n"
      "| N/A   30C    P0    60W / 400W |  70000MiB / 81920MiB |      0%      Default |\n"
      "|   2  NVIDIA A100-SXM4-80GB          On  | 00000000:47:00.0 Off |                    0 |\n"
      "| N/A   30C    P0    60W / 400W |    400MiB / 81920MiB |      0%      Default |\n";
  const Finding finding =
      each_finding_of(*facts_of({oom("2.00 GiB", "79.15 GiB", "1.00 GiB", "20.00 MiB", "1.10 GiB") + smi})).front();
  const auto other = std::find_if(finding.changes.begin(), finding.changes.end(),
                                  [](const Change& change) { return change.remedy == "other-gpu"; });
  ASSERT_NE(other, finding.changes.end());
  EXPECT_EQ(other->commands.front(), "export CUDA_VISIBLE_DEVICES=2");
}

TEST(Evaluation, OffersSimplerChangesBeforeOffload) {
  const Finding finding =
      each_finding_of(*facts_of({"Traceback (most recent call last):\n"
                                 "  File \"train.py\", line 9, in validate\n"
                                 "    with torch.no_grad(): out = model(x)\n" +
                                 oom("2.00 GiB", "16.00 GiB", "14.00 GiB", "30.00 MiB", "14.50 GiB")}))
          .front();
  ASSERT_GE(finding.changes.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_NE(finding.changes[i].remedy, "offload");
}

TEST(PhaseByProgress, TheSecondStep) {
  const auto given = facts_of({"  1%|1         | 1/100 [00:03<05:00,  3.00s/it, loss=2.5]\n" +
                               oom("2.00 GiB", "16.00 GiB", "14.00 GiB", "30.00 MiB", "14.50 GiB")});
  EXPECT_EQ(given->facts.phase, Phase::second_step);
}

using Logs = std::vector<std::pair<std::string, std::string>>;

std::vector<std::string> remedies_for(const std::string& text) {
  std::vector<std::string> ids;
  for (const Finding& finding : findings_of(Logs{{"a.log", text}})) {
    for (const Change& change : finding.changes) ids.push_back(change.remedy);
  }
  return ids;
}

bool proposes(const std::string& text, std::string_view remedy) {
  const std::vector<std::string> ids = remedies_for(text);
  return std::find(ids.begin(), ids.end(), remedy) != ids.end();
}

const std::string kShmWrite = "RuntimeError: unable to write to file </torch_12_34_5>: No space left on device (28)\n";

TEST(SharedMemory, IsNotToBeLargerWhereItHasRoom) {
  EXPECT_FALSE(proposes("shm              64G   12M   64G   1% /dev/shm\n" + kShmWrite, "larger-shm"));
  EXPECT_TRUE(proposes("shm              64M   64M     0 100% /dev/shm\n" + kShmWrite, "larger-shm"));
}

TEST(SharedMemory, IsWantedByOthersThanWorkersToo) {
  const std::vector<Finding> findings = findings_of(
      Logs{{"a.log",
            "ray.exceptions.ObjectStoreFullError: Failed to put object abc in object store because it is full. "
            "Object size is 1073741824 bytes.\n"}});
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().claim.key, "log.shared-memory-ray.claim");
  EXPECT_FALSE(proposes("loading weights: 100%\nBus error (core dumped)\n", "fewer-workers"));
}

TEST(Limits, WhatIsProposedGoesBeyondThem) {
  const std::vector<Finding> findings = findings_of(
      Logs{{"a.log", "slurmstepd: error: Job 123 exceeded memory limit (335585280 > 335544320), being killed\n"}});
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().changes.front().commands.front(), "#SBATCH --mem=640G");
}

TEST(SharedCard, ItsOwnRanksAreNoLeftovers) {
  const std::vector<Finding> findings = findings_of(Logs{{"rank0/train.log", shared(0, "18.00 GiB", "10.00 MiB")},
                                                         {"rank1/train.log", shared(0, "18.00 GiB", "10.00 MiB")}});
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().changes.front().remedy, "share-card");
}

TEST(HostAllocation, OfACheckpointIsMappedInstead) {
  const std::string refused =
      "RuntimeError: [enforce fail at alloc_cpu.cpp:114] err == 0. DefaultCPUAllocator: can't allocate memory: you "
      "tried "
      "to allocate 13743895347 bytes. Error code 12 (Cannot allocate memory)\n";
  const std::vector<std::string> ids = remedies_for(
      "Traceback (most recent call last):\n  File \"train.py\", line 20, in main\n"
      "    model.load_state_dict(torch.load(\"x.pt\", map_location=\"cpu\"))\n" +
      refused);
  ASSERT_FALSE(ids.empty());
  EXPECT_EQ(ids.front(), "load-on-cpu");
  EXPECT_TRUE(proposes("Microsoft Windows 11\n" + refused, "raise-page-file"));
}

TEST(Evaluation, OfAFrameworkHasNoGradientsAlready) {
  const std::string full = oom("2.00 GiB", "79.15 GiB", "76.00 GiB", "1.50 GiB", "77.00 GiB");
  EXPECT_FALSE(
      proposes("INFO: Sanity Checking DataLoader 0\nTraceback (most recent call last):\n"
               "  File \"pl.py\", line 1, in validation_step\n    y=self(x)\n" +
                   full,
               "no-grad"));
  const std::vector<std::string> ids = remedies_for(
      "Traceback (most recent call last):\n"
      "  File \"/x/site-packages/transformers/trainer.py\", line 3451, in evaluation_loop\n    a = b\n"
      "  File \"/x/site-packages/transformers/trainer_pt_utils.py\", line 100, in nested_concat\n    return c\n" +
      full);
  ASSERT_FALSE(ids.empty());
  EXPECT_EQ(ids.front(), "results-to-cpu");
  EXPECT_TRUE(proposes(
      "Traceback (most recent call last):\n  File \"t.py\", line 1, in validate\n    y=net(x)\n" + full, "no-grad"));
}

std::string proof_of(const std::string& text) {
  const std::vector<std::string> lines = proof_lines(facts_of({text})->facts, Language::english);
  return lines.empty() ? "" : lines.front();
}

TEST(Claims, SayNoMoreThanTheMessage) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED\n", "log.library-cudnn.claim"},
      {"RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR\n", "log.library-cudnn-memory.claim"},
      {"RuntimeError: FIND was unable to find an engine to execute this computation\n",
       "log.library-cudnn-memory.claim"},
      {"max seq len (64) is larger than the maximum number of tokens that can be stored in KV cache (32).\n",
       "log.engine-context.claim"},
      {"ValueError: No available memory for the cache blocks.\n", "log.engine-no-room.claim"},
      {"RuntimeError: Invalid buffer size: 28.84 GB\n", "log.buffer-limit.claim"},
      {"ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n",
       "log.host-killed-program.claim"},
      {"systemd[1]: x.service: A process of this unit has been killed by the OOM killer.\n",
       "log.host-killed-unit.claim"},
      {"RuntimeError: DataLoader worker (pid 7) is killed by signal: Terminated.\n",
       "log.loader-worker-terminated.claim"}};
  for (const auto& [text, claim] : cases) EXPECT_EQ(claim_of(text), claim) << text;
}

TEST(Claims, OfAWorkerThatCrashedLookAtSharedMemory) {
  const std::string crash = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Segmentation fault.\n";
  EXPECT_EQ(claim_of("shm 64M 64M 0 100% /dev/shm\n" + crash), "log.shared-memory-crash.claim");
  EXPECT_EQ(facts_of({"shm 64M 64M 0 100% /dev/shm\n" + crash})->facts.confidence, Confidence::medium);
  EXPECT_EQ(claim_of("shm 64M 4M 60M 7% /dev/shm\n" + crash), "log.not-memory-crash.claim");
}

TEST(Measures, WhatAMessageAdvisesIsNotInForce) {
  const std::unique_ptr<Case> told =
      facts_of({"RuntimeError: Too many open files. Please change the sharing strategy by calling "
                "`torch.multiprocessing.set_sharing_strategy('file_system')` at the beginning of your code\n"});
  EXPECT_FALSE(told->facts.around.in_force.contains("sharing-strategy"));
  const std::unique_ptr<Case> set =
      facts_of({"torch.multiprocessing.set_sharing_strategy('file_system')\nRuntimeError: Too many open files.\n"});
  EXPECT_TRUE(set->facts.around.in_force.contains("sharing-strategy"));
}

TEST(Windows, IsTheOneThatWritesPathsBackwards) {
  EXPECT_TRUE(facts_of({"RuntimeError: [enforce fail at ..\\c10\\core\\impl\\alloc_cpu.cpp:72] data. "
                        "DefaultCPUAllocator: not enough memory: you tried to allocate 5368709120 bytes.\n"})
                  ->facts.around.is_windows);
}

TEST(ProofLines, AreThoseOfTheBackend) {
  EXPECT_NE(
      proof_of("torch.OutOfMemoryError: XPU out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
               "of 15.91 GiB. Of the allocated memory 14.00 GiB is allocated by PyTorch, and 500.00 MiB is "
               "reserved by PyTorch but unallocated.\n")
          .find("torch.xpu"),
      std::string::npos);
  EXPECT_NE(proof_of("torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\n"
                     "Currently allocated     : 22.10 GiB\nRequested               : 512.00 MiB\n"
                     "Device limit            : 23.64 GiB\nFree (according to CUDA): 12.00 MiB\n")
                .find("backend:native"),
            std::string::npos);
  EXPECT_NE(proof_of("slurmstepd: error: *** JOB 12345 ON node01 CANCELLED AT 2024-05-01T10:00:00 DUE TO TIME LIMIT "
                     "***\n")
                .find("sacct"),
            std::string::npos);
}

}  // namespace
}  // namespace oomscope
