"""Callbacks for trainers: oomscope.callbacks.lightning, .transformers and .accelerate. Each is thin: steps come from
the optimizer's hook as everywhere; a callback names the phases that only the trainer knows."""
