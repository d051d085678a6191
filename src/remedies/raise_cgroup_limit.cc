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
                if (circumstances.only_some_nodes)
                  return bash("numactl --interleave=all python train.py\n# Slurm: srun --mem-bind=none ...");
                if (circumstances.scheduler == "pbs") return bash("qsub -l mem=64gb job.sh");
                if (circumstances.scheduler == "sge") return bash("qsub -l h_vmem=64G job.sh");
                if (circumstances.scheduler == "lsf") return bash("bsub -M 64G -R \"rusage[mem=64G]\" python train.py");
                if (circumstances.scheduler == "condor") return bash("# in the submit file: request_memory = 64GB");
                if (circumstances.is_evicted) return bash("# Kubernetes: resources.requests.memory: 64Gi");
                return std::vector<Snippet>{
                    {Place::bash, "docker run --memory=64g IMAGE\n# Kubernetes: resources.limits.memory: 64Gi"},
                    {Place::sbatch, "#SBATCH --mem=64G"}};
              },
          .text =
              [](const Circumstances& circumstances) {
                return Phrase{.key = circumstances.only_some_nodes ? "remedy.raise-cgroup-limit.nodes"
                                     : circumstances.is_evicted    ? "remedy.raise-cgroup-limit.evicted"
                                                                   : "remedy.raise-cgroup-limit.text"};
              }};
}

}  // namespace oomscope
