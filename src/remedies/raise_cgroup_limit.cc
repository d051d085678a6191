// The limit was the container's or the job's, not the machine's.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy raise_cgroup_limit() {
  return {.id = "raise-cgroup-limit",
          .page = "cgroup-limit",
          .effect = Effect::figures,
          .applies = is_host_case,
          .snippets =
              [](const Circumstances& circumstances) {
                const std::string gib = raised_gib(circumstances.limits.memory_bytes, "64");
                if (circumstances.only_some_nodes)
                  return bash("numactl --interleave=all python train.py\n# Slurm: srun --mem-bind=none ...");
                if (circumstances.scheduler == "pbs") return bash("qsub -l mem=" + gib + "gb job.sh");
                if (circumstances.scheduler == "sge") return bash("qsub -l h_vmem=" + gib + "G job.sh");
                if (circumstances.scheduler == "lsf")
                  return bash("bsub -M " + gib + "G -R \"rusage[mem=" + gib + "G]\" python train.py");
                if (circumstances.scheduler == "condor")
                  return bash("request_memory = " + gib + "GB  # in the submit file");
                if (circumstances.is_evicted)
                  return bash("kubectl set resources deployment NAME --requests=memory=" + gib + "Gi  # Kubernetes");
                return std::vector<Snippet>{
                    {Place::bash, "docker run --memory=" + gib +
                                      "g IMAGE\nkubectl set resources deployment NAME --limits=memory=" + gib +
                                      "Gi  # Kubernetes"},
                    {Place::sbatch, "#SBATCH --mem=" + gib + "G"}};
              },
          .text =
              [](const Circumstances& circumstances) {
                return Phrase{.key = circumstances.only_some_nodes ? "remedy.raise-cgroup-limit.nodes"
                                     : circumstances.is_evicted    ? "remedy.raise-cgroup-limit.evicted"
                                                                   : "remedy.raise-cgroup-limit.text"};
              }};
}

}  // namespace oomscope
