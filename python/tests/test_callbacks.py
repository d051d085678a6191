"""The callbacks against the real trainers, on the CPU."""
import warnings

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from oomscope import _marks

warnings.filterwarnings("ignore")


@pytest.fixture
def phases(fresh, monkeypatch):
    """Every phase that was set, in order."""
    seen = []
    set_phase = _marks.progress.set_phase
    monkeypatch.setattr(_marks.progress, "set_phase", lambda name: (seen.append(name), set_phase(name)))
    return seen


def data():
    return TensorDataset(torch.randn(32, 4), torch.randn(32, 1))


def test_lightning(in_folder, phases):
    lightning = pytest.importorskip("lightning.pytorch")
    from oomscope.callbacks.lightning import OomscopeCallback

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(4, 1)

        def training_step(self, batch, index):
            return torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])

        def validation_step(self, batch, index):
            self.log("loss", self.training_step(batch, index))

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    callback = OomscopeCallback("kept", steps=3)
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", callbacks=[callback], logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Module(), DataLoader(data(), 8), DataLoader(data(), 8))
    assert [step["step"] for step in callback.profile.steps] == [1, 2, 3]
    assert [name for name in phases if name] == ["validation", "epoch 0", "validation", "epoch 0",
                                                 "epoch 1", "validation", "epoch 1"]
    assert _marks.progress.step == 9 and phases[-1] is None and not (in_folder / "kept").exists()


def test_lightning_that_fails_leaves_nothing_on(fresh):
    lightning = pytest.importorskip("lightning.pytorch")
    from oomscope.callbacks.lightning import OomscopeCallback

    class Fails(lightning.LightningModule):
        def training_step(self, batch, index):
            raise ValueError("of the user")

        def configure_optimizers(self):
            return torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], 0.1)

    callback = OomscopeCallback("kept", steps=3)
    trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", callbacks=[callback], logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    with pytest.raises(ValueError, match="of the user"):
        trainer.fit(Fails(), DataLoader(data(), 8))
    assert _marks.progress.phase is None and not torch.nn.modules.module._global_forward_hooks


def test_hugging_face_trainer(in_folder, phases):
    transformers = pytest.importorskip("transformers")
    from oomscope.callbacks.transformers import OomscopeCallback

    config = transformers.BertConfig(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
                                     vocab_size=50, num_labels=2)
    rows = [{"input_ids": torch.randint(0, 50, (8,)), "labels": torch.tensor(i % 2)} for i in range(16)]
    arguments = transformers.TrainingArguments(output_dir="out", num_train_epochs=2, per_device_train_batch_size=8,
                                               eval_strategy="epoch", save_strategy="no", report_to=[], use_cpu=True,
                                               disable_tqdm=True, logging_strategy="no")
    callback = OomscopeCallback("kept", steps=2)
    trainer = transformers.Trainer(transformers.BertForSequenceClassification(config), arguments, train_dataset=rows,
                                   eval_dataset=rows, callbacks=[callback])
    trainer.train()
    for run in (trainer.evaluate, lambda: trainer.predict(rows)):
        run()
        assert _marks.progress.phase is None
    assert [step["step"] for step in callback.profile.steps] == [1, 2]
    assert {"epoch 0", "epoch 1", "evaluation"} <= set(phases) and phases[-1] is None
    assert _marks.progress.step == 5


def test_accelerate(in_folder, fresh):
    accelerate = pytest.importorskip("accelerate")
    from oomscope.callbacks.accelerate import OomscopeTracker

    tracker = OomscopeTracker("kept", steps=2)
    accelerator = accelerate.Accelerator(cpu=True, log_with=[tracker])
    accelerator.init_trackers("run", config={"batch": 8})
    model = torch.nn.Linear(4, 1)
    model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1),
                                                   DataLoader(data(), 8))
    for x, y in loader:
        accelerator.backward(torch.nn.functional.mse_loss(model(x), y))
        optimizer.step()
        optimizer.zero_grad()
        accelerator.log({"loss": 1.0})
    accelerator.end_training()
    assert [step["step"] for step in tracker.profile.steps] == [1, 2] and _marks.progress.step == 5
    assert accelerator.get_tracker("oomscope") is not None
